"""Failpoints: named places where a test can make a fault happen.

Nothing but a test arms one. The hottest paths look at `armed` first, which costs them no call.
"""

from collections.abc import Callable

armed: dict[str, Callable[[], None]] = {}


def failpoint(name: str) -> None:
    """Do nothing, unless a test has armed this name."""
    if armed and (action := armed.get(name)):
        action()


def arm(name: str, action: Callable[[], None] | None) -> None:
    """Run `action` at every pass of the failpoint `name`; None disarms it."""
    if action is None:
        armed.pop(name, None)
    else:
        armed[name] = action
