"""What the demo knows of its jobs while they run, from the journal; and how it kills a worker."""

import os
import signal
from collections import defaultdict
from pathlib import Path

from streamjobs.demo import journal


class Watch:
    """Follows the journal in a folder.

    Attributes:
        through: the files whose job has ended for good, well or broken.
        running: the files that each process has started and not ended.
    """

    def __init__(self, folder: Path) -> None:
        self.through: set[str] = set()
        self.running: defaultdict[int, set[str]] = defaultdict(set)
        self._folder = folder
        self._tail = journal.Tail(folder)

    def read(self) -> int:
        """Take in what was added to the journal; return the number of events."""
        events = self._tail.read()
        for event in events:
            match event:
                case {"event": "start", "pid": pid, "path": path}:
                    self.running[pid].add(path)
                case {"event": "end", "pid": pid, "path": path, "error": error}:
                    self.running[pid].discard(path)
                    if "locked" not in error:
                        self.through.add(path)
        return len(events)

    def kill_one(self, pids: list[int]) -> int | None:
        """SIGKILL one of these children in the middle of its jobs, and note it; return its id.

        Returns None, with nothing killed, if the chosen one turns out to run no job.
        """
        pid = max(pids, key=lambda pid: len(self.running[pid]))
        # Stopped first, so that its jobs cannot end between the look and the blow.
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        self.read()
        if not self.running[pid]:
            os.kill(pid, signal.SIGCONT)
            return None
        os.kill(pid, signal.SIGKILL)
        journal.note(self._folder, "kill", target=pid)
        return pid
