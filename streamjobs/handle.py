"""What an enqueue returns: a light value that can ask for its job."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from math import inf
from time import monotonic, sleep
from typing import Any, Generic, TypeVar

import msgspec

from streamjobs.client import Connections
from streamjobs.client.talk import Talk, atalk, talk
from streamjobs.core.errors import InvalidOption, OutcomeUnknown, ResultTimeout, Unavailable, UsageError
from streamjobs.core.job import Job
from streamjobs.core.options import EnqueueOptions
from streamjobs.core.registry import Registry
from streamjobs.operate import jobs
from streamjobs.operate.jobs import JobStatus
from streamjobs.protocol.keys import QueueKeys

R = TypeVar("R")

LISTEN_AGAIN_S = 0.5
"""After this long a broken listening connection is made anew."""


class Handle(msgspec.Struct, Generic[R], frozen=True, gc=False, eq=False):
    """One enqueued job.

    `duplicate`: its dedupe key was held, and this is the holder: a job that was there before. In the mode
    `Latest` it has the newer arguments now, or runs, and a job with them follows it.
    """

    _connections: Connections
    _registry: Registry
    _keys: QueueKeys
    _local: str
    _kind: str = ""
    """Empty where it is not known."""
    duplicate: bool = False
    _keeps_result: bool = True

    @property
    def id(self) -> str:
        """The job's id, such as `mail:1764412345678-0`; the same for as long as anything is known of it."""
        return self._keys.job_id(self._local)

    @property
    def queue(self) -> str:
        return self._keys.queue

    def __repr__(self) -> str:
        return f"<Handle {self.id}{' duplicate' if self.duplicate else ''}>"

    async def status(self) -> JobStatus:
        """Look the job up.

        Raises:
            NotFound: there is no such job.
        """
        return await self._connections.aio().run(jobs.lookup(self._keys, self._local))

    def status_sync(self) -> JobStatus:
        """As `status`."""
        return self._connections.sync().run(jobs.lookup(self._keys, self._local))

    async def cancel(self, reason: str = "cancelled by request") -> bool:
        """End the job as cancelled, whatever its state; a handler that runs it is told at the next renewal.

        Returns:
            Whether it was running.

        Raises:
            NotFound: there is no such job.
            Refused: it has ended already.
        """
        return await atalk(self._connections.aio(), jobs.cancel(self._keys, self._local, reason))

    def cancel_sync(self, reason: str = "cancelled by request") -> bool:
        """As `cancel`."""
        return talk(self._connections.sync(), jobs.cancel(self._keys, self._local, reason))

    async def reschedule(self, *, delay: float | timedelta | None = None, at: datetime | None = None) -> None:
        """Give the job another time, sooner or later: one that is delayed, snoozed, or waits for a retry.

        Args:
            delay: seconds from the server's receipt; 1 ms to 10 years.
            at: an instant with a time zone.

        Raises:
            InvalidOption: neither or both are given, or the one is outside its range.
            NotFound: there is no such job.
            Refused: it is not scheduled: it waits, runs, or has ended.
        """
        await atalk(self._connections.aio(), self._reschedule(delay, at))

    def reschedule_sync(self, *, delay: float | timedelta | None = None, at: datetime | None = None) -> None:
        """As `reschedule`."""
        talk(self._connections.sync(), self._reschedule(delay, at))

    def _reschedule(self, delay: float | timedelta | None, at: datetime | None) -> Talk[None]:
        if delay is None and at is None:
            raise InvalidOption("reschedule: give delay or at")
        time = EnqueueOptions(delay=delay, at=at)
        return jobs.reschedule(self._keys, self._local, time.delay_ms, time.at_ms)

    async def run_now(self) -> None:
        """Let a scheduled job run at once; see `reschedule`."""
        await atalk(self._connections.aio(), jobs.reschedule(self._keys, self._local, 0))

    def run_now_sync(self) -> None:
        """As `run_now`."""
        talk(self._connections.sync(), jobs.reschedule(self._keys, self._local, 0))

    async def result(self, timeout: float | None = 60.0) -> R:
        """Wait until the job has ended, without polling; return what its handler returned.

        A connection that breaks meanwhile is made anew.

        Args:
            timeout: seconds to wait, 0 to look once; None waits for as long as it takes.

        Raises:
            JobFailed, JobCancelled: it ended without a result.
            ResultTimeout: it has not ended in time; it goes on.
            NotFound: its result was not kept, or has expired.
            UsageError: its result is not kept: enqueue it with `result_ttl`.
            Unavailable: the server cannot be reached at all.
        """
        self._check_kept()
        status = await self.status()
        if not jobs.ended(status):
            try:
                async with asyncio.timeout(timeout):
                    status = await self._end()
            except TimeoutError as error:
                raise self._late(timeout) from error
        return self._outcome(status)

    async def _end(self) -> JobStatus:
        executor = self._connections.aio()
        while True:
            with suppress(Unavailable, OutcomeUnknown):
                async with executor.listen(self._keys.done) as endings:
                    # Looked up once the ear is there: what ends from here on is heard.
                    status = await self.status()
                    if jobs.ended(status):
                        return status
                    async for local in endings:
                        if local.decode() == self._local:
                            return await self.status()
            await asyncio.sleep(LISTEN_AGAIN_S)

    def result_sync(self, timeout: float | None = 60.0) -> R:
        """As `result`."""
        self._check_kept()
        status = self.status_sync()
        if not jobs.ended(status):
            deadline = inf if timeout is None else monotonic() + timeout
            status = self._end_sync(deadline) or status
        if not jobs.ended(status):
            raise self._late(timeout)
        return self._outcome(status)

    def _end_sync(self, deadline: float) -> JobStatus | None:
        executor = self._connections.sync()
        while (left := deadline - monotonic()) > 0:
            with suppress(Unavailable, OutcomeUnknown), executor.listen(self._keys.done, min(left, 3600)) as endings:
                status = self.status_sync()
                if jobs.ended(status):
                    return status
                for local in endings:
                    if local.decode() == self._local:
                        return self.status_sync()
            sleep(max(0.0, min(LISTEN_AGAIN_S, deadline - monotonic())))
        return None

    async def wait(self, timeout: float | None = 60.0) -> JobStatus:
        """Wait until the job has ended, however, and whether or not its result is kept; asks twice a second.

        Args:
            timeout: seconds to wait, 0 to look once; None waits for as long as it takes.

        Returns:
            How it ended: `state` is `finished` where that is not kept, and it was done or cancelled.

        Raises:
            ResultTimeout: it has not ended in time; it goes on.
            NotFound: there is no such job.
        """
        return await atalk(self._connections.aio(), jobs.wait(self._keys, self._local, timeout))

    def wait_sync(self, timeout: float | None = 60.0) -> JobStatus:
        """As `wait`."""
        return talk(self._connections.sync(), jobs.wait(self._keys, self._local, timeout))

    def _outcome(self, status: JobStatus) -> R:
        value = jobs.outcome(status)
        handler = self._registry.find(self._kind)
        result: R = value if handler is None else handler.signature.result(value)
        return result

    def _check_kept(self) -> None:
        if not self._keeps_result:
            raise UsageError(f"job {self.id} keeps no result: set result_ttl on its kind or when it is enqueued")

    def _late(self, timeout: float | None) -> ResultTimeout:
        return jobs.late(self.id, timeout)


def handle_of(
    connections: Connections, registry: Registry, keys: QueueKeys, job: Job, local: str, duplicate: bool
) -> Handle[Any]:
    """Make the handle of a job that was sent; of a holder it is not known whether it keeps its result."""
    keeps = duplicate or job.meta.result_ttl_ms > 0
    return Handle(connections, registry, keys, local, job.kind, duplicate, keeps)
