"""Ours beside a bare loop: the same life of the same jobs by two pairs of sides, in turn.

A cycle adds jobs and drains them again, and one of the two parts counts. Both sides' cycles run
interleaved, so that a slow minute of the machine hits both, and swap their order every repeat. A
cycle that leaves anything behind, or counts other than it was given, makes the result void.
"""

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from .document import Result
from .lab import Lab, SideFailed
from .measure import Order, Sample, Spread
from .progress import tell


class Size(msgspec.Struct, frozen=True):
    """How much is measured: repeats, and jobs in each."""

    repeats: int
    jobs: int

    @property
    def quick(self) -> bool:
        """Whether a minute for a scenario is what there is."""
        return self.repeats <= QUICK.repeats

    def part(self, divisor: int) -> "Size":
        """Return a size of so much fewer jobs, for what takes so much longer."""
        return Size(self.repeats, max(1, self.jobs // divisor))


FULL = Size(5, 200_000)
QUICK = Size(3, 100_000)


class Cycle(msgspec.Struct, frozen=True):
    """Which sides add and drain the jobs. Without a drain they are only counted: what adds is what matters."""

    enqueue: str
    drain: str = ""
    workers: int = 1
    """Processes that drain."""
    at_once: bool = False
    """Add and drain at the same time."""
    times: int = 1
    """So many times the jobs of a repeat, for what would be over at once."""


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
    how: dict[str, float] = {}
    """What its sides take besides."""
    figures: Callable[[float], dict[str, float]] = lambda jobs_per_s: {}
    """What else our jobs/s say."""


class Round(msgspec.Struct, frozen=True):
    """What one cycle gave."""

    enqueued: Sample
    drained: Sample | None
    bytes_per_job: float


class Void(Exception):
    """A cycle whose numbers must not be used; the message says what was wrong."""


def fight(lab: Lab, duel: Duel, size: Size) -> Result:
    """Run a duel and return its result, which is void if any cycle was."""
    ours: list[Round] = []
    bare: list[Round] = []
    try:
        for cycle in {duel.ours, duel.bare} - lab.warm:
            # The warm-up counts for nothing.
            run_cycle(lab, cycle, lab.order(max(1, cycle.times * size.jobs // 10), **duel.how))
            lab.warm.add(cycle)
        for step, cycle in enumerate(_turns(duel, size.repeats), 1):
            mine = cycle is duel.ours
            done = run_cycle(lab, cycle, lab.order(cycle.times * size.jobs, **duel.how))
            (ours if mine else bare).append(done)
            _tell(duel, step, 2 * size.repeats, "ours" if mine else "bare", done)
    except (Void, SideFailed) as error:
        return Result(scenario=duel.scenario, variant=duel.variant, void=str(error), **msgspec.structs.asdict(size))
    return judge(duel, size, ours, bare)


def _turns(duel: Duel, repeats: int) -> Iterator[Cycle]:
    pair = (duel.ours, duel.bare)
    for repeat in range(repeats):
        yield from pair if repeat % 2 == 0 else reversed(pair)


def run_cycle(lab: Lab, cycle: Cycle, order: Order) -> Round:
    """Add the jobs of an order, drain them, and leave none of its keys.

    Raises:
        Void: jobs are missing, left over or too many.
        SideFailed: a side ended without a sample.
    """
    try:
        return _together(lab, cycle, order) if cycle.at_once else _in_turn(lab, cycle, order)
    finally:
        lab.wipe(order)


def _together(lab: Lab, cycle: Cycle, order: Order) -> Round:
    enqueued, drained = lab.run_together((cycle.enqueue, order), (cycle.drain, order))
    drained = msgspec.structs.replace(drained, client_s=enqueued.client_s + drained.client_s)
    _check_drained(lab, cycle, order, drained)
    expect(order.jobs, enqueued.jobs, f"jobs that {cycle.enqueue} says it added")
    return Round(enqueued, drained, 0.0)


def _in_turn(lab: Lab, cycle: Cycle, order: Order) -> Round:
    jobs = order.jobs
    with lab.ready(cycle.enqueue, *[cycle.drain] * cycle.workers if cycle.drain else ()) as [adding, *draining]:
        before = lab.used_memory()
        adding.give(order)
        enqueued = adding.sample()
        grown = lab.used_memory() - before
        expect(jobs, lab.waiting(order), f"jobs waiting after {cycle.enqueue}")
        expect(jobs, enqueued.jobs, f"jobs that {cycle.enqueue} says it added")
        if not draining:
            return Round(enqueued, None, grown / jobs)
        for side in draining:
            side.give(order)
        drained = _shared([side.sample() for side in draining])
    _check_drained(lab, cycle, order, drained)
    return Round(enqueued, drained, grown / jobs)


def _check_drained(lab: Lab, cycle: Cycle, order: Order, drained: Sample) -> None:
    expect(0, lab.waiting(order), f"entries left by {cycle.drain}")
    expect(0, lab.pending(order), f"entries pending after {cycle.drain}")
    expect(order.jobs, drained.jobs, f"jobs counted done by {cycle.drain}")


def _shared(samples: list[Sample]) -> Sample:
    """Return what several processes did together; each has seen all jobs done, and the first to see it is right."""
    first = min(samples, key=lambda sample: sample.seconds)
    return msgspec.structs.replace(first, client_s=sum(sample.client_s for sample in samples))


def expect(right: int, found: int, what: str) -> None:
    """Raise Void unless a number is the right one."""
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
        bytes_per_waiting_job=None if duel.ours.at_once else Spread.of((done.bytes_per_job for done in ours), 1).median,
        baseline_doubtful=bare_client > duel.bare_limit_us,
        base=duel.base,
        figures=_figures(duel, mine),
    )


def _figures(duel: Duel, samples: list[Sample]) -> dict[str, Spread]:
    found = [duel.figures(sample.jobs_per_s) for sample in samples]
    return {name: Spread.of((one[name] for one in found), 3) for name in found[0]}


def _tell(duel: Duel, step: int, steps: int, side: str, done: Round) -> None:
    sample: Sample = getattr(done, duel.measured)
    said = f"{sample.jobs_per_s:,.0f} jobs/s, {sample.client_us:.2f} µs client, {sample.server_us:.2f} µs server"
    tell(f"{duel.scenario} {duel.variant}", step, steps, f"{side}: {said}")
