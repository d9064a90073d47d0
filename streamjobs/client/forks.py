"""Tell the owners of connections that the process has been forked.

A child that wrote to its parent's socket would get, or steal, its parent's replies. This is done at
the fork, so no call pays for a check.
"""

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Something that holds connections."""

    def after_fork(self) -> None:
        """Called in the child, before anything else runs there: let go of what the parent uses."""


copies = 0
"""How many forks lie behind this process: who has noted it sees whether it goes on in a copy of its process."""

_watched: WeakSet[Forkable] = WeakSet()


def watch(owner: Forkable) -> None:
    """Call the owner's `after_fork` in each child, for as long as the owner lives."""
    _watched.add(owner)


def end_copy(noted: int) -> None:
    """End this process if it is a copy of the one in which so many `copies` were noted: a handler has forked it, and it
    has come back from the handler. It would run other jobs a second time, and speak for the worker.
    """
    if copies != noted:
        os.write(2, b"streamjobs: a process that a handler forked ends where the handler does\n")
        os._exit(1)


def _in_child() -> None:
    global copies
    copies += 1
    for owner in list(_watched):
        owner.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
