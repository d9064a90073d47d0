"""A queue by its name: the limits that this app's workers keep, and what is done to it at run time."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from streamjobs.client.talk import Talk, atalk, talk
from streamjobs.core.limits import Concurrency, KeepDead, Limit, Rate
from streamjobs.core.names import check_name
from streamjobs.core.registry import Handler
from streamjobs.dead import DeadLetters, Place
from streamjobs.operate import purge as purging
from streamjobs.operate import queues
from streamjobs.operate.limits import Off, change, changes
from streamjobs.operate.live import Selection
from streamjobs.protocol import upkeep
from streamjobs.protocol.keys import QueueKeys

T = TypeVar("T")


class Queue:
    """One queue. Made by `app.queue(name)`."""

    def __init__(self, place: Place, name: str, find: Callable[[str], Handler | None]) -> None:
        """`find`: returns the app's handler of a kind."""
        self.name = check_name(name, "queue")
        self.dead = DeadLetters(place, self.name, find)
        """Its dead jobs, to look at, replay and purge."""
        self.limits: tuple[Limit, ...] = ()
        """Of the whole queue, as the code has them."""
        self._place = place

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    async def limit(
        self,
        *,
        rate: Rate | Off | None = None,
        concurrency: Concurrency | int | Off | None = None,
        kind: str | None = None,
        key: str | None = None,
        reset: bool = False,
        max_waiting: int | Off | None = None,
        keep_dead: KeepDead | Off | None = None,
    ) -> None:
        """Change limits at run time, in all workers, within a second. What is set here goes before the code.

        How many jobs may wait holds for all producers, at once.

        Args:
            rate: a new rate; "off" for none.
            concurrency: a new concurrency; "off" for none.
            kind: whose limit is meant; default that of the whole queue.
            key: the argument of the kind for each of whose values it holds; a `Rate` or a `Concurrency` may
                name it itself.
            reset: go back to what the code says.
            max_waiting: how many jobs may wait in the queue; "off" for any number.
            keep_dead: how many dead jobs are kept, or with a timedelta how long; "off" for all.

        Raises:
            InvalidOption: there is nothing to change, or it contradicts itself.
        """
        connections, namespace = self._place()
        values = changes(rate, concurrency, kind, key, reset, max_waiting, keep_dead)
        await atalk(connections.aio(), change(QueueKeys(namespace, self.name), values))

    def limit_sync(
        self,
        *,
        rate: Rate | Off | None = None,
        concurrency: Concurrency | int | Off | None = None,
        kind: str | None = None,
        key: str | None = None,
        reset: bool = False,
        max_waiting: int | Off | None = None,
        keep_dead: KeepDead | Off | None = None,
    ) -> None:
        """As `limit`, for plain code."""
        connections, namespace = self._place()
        values = changes(rate, concurrency, kind, key, reset, max_waiting, keep_dead)
        talk(connections.sync(), change(QueueKeys(namespace, self.name), values))

    async def pause(self) -> bool:
        """Let no job start until the queue is resumed; jobs that run go on. False if it was paused already.

        Raises:
            NotFound: there is no such queue: nothing was enqueued to it, and no worker came.
        """
        return await self._talk(lambda namespace: queues.pause(namespace, self.name))

    def pause_sync(self) -> bool:
        """As `pause`, for plain code."""
        return self._talk_sync(lambda namespace: queues.pause(namespace, self.name))

    async def resume(self) -> bool:
        """Let jobs start again; False if it was not paused.

        Raises:
            NotFound: there is no such queue.
        """
        return await self._talk(lambda namespace: queues.resume(namespace, self.name))

    def resume_sync(self) -> bool:
        """As `resume`, for plain code."""
        return self._talk_sync(lambda namespace: queues.resume(namespace, self.name))

    async def purge(self, *, kinds: Sequence[str] = (), reason: str = "purged by request") -> int:
        """End the jobs that have not started, as cancelled, in bounded steps; those that run go on.

        Args:
            kinds: only jobs of these kinds.
            reason: kept with the results of those that keep one.

        Returns:
            How many were ended.
        """
        return (await self._talk(lambda namespace: self._purge(namespace, kinds, reason))).jobs

    def purge_sync(self, *, kinds: Sequence[str] = (), reason: str = "purged by request") -> int:
        """As `purge`, for plain code."""
        return self._talk_sync(lambda namespace: self._purge(namespace, kinds, reason)).jobs

    def _purge(self, namespace: str, kinds: Sequence[str], reason: str) -> Talk[purging.Purged]:
        keys = QueueKeys(namespace, self.name)
        [now_ms] = yield [upkeep.server_time()]
        # What is enqueued from now on is not meant.
        return (yield from purging.purge(keys, purging.STATES, Selection(tuple(kinds), until_ms=now_ms), reason))

    async def _talk(self, conversation: Callable[[str], Talk[T]]) -> T:
        connections, namespace = self._place()
        return await atalk(connections.aio(), conversation(namespace))

    def _talk_sync(self, conversation: Callable[[str], Talk[T]]) -> T:
        connections, namespace = self._place()
        return talk(connections.sync(), conversation(namespace))
