"""The dead letters of a queue, as programs work through them; the command line does the same."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict, TypeVar, Unpack

import msgspec

from streamjobs.client import Connections
from streamjobs.client.talk import Talk, atalk, talk
from streamjobs.core import codec, names
from streamjobs.core.errors import InvalidOption
from streamjobs.core.limits import Rate
from streamjobs.core.registry import Handler
from streamjobs.core.states import DeadReason
from streamjobs.operate import carry, dead
from streamjobs.operate import replay as replays
from streamjobs.operate.batches import Done
from streamjobs.operate.carry import Parsed, Restored
from streamjobs.operate.dead import Alike, Examined
from streamjobs.operate.edit import Edit
from streamjobs.operate.jobs import JobStatus
from streamjobs.operate.replay import How
from streamjobs.operate.scan import Named, Scan, Source, collect
from streamjobs.operate.selection import Selection
from streamjobs.protocol import upkeep
from streamjobs.protocol.keys import QueueKeys

T = TypeVar("T")
Place = Callable[[], tuple[Connections, str]]
"""Where the queue is now: an app may be moved before it has sent anything."""


class Which(TypedDict, total=False):
    """Which dead jobs are meant: those that fit all that is said."""

    kind: str | Sequence[str]
    reason: str | Sequence[str]
    error: str
    """A part of the last error's type or text, as it is or as `groups` has it."""
    error_class: str | Sequence[str]
    where: Mapping[str, Any]
    """Arguments by name."""
    since: datetime | timedelta
    """Died no longer ago than this, or since this instant."""
    until: datetime | timedelta
    ids: Sequence[str]
    limit: int
    """At most so many, the newest."""


class DeadPage(msgspec.Struct, frozen=True):
    """Some dead jobs, the newest first."""

    jobs: list[JobStatus]
    next: str
    """Where the next page begins; "" where there is none."""


class DeadLetters:
    """The dead jobs of one queue. Made by `app.queue(name).dead`.

    What dies while one of these methods works is not meant. Interrupted, they have done some batches and not the
    others; called again, they do the rest.
    """

    def __init__(self, place: Place, queue: str, find: Callable[[str], Handler | None]) -> None:
        self._place = place
        self._queue = queue
        self._find = find

    async def page(self, after: str = "", **which: Unpack[Which]) -> DeadPage:
        """Return some dead jobs, the newest first; 100 where no limit is given.

        Args:
            after: the `next` of an earlier page.
            which: what they have in common; see `Which`.

        Raises:
            InvalidOption: a value is outside its range.
            NotFound, Refused: a job that was named is not there, or not dead.
        """
        return await self._aio(self._page(after, which))

    def page_sync(self, after: str = "", **which: Unpack[Which]) -> DeadPage:
        """As `page`, for plain code."""
        return self._sync(self._page(after, which))

    def _page(self, after: str, which: Which) -> Talk[DeadPage]:
        source = yield from self._source(which, after=after, limit=100)
        found = yield from collect(source)
        return DeadPage(found, source.cursor if isinstance(source, Scan) else "")

    async def groups(self, **which: Unpack[Which]) -> list[Alike]:
        """Count the jobs that died alike: same kind, reason, error class, and an error that differs in nothing but what
        changes from job to job. The largest group first.
        """
        return await self._aio(self._groups(which))

    def groups_sync(self, **which: Unpack[Which]) -> list[Alike]:
        """As `groups`, for plain code."""
        return self._sync(self._groups(which))

    def _groups(self, which: Which) -> Talk[list[Alike]]:
        return (yield from dead.groups((yield from self._source(which))))

    async def examine(self, job_id: str) -> Examined:
        """Look at one dead job: whether it can be replayed, and why not.

        Raises:
            NotFound: there is no such job.
            Refused: it is not dead.
        """
        return await self._aio(dead.examine(self._place()[1], job_id))

    def examine_sync(self, job_id: str) -> Examined:
        """As `examine`, for plain code."""
        return self._sync(dead.examine(self._place()[1], job_id))

    async def replay(
        self,
        *,
        arguments: Mapping[str, Any] | None = None,
        check: bool = True,
        to: str = "",
        new_key: bool = False,
        rate: Rate | None = None,
        **which: Unpack[Which],
    ) -> Done:
        """Put dead jobs back: the same ids and arguments, attempts from 1.

        Args:
            arguments: by name, instead of those that a job has, or added; all others stay digit by digit.
            check: leave those dead whose arguments this app's handlers would not take; of kinds that it does not
                have nothing is checked.
            to: another queue, which must be there: the jobs are new ones there, and name the old.
            new_key: as new jobs with another `ctx.idempotency_key`.
            rate: at most so many; its key and burst mean nothing here.
            which: what they have in common; see `Which`.

        Returns:
            How many were put back, and which were left dead, each with the reason.

        Raises:
            NotFound: there is no such other queue.
        """
        return await self._aio(self._replay(_How(arguments, check, to, new_key, rate), which))

    def replay_sync(
        self,
        *,
        arguments: Mapping[str, Any] | None = None,
        check: bool = True,
        to: str = "",
        new_key: bool = False,
        rate: Rate | None = None,
        **which: Unpack[Which],
    ) -> Done:
        """As `replay`, for plain code."""
        return self._sync(self._replay(_How(arguments, check, to, new_key, rate), which))

    def _replay(self, how: "_How", which: Which) -> Talk[Done]:
        source = yield from self._source(which, frozen=True)
        return (yield from replays.replay(self._place()[1], source, how.of(self._find)))

    async def purge(self, **which: Unpack[Which]) -> Done:
        """Delete dead jobs for good; without a word of which, all."""
        return await self._aio(self._purge(which))

    def purge_sync(self, **which: Unpack[Which]) -> Done:
        """As `purge`, for plain code."""
        return self._sync(self._purge(which))

    def _purge(self, which: Which) -> Talk[Done]:
        source = yield from self._source(which, frozen=True)
        return (yield from dead.purge(self._place()[1], source))

    async def export(self, **which: Unpack[Which]) -> AsyncIterator[bytes]:
        """Yield dead jobs as lines of JSON, without line ends, the newest first; they stay dead."""
        source = await self._aio(self._source(which))
        while rows := await self._aio(source.rows()):
            for row in rows:
                if (line := carry.line(*row)) is not None:
                    yield line

    def export_sync(self, **which: Unpack[Which]) -> Iterator[bytes]:
        """As `export`, for plain code."""
        source = self._sync(self._source(which))
        while rows := self._sync(source.rows()):
            for row in rows:
                if (line := carry.line(*row)) is not None:
                    yield line

    async def restore(self, lines: Iterable[bytes]) -> Restored:
        """Put exported jobs back among the dead, in the queues that they were in.

        Those that are there in any form, dead or alive, are left alone. Nothing is done if a line is damaged.

        Raises:
            UsageError: a line is none that was exported.
        """
        return await self._aio(self._restore(lines))

    def restore_sync(self, lines: Iterable[bytes]) -> Restored:
        """As `restore`, for plain code."""
        return self._sync(self._restore(lines))

    def _restore(self, lines: Iterable[bytes]) -> Talk[Restored]:
        [now_ms] = yield [upkeep.server_time()]
        found: list[Parsed] = [carry.parse(line, now_ms) for line in lines if line.strip()]
        whole = Restored()
        # The last one first: so they lie in the same order as before.
        yield from carry.restore(self._place()[1], reversed(found), whole)
        return whole

    def _source(self, which: Which, *, after: str = "", limit: int = 0, frozen: bool = False) -> Talk[Source]:
        """Return what gives the jobs that are meant; `frozen`: not those that die from now on."""
        namespace = self._place()[1]
        _check(which)
        [now_ms] = yield [upkeep.server_time()]
        selection = _selection(which, now_ms, frozen)
        if ids := which.get("ids"):
            strangers = [one for one in ids if names.split_job_id(one)[0] != self._queue]
            if strangers:
                raise InvalidOption(f"job {strangers[0]} is not of queue {self._queue}")
            return Named(namespace, ids, selection)
        keys = QueueKeys(namespace, self._queue)
        return Scan([keys], selection, after=after, limit=which.get("limit", limit))

    async def _aio(self, conversation: Talk[T]) -> T:
        return await atalk(self._place()[0].aio(), conversation)

    def _sync(self, conversation: Talk[T]) -> T:
        return talk(self._place()[0].sync(), conversation)


