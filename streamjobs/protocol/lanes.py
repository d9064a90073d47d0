"""How limits hold: admit claims to their start, vacate what they took, set limits at run time.

A lane is one limit with one key, as a name (lua/include/lanes.lua); docs/flow.md tells how they work.
"""

from collections.abc import Mapping, Sequence

import msgspec

from streamjobs.protocol.calls import Call, Command, Word
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.views import texts

GO = "GO"
OVERRIDE = "limit:"
"""The fields of `config` that begin so are limits set at run time."""


class Entrant(msgspec.Struct, frozen=True):
    """One claim that wants to start: its lanes from the narrow to the wide."""

    entry: bytes
    deliveries: int
    order: str
    """Where it stands among those who wait; see `order`."""
    lanes: Sequence[str]
    mark: int = 0
    """-1: it was never started before; 1: its start is to be marked, as `suspect` does; 0: neither."""
    presumed: str = ""
    """With mark 1, the start before this one that never ended."""


class Admission(msgspec.Struct, frozen=True):
    """What became of entrants."""

    crowd: int
    """How many wait in the lanes of the whole queue."""
    words: list[str]
    """GO, PARKED or LOST, in order."""


class Leaver(msgspec.Struct, frozen=True):
    """One execution that has ended, and the lanes of which it has a slot."""

    entry: bytes
    deliveries: int
    lanes: Sequence[str]


def order(job: str) -> str:
    """Return a text of fixed width that sorts jobs by the time at which they were enqueued."""
    ms, _, seq = job.removeprefix("d").partition("-")
    return f"{ms:0>15}-{seq:0>9}"


def admit(
    keys: QueueKeys, consumer: str, limits: Mapping[str, str], entrants: Sequence[Entrant], clock: str = ""
) -> Call[Admission]:
    """Let claims start, or park them; `limits` are values by base, as this worker's code has them."""
    words: list[Word] = [clock, consumer, len(limits)]
    for base, value in limits.items():
        words += (base, value)
    for one in entrants:
        words += (one.entry, one.deliveries, one.order, one.mark, one.presumed, len(one.lanes), *one.lanes)
    return Call(
        "admit",
        [keys.stream, keys.suspects, *keys.lanes],
        words,
        lambda raw: Admission(raw[0], [word.decode() for word in raw[1:]]),
    )


def vacate(keys: QueueKeys, leavers: Sequence[Leaver], *, ring: bool, clock: str = "") -> Call[int]:
    """Give up slots, and return how many may go on; `ring` for others to take them."""
    words: list[Word] = [clock, int(ring)]
    for one in leavers:
        words += (one.entry, one.deliveries, len(one.lanes), *one.lanes)
    return Call("vacate", [keys.stream, *keys.lanes], words, int)


def limit(keys: QueueKeys, base: str, value: str | None, cursor: str = "") -> Call[str]:
    """Set a limit, or with None reset it to what the code says; return where the next step goes on, or ""."""
    words = [base, *(("reset", "") if value is None else ("set", value)), cursor]
    named = [keys.stream, keys.line, keys.wake, keys.config, keys.bell]
    return Call("limit", named, words, lambda raw: str(raw.decode()))


def changed(keys: QueueKeys) -> Command[bytes]:
    """Read how often limits were changed at run time: while this stays, `overrides` says the same."""
    return Command(["HGET", keys.config, "limited"], lambda raw: raw or b"")


def overrides(keys: QueueKeys) -> Command[dict[str, str]]:
    """Read the limits that were set at run time, by base."""
    return Command(["HGETALL", keys.config], _overrides)


def _overrides(raw: Sequence[bytes]) -> dict[str, str]:
    fields = texts(raw)
    return {name.removeprefix(OVERRIDE): value for name, value in fields.items() if name.startswith(OVERRIDE)}


def waiting(keys: QueueKeys, base: str) -> Command[int]:
    """Count who waits in the lanes of a base."""
    begin, end = (" ", "!") if " " in base else ("\n", "\v")
    return Command(["ZLEXCOUNT", keys.line, f"[{base}{begin}", f"({base}{end}"], int)


def place(keys: QueueKeys, lane: str, job: str, entry: str) -> list[Command[int | None]]:
    """Say whether a job stands in the line of a lane, None if not; and count those before it."""
    begin = f"{lane}\n"
    member = f"{begin}{order(job)}\n{entry}"
    return [
        Command(["ZSCORE", keys.line, member], lambda raw: None if raw is None else 1),
        Command(["ZLEXCOUNT", keys.line, f"[{begin}", f"({member}"], int),
    ]


def forget(keys: QueueKeys, bases: Sequence[str]) -> Command[int]:
    """Forget limits of the code, by base."""
    return Command(["HDEL", keys.limits, *bases], int)
