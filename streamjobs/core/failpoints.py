"""The worker's failpoints: named places where a test can make a fault happen.

Unarmed, a failpoint is one call of a function that does nothing. Tests arm them with `arm`.
"""

from collections.abc import Callable

_armed: dict[str, Callable[[], None]] = {}


def failpoint(name: str) -> None:
    """Do nothing, unless a test has armed this name."""
    if _armed and (action := _armed.get(name)):
        action()


def arm(name: str, action: Callable[[], None] | None) -> None:
    """Run `action` at every pass of the failpoint `name`; None disarms it."""
    if action is None:
        _armed.pop(name, None)
    else:
        _armed[name] = action