class _How(msgspec.Struct, frozen=True):
    """How dead jobs are put back, as the methods take it."""

    arguments: Mapping[str, Any] | None
    check: bool
    to: str
    new_key: bool
    rate: Rate | None

    def of(self, find: Callable[[str], Handler | None]) -> How:
        if self.to:
            names.check_name(self.to, "queue")
        edit = Edit(self.arguments or {}, find, strangers=True) if self.check else Edit(self.arguments or {})
        per_s = 1_000_000 / self.rate.interval_us if self.rate else 0.0
        return How(self.to, self.new_key, edit if self.arguments or self.check else None, per_s)


def _check(which: Which) -> None:
    """Refuse what would mean all jobs where some were meant."""
    if unknown := which.keys() - Which.__annotations__.keys():
        raise InvalidOption(f"{min(unknown)}: no such selection; there are {', '.join(Which.__annotations__)}")
    for name, value in which.items():
        if value in ("", [], (), {}):
            raise InvalidOption(f"{name}={value!r}: it is empty; leave it out to mean all")
    limit = which.get("limit", 1)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidOption(f"limit={limit!r:.80}: use a whole number of jobs, 1 or more")
    if "ids" in which and "limit" in which:
        raise InvalidOption("ids name the jobs: leave out limit")
    for reason in _several(which.get("reason")):
        if reason not in list(DeadReason):
            raise InvalidOption(f"reason {reason!r:.80}: use {', '.join(DeadReason)}")


def _selection(which: Which, now_ms: int, frozen: bool) -> Selection:
    where = which.get("where") or {}
    since_ms, until_ms = _instant(which.get("since"), now_ms, "since"), _instant(which.get("until"), now_ms, "until")
    if until_ms and since_ms > until_ms:
        raise InvalidOption("since is later than until: no job can have died between them")
    return Selection(
        _several(which.get("kind")),
        _several(which.get("reason")),
        _several(which.get("error_class")),
        which.get("error", ""),
        tuple((name, codec.encode_value(value, f"where {name}").decode()) for name, value in where.items()),
        since_ms,
        until_ms or (now_ms if frozen else 0),
    )


def _several(value: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _instant(value: datetime | timedelta | None, now_ms: int, what: str) -> int:
    if value is None:
        return 0
    if isinstance(value, timedelta):
        return max(1, now_ms - names.milliseconds(value, what, low_ms=0, high_ms=now_ms))
    return names.instant_ms(value, what)
