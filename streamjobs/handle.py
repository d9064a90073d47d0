"""What an enqueue returns: a light value that can ask for its job."""

import asyncio
from time import monotonic
from typing import Any, Generic, TypeVar

import msgspec

from streamjobs.client import Connections
from streamjobs.client.talk import atalk, talk
from streamjobs.core.errors import ResultTimeout, UsageError
from streamjobs.core.job import Job
from streamjobs.operate import jobs
from streamjobs.operate.jobs import JobStatus
from streamjobs.protocol.keys import QueueKeys

R = TypeVar("R")


class Handle(msgspec.Struct, Generic[R], frozen=True, gc=False, eq=False):
    """One enqueued job.

    `duplicate`: its dedupe key was held, and this is the holder: a job that was there before.
    """

    _connections: Connections
    _keys: QueueKeys
    _local: str
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

    async def result(self, timeout: float = 60.0) -> R:
        """Wait until the job has ended, without polling; return what its handler returned.

        Args:
            timeout: seconds to wait.

        Raises:
            JobFailed, JobCancelled: it ended without a result.
            ResultTimeout: it has not ended in time; it goes on.
            NotFound: its result was not kept, or has expired.
            UsageError: its result is not kept: enqueue it with `result_ttl`.
        """
        self._check_kept()
        executor = self._connections.aio()
        try:
            async with asyncio.timeout(timeout), executor.listen(self._keys.done) as endings:
                status = await executor.run(jobs.lookup(self._keys, self._local))
                if not jobs.ended(status):
                    async for local in endings:
                        if local.decode() == self._local:
                            break
                    status = await executor.run(jobs.lookup(self._keys, self._local))
        except TimeoutError as error:
            raise self._late(timeout) from error
        return self._outcome(status)

    def result_sync(self, timeout: float = 60.0) -> R:
        """As `result`."""
        self._check_kept()
        executor = self._connections.sync()
        deadline = monotonic() + timeout
        with executor.listen(self._keys.done, timeout) as endings:
            status = executor.run(jobs.lookup(self._keys, self._local))
            if not jobs.ended(status):
                for local in endings:
                    if local.decode() == self._local:
                        break
                status = executor.run(jobs.lookup(self._keys, self._local))
        if not jobs.ended(status) and monotonic() >= deadline:
            raise self._late(timeout)
        return self._outcome(status)

    def _outcome(self, status: JobStatus) -> R:
        result: R = jobs.outcome(status)
        return result

    def _check_kept(self) -> None:
        if not self._keeps_result:
            raise UsageError(f"job {self.id} keeps no result: set result_ttl on its kind or when it is enqueued")

    def _late(self, timeout: float) -> ResultTimeout:
        return ResultTimeout(f"job {self.id} has not ended within {timeout:g} s; it goes on")


def handle_of(connections: Connections, keys: QueueKeys, job: Job, local: str, duplicate: bool) -> Handle[Any]:
    """Make the handle of a job that was sent; of a holder it is not known whether it keeps its result."""
    return Handle(connections, keys, local, duplicate, duplicate or job.meta.result_ttl_ms > 0)
