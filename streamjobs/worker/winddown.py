"""End a worker: give back what has not started, wait for what runs, then give that back too."""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from time import monotonic
from typing import Any

from streamjobs.core.text import plural
from streamjobs.protocol import leases
from streamjobs.worker.background import end
from streamjobs.worker.execution import Ending, Execution
from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.promote import Promoter
from streamjobs.worker.run import Runner
from streamjobs.worker.settle import Settler
from streamjobs.worker.start import Starter
from streamjobs.worker.station import Station

log = logging.getLogger("streamjobs.worker")

LAST_CALL_S = 2.0
"""How long cancelled handlers have to end before their jobs are given back without them."""
AT_ONCE_S = 1.0
"""How long a worker that was told to end at once takes to say so to the server."""


class WindDown:
    """The end of one worker. `aborting` cuts each of its waits short."""

    def __init__(
        self, station: Station, aborting: asyncio.Event, settler: Settler, runner: Runner, starter: Starter
    ) -> None:
        self._station = station
        self._aborting = aborting
        self._settler = settler
        self._runner = runner
        self._starter = starter
        self._deadline = monotonic() + station.options.ms("grace") / 1000

    async def give_up_bell(self, promoter: Promoter, promoting: "asyncio.Task[None]") -> None:
        """Leave the bell to others: else it would ring here, and in vain, for what this worker gives back."""
        self._starter.hold()
        await self._within(promoter.wake(), AT_ONCE_S)
        await asyncio.wait([promoting], timeout=0.1)
        await end([promoting])
        await promoter.close()

    async def run(self, fetcher: Fetcher, fetching: "asyncio.Task[None]") -> bool:
        """Wind down; return whether every handler ended by itself and everything was settled."""
        self._starter.stop()
        await self._end_reading(fetcher, fetching)
        # The last read may have brought something.
        self._starter.stop()
        await self._within(self._starter.stopped(), self._left_s())
        while self._runner.running and self._left_s() > 0:
            self._starter.room.clear()
            await self._within(self._starter.room.wait(), self._left_s())
        clean = self._runner.running == 0
        await self._interrupt()
        if not await self._within(self._settler.drained(), self._left_s()):
            await last_call(self._settler.drained())
        settled_all = await self._settler.close()
        await self._say_last()
        return clean and settled_all

    async def _say_last(self) -> None:
        """Write what was measured, and be forgotten at once where nothing is held any more; elsewhere other workers
        see to it.
        """
        station = self._station
        retire = [leases.retire(queue.keys, [station.consumer]) for queue in station.queues]
        await last_call(asyncio.gather(self._settler.times.tick(), station.executor.run_all(retire)))

    def _left_s(self) -> float:
        return 0.0 if self._aborting.is_set() else max(0.0, self._deadline - monotonic())

    async def _end_reading(self, fetcher: Fetcher, fetching: "asyncio.Task[None]") -> None:
        """End a blocked read without cancelling it: a reply lost that way is a claim nobody knows of."""
        while not fetching.done() and self._left_s() > 0:
            await self._within(fetcher.nudge(), self._left_s())
            await asyncio.wait([fetching], timeout=0.1)
        await end([fetching])

    async def _within(self, what: Coroutine[Any, Any, Any], seconds: float) -> bool:
        """Wait for something, at most this long and not beyond an abort; say whether it came to its end.

        A server that hangs must not hold up the end of a worker: what is not done by then is cancelled.
        """
        waiting = asyncio.ensure_future(what)
        aborting = asyncio.create_task(self._aborting.wait())
        await asyncio.wait([waiting, aborting], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        done = waiting.done()
        await end([waiting, aborting])
        return done

    async def _interrupt(self) -> None:
        """Cancel what still runs; what does not end even then is given back without waiting for it."""
        left = [one for queue in self._station.queues for one in list(queue.held.values()) if one.runs]
        if left:
            some = ", ".join(one.job_id for one in left[:5]) + (" ..." if len(left) > 5 else "")
            log.warning("%s cancelled and given back: %s", plural(len(left), "running job"), some)
        for execution in left:
            end_run(execution, Ending.STOP)
        cancelled = [one.task for one in left if one.task and one.handler and one.handler.ends_when_cancelled]
        if cancelled:
            await asyncio.wait(cancelled, timeout=0.1 if self._aborting.is_set() else LAST_CALL_S)
        for execution in left:
            if execution.runs:
                self._settler.release(execution)
        for queue in self._station.queues:
            for execution in list(queue.held.values()):
                # A suspect that was on its way to a start when the end came at once.
                if execution.task is None and not execution.settling:
                    self._settler.release(execution)


def end_run(execution: Execution, ending: Ending) -> None:
    """Tell a handler that its run no longer counts; cancel it if it can be."""
    execution.ending = ending
    execution.lost.set()
    execution.cancel()


async def last_call(what: Awaitable[Any]) -> None:
    """Wait for something for the time that is left even to a worker that is to end at once."""
    waiting = asyncio.ensure_future(what)
    await asyncio.wait([waiting], timeout=AT_ONCE_S)
    await end([waiting])
