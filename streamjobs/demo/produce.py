"""One of the demo's producers: `python -m streamjobs.demo.produce FOLDER NTH OF`.

Enqueues every OF-th line of FOLDER/files.txt, from the NTH on, which is counted from 0.
"""

import sys
from pathlib import Path

from streamjobs.demo.jobs import app, index_file

FILES = "files.txt"


def main(arguments: list[str]) -> int:
    """Enqueue one producer's share; return 0 if all of it is in."""
    folder, nth, of = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    share = (folder / FILES).read_text("utf-8").splitlines()[nth::of]
    outcomes = app.enqueue_many_sync(index_file.call(path, str(folder)) for path in share)
    failed = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    for error in failed[:3]:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    print(f"enqueued {len(outcomes) - len(failed)} of {len(share)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
