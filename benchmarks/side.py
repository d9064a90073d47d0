"""The measured processes, and the template that they are forked from: `python -m benchmarks.side`.

The template has loaded what any of them needs, and has no thread, connection or event loop. On stdin, a socket, it
takes the socket of each new process, which finds the name of its side there, answers with its pid on a line when it can
begin, takes an order, and gives a sample.

Every repeat of every side runs in a fresh one, so that no side inherits another's heap, caches
or connections.
"""

import gc
import os
import signal
import socket
import sys
import threading

import msgspec

from .measure import Order
from .registry import SIDES


def main() -> None:
    """Fork a process for each socket that comes, until no more can."""
    sockets = socket.socket(fileno=0)
    # Nobody waits for a side: its socket says when it has ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while fds := socket.recv_fds(sockets, 1, 1)[1]:
        if not os.fork():
            sockets.detach()
            _measure(*fds)
            return
        os.close(*fds)


def _measure(connection: int) -> None:
    """Do what the order says and give the sample."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # As stdin and stdout they stay open until the process has ended, and the reader knows when.
    for stream in (0, 1):
        os.dup2(connection, stream)
    os.close(connection)
    name = sys.stdin.buffer.readline().decode().strip()
    # A page is copied when first touched, which a collection does to all: now, where it is not measured.
    gc.collect()
    sys.stdout.buffer.write(b"%d\n" % os.getpid())
    sys.stdout.buffer.flush()
    if not (said := sys.stdin.buffer.readline()):
        return  # not needed any more
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sample = SIDES[name](msgspec.json.decode(said, type=Order))
    sys.stdout.buffer.write(msgspec.json.encode(sample))
    sys.stdout.buffer.flush()
    # To take the interpreter apart, page by page, takes as long as many a thing that is measured.
    os._exit(0)


def _end_with_parent() -> None:
    """Wait for the end of stdin: a worker whose parent and server are gone would wait for ever."""
    # Not by sys.stdin: its lock, held here, would abort the interpreter when it shuts down.
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main()
