"""Lock files: held by a process, dropped by the kernel when it ends.

A lock belongs to the opened file, which a fork shares; so it is given up by unlocking, not by closing
alone, and a child closes its copies without unlocking.
"""

import fcntl
import os
from pathlib import Path


class LockFile:
    """One opened lock file."""

    def __init__(self, path: Path) -> None:
        """Open it, made if need be; lock nothing. Raises OSError."""
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self) -> bool:
        """Take it alone, or turn a share into that; say whether nobody else has it, without waiting."""
        return self._lock(fcntl.LOCK_EX)

    def share(self) -> bool:
        """Take it together with others; say whether nobody has it alone, without waiting."""
        return self._lock(fcntl.LOCK_SH)

    def release(self) -> None:
        """Give it up and close it."""
        fcntl.flock(self.fd, fcntl.LOCK_UN)
        os.close(self.fd)

    def close(self) -> None:
        """Close it without giving it up: who has inherited it keeps it."""
        os.close(self.fd)

    def _lock(self, how: int) -> bool:
        try:
            fcntl.flock(self.fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
