"""Ours beside a bare loop: the same life of the same jobs by two pairs of sides, in turn.

A cycle adds jobs and drains them again, and one of the two parts counts. Both sides' cycles run
interleaved, so that a slow minute of the machine hits both, and swap their order every repeat. A
cycle that leaves anything behind, or counts other than it was given, makes the result void.
"""

import sys
from collections.abc import Iterator
from typing import Literal

import msgspec

from .document import Result
from .lab import Lab, SideFailed
from .measure import Order, Sample, Spread


class Size(msgspec.Struct, frozen=True):
    """How much is measured: repeats, and jobs in each."""

    repeats: int
    jobs: int


FULL = Size(5, 200_000)
QUICK = Size(3, 100_000)


class Cycle(msgspec.Struct, frozen=True):
    """Which sides add and drain the jobs."""

    enqueue: str
    drain: str


class Duel(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of a scenario.

    `bare_limit_us`: a bare loop that costs its client more than this per job is a bad baseline. `base`: what
    it is, where it is none.
    """

    scenario: str
    variant: str
    ours: Cycle
    bare: Cycle
    measured: Literal["enqueued", "drained"]
    bare_limit_us: float
    base: str = "bare loop"


class Round(msgspec.Struct, frozen=True):
    """What one cycle gave."""

    enqueued: Sample
    drained: Sample
    bytes_per_job: float


class Void(Exception):
    """A cycle whose numbers must not be used; the message says what was wrong."""


def fight(lab: Lab, duel: Duel, size: Size) -> Result:
    """Run a duel and return its result, which is void if any cycle was."""
    ours: list[Round] = []
    bare: list[Round] = []
    try:
        for repeat, cycle in _turns(duel, size.repeats):
            mine = cycle is duel.ours
            done = run_cycle(lab, cycle, lab.order(size.jobs))
            (ours if mine else bare).append(done)
            _tell(duel, repeat, size.repeats, "ours" if mine else "bare", done)
    except (Void, SideFailed) as error:
        return Result(scenario=duel.scenario, variant=duel.variant, void=str(error), **msgspec.structs.asdict(size))
    return judge(duel, size, ours, bare)


def _turns(duel: Duel, repeats: int) -> Iterator[tuple[int, Cycle]]:
    pair = (duel.ours, duel.bare)
    for repeat in range(repeats):
        for cycle in pair if repeat % 2 == 0 else reversed(pair):
            yield repeat, cycle


def run_cycle(lab: Lab, cycle: Cycle, order: Order) -> Round:
    """Add the jobs of an order, drain them, and leave none of its keys.

    Raises:
        Void: jobs are missing, left over or too many.
        SideFailed: a side ended without a sample.
    """
    jobs = order.jobs
    try:
        before = lab.used_memory()
        enqueued = lab.run(cycle.enqueue, order)
        grown = lab.used_memory() - before
        _expect(jobs, lab.waiting(order), f"jobs waiting after {cycle.enqueue}")
        _expect(jobs, enqueued.jobs, f"jobs that {cycle.enqueue} says it added")
        drained = lab.run(cycle.drain, order)
        _expect(0, lab.waiting(order), f"entries left by {cycle.drain}")
        _expect(0, lab.pending(order), f"entries pending after {cycle.drain}")
        _expect(jobs, drained.jobs, f"jobs counted done by {cycle.drain}")
        return Round(enqueued, drained, grown / jobs)
    finally:
        lab.wipe(order)


def _expect(right: int, found: int, what: str) -> None:
    if found != right:
        raise Void(f"{what}: {found}, expected {right}")


def judge(duel: Duel, size: Size, ours: list[Round], bare: list[Round]) -> Result:
    """Return the medians and spreads of two lists of rounds, the n-th of each having run together."""
    mine = [getattr(done, duel.measured) for done in ours]
    base = [getattr(done, duel.measured) for done in bare]
    ratio = Spread.of((a.jobs_per_s / b.jobs_per_s for a, b in zip(mine, base, strict=True)), 3)
    bare_client = Spread.of((sample.client_us for sample in base), 3).median
    return Result(
        scenario=duel.scenario,
        variant=duel.variant,
        jobs=size.jobs,
        repeats=size.repeats,
        jobs_per_s=Spread.of((sample.jobs_per_s for sample in mine), 0),
        client_us_per_job=Spread.of((sample.client_us for sample in mine), 3).median,
        server_us_per_job=Spread.of((sample.server_us for sample in mine), 3).median,
        bare_jobs_per_s=Spread.of((sample.jobs_per_s for sample in base), 0),
        bare_client_us_per_job=bare_client,
        bare_server_us_per_job=Spread.of((sample.server_us for sample in base), 3).median,
        ratio_to_bare=ratio.median,
        ratio_spread=ratio,
        bytes_per_waiting_job=Spread.of((done.bytes_per_job for done in ours), 1).median,
        baseline_doubtful=bare_client > duel.bare_limit_us,
        base=duel.base,
    )


def _tell(duel: Duel, repeat: int, repeats: int, side: str, done: Round) -> None:
    sample: Sample = getattr(done, duel.measured)
    print(
        f"{duel.scenario} {duel.variant} {repeat + 1}/{repeats} {side}: {sample.jobs_per_s:,.0f} jobs/s,"
        f" {sample.client_us:.2f} µs client, {sample.server_us:.2f} µs server",
        file=sys.stderr,
        flush=True,
    )
