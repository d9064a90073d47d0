"""Add jobs at an even pace until told to stop: `python -m benchmarks.chaos.producer plain|async SEED FIRST JOBS_PER_S`.

`plain` sends batches from plain code; `async` sends single jobs at once, which share calls by themselves.
Half of those whose outcome is unknown are asked for later, as a program would that needs to know.
"""

import asyncio
import inspect
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any

from streamjobs import Handle, Job, OutcomeUnknown, StreamJobs, StreamJobsError
from tests.faults.recorder import Recorder

from .jobs import make_app, make_job, open_recorder

PAUSE_S = 0.05
MOST = 100
"""Jobs sent at once; after an outage the missing ones follow in such portions."""
ASKED_AFTER_S = 2.0

Outcomes = Sequence[Handle[Any] | BaseException]
Send = Callable[[list[Job]], Awaitable[Outcomes]]


class Producer:
    """Sends job after job, and records what it is told of each."""

    def __init__(self, recorder: Recorder, app: StreamJobs, seed: int, *, batch: bool) -> None:
        self._recorder, self._app, self._seed, self._batch = recorder, app, seed, batch
        self._unknown: list[tuple[float, int, OutcomeUnknown]] = []
        self.stopping = asyncio.Event()

    async def run(self, first: int, jobs_per_s: float) -> None:
        """Send jobs from number `first` on until `stopping`; what failed is made up for by later ones."""
        began, accepted, n = monotonic(), 0, first
        while not self.stopping.is_set():
            due = int((monotonic() - began) * jobs_per_s) - accepted
            numbers = range(n, n + max(0, min(MOST, due)))
            n = numbers.stop
            accepted += await self._send([make_job(self._app, self._seed, number) for number in numbers])
            await self._ask(monotonic() - ASKED_AFTER_S)
            await asyncio.sleep(PAUSE_S)
        await self._ask(monotonic())

    async def _send(self, jobs: list[Job]) -> int:
        """Send jobs; return how many there are now that were not there before."""
        calls = self._recorder.called(jobs, batch=self._batch)
        outcomes = self._app.enqueue_many_sync(jobs) if self._batch else await self._one_by_one(jobs)
        self._recorder.answered(calls, outcomes)
        for call, outcome in zip(calls, outcomes, strict=True):
            if isinstance(outcome, OutcomeUnknown) and call % 2:
                self._unknown.append((monotonic(), call, outcome))
        return sum(isinstance(outcome, Handle) and not outcome.duplicate for outcome in outcomes)

    async def _one_by_one(self, jobs: list[Job]) -> Outcomes:
        sent = [self._app.enqueue_many([job]) for job in jobs]
        return [outcome for [outcome] in await asyncio.gather(*sent)]

    async def _ask(self, before: float) -> None:
        """Ask what became of the jobs that have been unknown since before that time."""
        while self._unknown and self._unknown[0][0] <= before:
            _, call, error = self._unknown.pop(0)
            try:
                handle = error.retry()
                outcome = await handle if inspect.isawaitable(handle) else handle
            except StreamJobsError as again:
                self._recorder.answered([call], [again])
                # The others would wait as long, one by one.
                return
            self._recorder.answered([call], [outcome])


async def main(mode: str, seed: str, first: str, jobs_per_s: str) -> None:
    """Be a producer until SIGTERM."""
    recorder = open_recorder("producer")
    app = make_app(recorder)
    producer = Producer(recorder, app, int(seed), batch=mode == "plain")
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, producer.stopping.set)
    await producer.run(int(first), float(jobs_per_s))
    await app.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
