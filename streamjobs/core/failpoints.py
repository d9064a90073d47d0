"""Failpoints: named places where a test can make a fault happen.

Nothing but a test arms one: in its own process by `arm`, in a process that it starts by
STREAMJOBS_FAILPOINTS, which is read once, when this module is imported. The hottest paths look at
`armed` first, which costs them no call.

`worker.after_handler=kill9@1,settle.before=sleep:0.5` kills the process with SIGKILL at the first
pass of the one, and waits half a second at every pass of the other. The actions: `kill9`, `stop`
(SIGSTOP), `exit` (at once, code 70), `raise` (Tripped), `sleep:SECONDS` (of the whole thread).
"""

import os
import signal
import time
from collections.abc import Callable

from streamjobs.core.errors import InvalidOption

VARIABLE = "STREAMJOBS_FAILPOINTS"
EXIT_CODE = 70

NAMES = frozenset({
    "operate.after_adopt",
    "operate.after_handover",
    "operate.after_promise",
    "operate.after_replay",
    "operate.before_promise",
    "operate.before_replay",
    "producer.after_reply",
    "producer.before_send",
    "settle.after",
    "settle.before",
    "worker.after_claim",
    "worker.after_handler",
    "worker.after_promote",
    "worker.after_reclaim",
    "worker.after_tick",
    "worker.before_handler",
    "worker.before_tick",
})  # fmt: skip
"""Every failpoint there is; a test compares it with the source."""

Action = Callable[[], None]

armed: dict[str, Action] = {}


class Tripped(Exception):
    """What a failpoint with the action `raise` raises."""


def failpoint(name: str) -> None:
    """Do nothing, unless a test has armed this name."""
    if armed and (action := armed.get(name)):
        action()


def arm(name: str, action: Action | None) -> None:
    """Run `action` at every pass of the failpoint `name`; None disarms it."""
    if action is None:
        armed.pop(name, None)
    else:
        armed[name] = action


def parse(text: str) -> dict[str, Action]:
    """Return the action of each failpoint in `name=action,name=action@n`; with `@n` it acts at the n-th pass only.

    Raises:
        InvalidOption: a failpoint, an action or a count is not one of ours.
    """
    actions: dict[str, Action] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, what = item.partition("=")
        if name not in NAMES:
            raise InvalidOption(f"{VARIABLE}: no failpoint {name!r:.80}; use {', '.join(sorted(NAMES))}")
        word, at, count = what.partition("@")
        action = _action(word, name)
        actions[name] = _once(action, _count(count, item)) if at else action
    return actions


def _action(word: str, name: str) -> Action:
    verb, _, seconds = word.partition(":")
    match verb:
        case "kill9" | "stop" if not seconds:
            number = signal.SIGKILL if verb == "kill9" else signal.SIGSTOP
            return lambda: os.kill(os.getpid(), number)
        case "exit" if not seconds:
            return lambda: os._exit(EXIT_CODE)
        case "raise" if not seconds:
            return lambda: _trip(name)
        case "sleep" if _is_duration(seconds):
            return lambda: time.sleep(float(seconds))
    raise InvalidOption(f"{VARIABLE}: {name}={word!r:.80}; use kill9, stop, exit, raise or sleep:SECONDS")


def _is_duration(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdigit()


def _count(text: str, item: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise InvalidOption(f"{VARIABLE}: {item!r:.80}: after the @ comes the number of the pass, from 1")
    return int(text)


def _once(action: Action, count: int) -> Action:
    passes = 0

    def act() -> None:
        nonlocal passes
        passes += 1
        if passes == count:
            action()

    return act


def _trip(name: str) -> None:
    raise Tripped(f"failpoint {name}")


armed.update(parse(os.environ.get(VARIABLE, "")))
