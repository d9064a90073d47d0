"""Every scenario by name, and every side that a measured process can be.

A new scenario is a module with `SIDES` and `run`, and one line here.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from . import dedupe, drain, enqueue, limits
from .document import Result
from .duel import Size
from .lab import Lab
from .measure import Order, Sample


class Scenario(msgspec.Struct, frozen=True):
    """One thing that can be measured; `run` yields a result per variant."""

    summary: str
    run: Callable[[Lab, Size], Iterator[Result]]


SCENARIOS: Mapping[str, Scenario] = {
    "enqueue": Scenario("enqueue_many and enqueue_many_sync beside a bare loop of script calls", enqueue.run),
    "dedupe": Scenario("jobs with a dedupe key each beside the same without, added and drained", dedupe.run),
    "drain": Scenario("one worker draining no-op async jobs beside a bare loop of reads", drain.run),
    "limits": Scenario("rates and concurrency: how exact, at what cost, and how fair", limits.run),
}

SIDES: Mapping[str, Callable[[Order], Sample]] = {**enqueue.SIDES, **dedupe.SIDES, **drain.SIDES, **limits.SIDES}
