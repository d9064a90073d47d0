"""How far a variant has come: a bar on a terminal, else a line for each step; on stderr."""

import shutil
import sys

CELLS = 20
_BACK = "\r\x1b[K"


def tell(what: str, done: int, steps: int, said: str) -> None:
    """Say that `done` of `steps` are done, and what the last one gave."""
    if sys.stderr.isatty():
        # The last one stays: what was measured, one line a variant.
        line = f"{what} {_bar(done, steps)} {said}"[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write(f"{_BACK}{line}" + ("\n" if done >= steps else ""))
        sys.stderr.flush()
    else:
        print(f"{what} {done}/{steps} {said}", file=sys.stderr, flush=True)


def _bar(done: int, steps: int) -> str:
    full = CELLS * min(done, steps) // steps
    return f"[{'#' * full}{'-' * (CELLS - full)}] {done}/{steps}"
