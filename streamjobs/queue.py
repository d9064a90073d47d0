"""A queue by its name: the limits that this app's workers keep, and those that are set at run time."""

from collections.abc import Callable

from streamjobs.client.talk import atalk, talk
from streamjobs.core.limits import Concurrency, KeepDead, Limit, Rate
from streamjobs.core.names import check_name
from streamjobs.core.registry import Handler
from streamjobs.dead import DeadLetters, Place
from streamjobs.operate.limits import Off, change, changes
from streamjobs.protocol.keys import QueueKeys


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
