"""Scenario `scripts`: what each script of a job's life costs the server, by the size of its batch.

For each script and size the median over some calls of the server's CPU time per job, from reading the call to
writing its reply. On a server that others use at the same time, theirs counts too.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from statistics import median
from time import monotonic
from typing import Any

from streamjobs.client import Connections
from streamjobs.client.sync import SyncExecutor
from streamjobs.core.job import Claim, Job
from streamjobs.protocol import intake, leases, settle, upkeep
from streamjobs.protocol.calls import Call, Command
from streamjobs.protocol.keys import QueueKeys

from .document import Result
from .duel import Size
from .jobs import KIND, QUEUE, body
from .lab import Lab
from .measure import Order, Sample
from .trial import trials

BATCHES = (1, 10, 100, 500)
MOST = {"promote": 200, "reclaim": 20}
"""Of jobs in a call, where it is fewer than 500."""
CALLS = 30
CONSUMER = "bench"
LEASE_MS = 15_000
META = b'{"f":1}'
LATER_MS = 60_000
ROOM = 10**6


class Bench:
    """One queue, and the calls that prepare others."""

    def __init__(self, executor: SyncExecutor, order: Order) -> None:
        self.executor = executor
        self.keys = QueueKeys(order.namespace, QUEUE)
        self._batches = 0

    def add(self, jobs: int, delay_ms: int = 0) -> Call[Any]:
        """Return the call that adds so many."""
        self._batches += 1
        found = [Job(KIND, body(number), QUEUE, delay_ms=delay_ms) for number in range(jobs)]
        build = intake.schedule if delay_ms else intake.enqueue
        return build(self.keys, found, intake.Batch("bench", self._batches, "0"))

    def claim(self, jobs: int) -> list[Claim]:
        """Add and claim so many."""
        self.executor.run(self.add(jobs))
        [[_, entries]] = self.executor.run(leases.read([self.keys.stream], CONSUMER, jobs, None))
        return leases.claims(entries, monotonic())

    def endings(self, jobs: int) -> list[settle.Ending]:
        """Claim so many that are to be settled."""
        return [settle.Ending(one.entry, one.deliveries, one.entry.decode()) for one in self.claim(jobs)]

    def server_us(self) -> float:
        """Return what the server has spent, to ask included."""
        told: bytes = self.executor.run(Command(["INFO", "cpu"], lambda raw: raw))
        fields = dict(line.split(":", 1) for line in told.decode().splitlines() if ":" in line)
        return 1e6 * sum(float(fields[f"used_cpu_{name}"]) for name in ("user", "sys"))


def _complete(bench: Bench, jobs: int) -> Call[Any]:
    plain = [claim.entry for claim in bench.claim(jobs)]
    return settle.complete(bench.keys, [settle.Finished(KIND, plain=plain, sums={"done": jobs})])


def _retry(bench: Bench, jobs: int) -> Call[Any]:
    items = [settle.Postponement(ending, LATER_MS, META) for ending in bench.endings(jobs)]
    return settle.retry(bench.keys, CONSUMER, [(KIND, {"failed": jobs}, items)])


def _bury(bench: Bench, jobs: int) -> Call[Any]:
    items = [settle.Death(ending, "permanent", "meant", 1, b"[]") for ending in bench.endings(jobs)]
    return settle.bury(bench.keys, CONSUMER, [(KIND, {"failed": jobs}, items)])


def _renew(bench: Bench, jobs: int) -> Call[Any]:
    renewals = [leases.Renewal(one.entry, one.deliveries, one.entry.decode()) for one in bench.claim(jobs)]
    return leases.renew(bench.keys, CONSUMER, renewals)


def _release(bench: Bench, jobs: int) -> Call[Any]:
    givebacks = [leases.Giveback(one.entry, one.deliveries, 0) for one in bench.claim(jobs)]
    return leases.release(bench.keys, CONSUMER, LEASE_MS, givebacks)


def _take(bench: Bench, jobs: int) -> Call[Any]:
    bench.executor.run(_release(bench, jobs))
    return leases.take(bench.keys, CONSUMER, jobs, monotonic())


def _reclaim(bench: Bench, jobs: int) -> Call[Any]:
    bench.claim(jobs)
    return leases.reclaim(bench.keys, "another", 1, "-", jobs, monotonic())


def _promote(bench: Bench, jobs: int) -> Call[Any]:
    bench.executor.run(bench.add(jobs, LATER_MS))
    seconds = bench.executor.run(Command(["TIME"], lambda raw: int(raw[0])))
    later = str(1000 * seconds + 2 * LATER_MS)
    return upkeep.promote(bench.keys, CONSUMER, rung=False, note="", room=ROOM, most=jobs, clock=later)


SCRIPTS: dict[str, Callable[[Bench, int], Call[Any]]] = {
    "enqueue": lambda bench, jobs: bench.add(jobs),
    "schedule": lambda bench, jobs: bench.add(jobs, LATER_MS),
    "complete": _complete,
    "retry": _retry,
    "bury": _bury,
    "renew": _renew,
    "release": _release,
    "take": _take,
    "reclaim": _reclaim,
    "promote": _promote,
}
"""What prepares a call of each for a batch of so many jobs, and returns it."""


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield a result for each script."""
    yield from trials("scripts", {name: partial(_measure, lab, name) for name in SCRIPTS}, size.repeats)


def _measure(lab: Lab, name: str) -> Sample:
    figures = {}
    connections = Connections(lab.url)
    with closing(connections):
        for jobs in BATCHES:
            if jobs > MOST.get(name, BATCHES[-1]):
                continue
            with lab.ordered(jobs) as order:
                figures[f"µs a job, {jobs} in a call"] = _cost(Bench(connections.sync(), order), name, jobs) / jobs
    return Sample(0, 1.0, 0.0, 0.0, figures)


def _cost(bench: Bench, name: str, jobs: int) -> float:
    bench.executor.run(leases.join(bench.keys, LEASE_MS))
    found, asking = [], []
    for _ in range(CALLS):
        call = SCRIPTS[name](bench, jobs)
        asked = bench.server_us()
        before = bench.server_us()
        bench.executor.run(call)
        found.append(bench.server_us() - before)
        asking.append(before - asked)
    return median(found) - median(asking)
