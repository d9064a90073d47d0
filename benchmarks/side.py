"""One measured process: `python -m benchmarks.side NAME`, an order on stdin, a sample on stdout.

An empty line on stdout says that it can begin: what takes time before is loading, and not measured.

Every repeat of every side runs in a fresh one, so that no side inherits another's heap, caches
or connections.
"""

import os
import sys
import threading

import msgspec

from .measure import Order
from .registry import SIDES


def main() -> None:
    """Do what the order says and print the sample."""
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sample = SIDES[sys.argv[1]](order)
    sys.stdout.buffer.write(msgspec.json.encode(sample))


def _end_with_parent() -> None:
    """Wait for the end of stdin: a worker whose parent and server are gone would wait for ever."""
    # Not by sys.stdin: its lock, held here, would abort the interpreter when it shuts down.
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main()
