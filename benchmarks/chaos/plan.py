"""Which faults come when: drawn from a seed before anything starts, so that a run can be repeated.

Faults come one after the other, each in a slot of its own, in rounds: a round is a minute at the usual
interval. It begins with the three without which a run would show nothing, a kill, a pause that is
longer than a lease, and a cut that leaves producers without an answer; the rest of it is shuffled.
"""

from random import Random
from typing import Literal

import msgspec

INTERVAL_S = 4.0

Kind = Literal["kill", "pause", "cut", "flush", "restart", "stop"]
Way = Literal["producers", "left", "right"]
WAYS: tuple[Way, ...] = ("producers", "left", "right")
"""Each process reaches the server on one of these; workers are on the left and on the right."""


class Fault(msgspec.Struct, frozen=True):
    """One fault.

    `draw`, evenly from [0, 1), chooses whom it befalls among those that are there then.
    """

    at_s: float
    kind: Kind
    how: str
    way: Way | None
    seconds: float
    """How long it lasts."""
    draw: float


class Card(msgspec.Struct, frozen=True):
    """A fault whose time and length are not drawn yet. `ways`: those that it may be on."""

    kind: Kind
    how: str = ""
    ways: tuple[Way, ...] = ()
    least_s: float = 0.0
    most_s: float = 0.0


NEEDED = (
    Card("kill", "worker"),
    Card("pause", "long", (), 1.6, 2.4),
    Card("cut", "hold", ("producers",), 1.4, 2.2),
)
REST = (
    *[Card("kill", "worker")] * 4,
    Card("kill", "producer"),
    Card("pause", "long", (), 1.6, 2.4),
    Card("pause", "short", (), 0.2, 0.8),
    Card("stop"),
)
CUTS = (
    Card("cut", "reset", WAYS),
    Card("cut", "away", WAYS, 0.3, 1.5),
    Card("cut", "hold", ("left", "right"), 0.5, 2.2),
    Card("cut", "drop", WAYS, 0.5, 1.5),
    Card("cut", "hole", WAYS, 0.2, 0.5),
)
"""`reset`: every connection breaks. `away`: and no new one is to be had. `hold`: nothing passes. `drop`: replies
are lost, one in five, each with its connection. `hole`: a connection is dead, and nobody is told."""
CUTS_A_ROUND = 2
RESTARTS = (
    Card("restart", "crash", (), 0.0, 1.0),
    Card("restart", "orderly", (), 0.0, 1.0),
)


def make_plan(
    seed: int, seconds: float, *, interval_s: float = INTERVAL_S, own_server: bool = True
) -> tuple[Fault, ...]:
    """Return the faults of a run, in order; a longer run begins with those of a shorter one.

    Args:
        own_server: the server may be restarted and may lose its scripts.
    """
    chance = Random(seed)
    cards: list[Card] = []
    plan = []
    for slot in range(int(seconds / interval_s)):
        cards = cards or _round(chance, own_server=own_server)
        plan.append(_drawn(cards.pop(0), slot * interval_s, interval_s, chance))
    return tuple(plan)


def _round(chance: Random, *, own_server: bool) -> list[Card]:
    first, rest = list(NEEDED), [*REST, *chance.sample(CUTS, CUTS_A_ROUND)]
    if own_server:
        rest += [chance.choice(RESTARTS), Card("flush")]
    chance.shuffle(first)
    chance.shuffle(rest)
    return first + rest


def _drawn(card: Card, begin_s: float, interval_s: float, chance: Random) -> Fault:
    return Fault(
        at_s=round(begin_s + chance.uniform(0.05, 0.4) * interval_s, 3),
        kind=card.kind,
        how=card.how,
        way=chance.choice(card.ways) if card.ways else None,
        seconds=round(chance.uniform(card.least_s, card.most_s), 3),
        draw=chance.random(),
    )
