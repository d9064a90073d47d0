"""Read the dead jobs that are meant: page by page, the newest of all queues first.

Neither memory nor a single command grows with their number, and a page is what comes of one round trip. What dies
while it goes on is newer, and not met.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from streamjobs.client.talk import Talk
from streamjobs.core.errors import InvalidOption, Refused
from streamjobs.core.names import split_job_id
from streamjobs.operate import jobs
from streamjobs.operate.jobs import JobStatus
from streamjobs.operate.selection import Selection
from streamjobs.protocol import upkeep, views
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.views import Row

FIRST = 100
PAGE = 500
"""Rows in the first reply, and in a later one where they are small."""
PAGE_BYTES = 2 * 1024 * 1024
"""About so much comes in one reply, once the size of rows is known; arguments can be 256 KiB each."""

Found = tuple[QueueKeys, str, dict[str, bytes]]
"""A row of the dead stream: of which queue, its entry, its fields."""
Order = tuple[int, int, str]
"""Where a row stands among all: from the newest to the oldest, then by queue."""


class Source(Protocol):
    """Gives the dead jobs that are meant."""

    skipped: Counter[str]
    """What was passed over, by why."""
    queues: dict[str, None]
    """The queues of those that it gave, in the order in which they were met."""

    def rows(self) -> Talk[list[Found]]:
        """Return the next of them, one or more, as the dead stream has them; none at the end."""
        ...

    def page(self) -> Talk[list[JobStatus]]:
        """Return the next of them, one or more; none at the end."""
        return [dead_job(*row) for row in (yield from self.rows())]


class Scan(Source):
    """The dead jobs of some queues that a selection means."""

    def __init__(
        self, queues: Sequence[QueueKeys], selection: Selection, *, after: str = "", limit: int = 0, first: int = FIRST
    ) -> None:
        """
        Args:
            queues: where to look.
            selection: which of their dead jobs are meant.
            after: the `cursor` of an earlier scan of them, to go on behind it.
            limit: at most so many; 0 for all.
            first: rows in the first page.

        Raises:
            InvalidOption: `after` is no cursor.
        """
        self._selection = selection
        self._limit = limit
        self.skipped: Counter[str] = Counter()
        self.queues: dict[str, None] = {}
        self.read = self.found = 0
        """Rows that were looked at, and those of them that are meant."""
        self.cursor = ""
        """Where to go on, once `limit` of them were found; "" where there are no more."""
        self.on_read: Callable[[int], None] = lambda read: None
        """Called after each reply."""
        newest = str(selection.until_ms) if selection.until_ms else "+"
        oldest = str(selection.since_ms) if selection.since_ms else "-"
        place = _place(after) if after else None
        self._empty = [_Rows(keys, _behind(place, keys.tag, newest), oldest, first) for keys in queues]
        self._heads: list[tuple[Order, _Rows]] = []

    def rows(self) -> Talk[list[Found]]:
        """Return the next of them, one or more, as the dead stream has them; none at the end."""
        found: list[Found] = []
        while not found and (yield from self._go_on()):
            for order, keys, (entry, fields) in self._next_rows():
                self.read += 1
                if other := self._selection.other(fields, -order[0]):
                    self.skipped[other] += 1
                    continue
                found.append((keys, entry, fields))
                self.queues[keys.queue] = None
                self.found += 1
                if self.found == self._limit:
                    self.cursor = f"{entry}@{keys.tag}" if self._heads or self._empty else ""
                    self._heads, self._empty = [], []
                    break
        return found

    def _go_on(self) -> Talk[bool]:
        """Read on where rows have run out; say whether there are any."""
        if empty := self._empty:
            self._empty = []
            pages = yield [views.dead_rows(rows.keys, rows.newest, rows.oldest, rows.size) for rows in empty]
            for rows, page in zip(empty, pages, strict=True):
                rows.add(page)
                if page:
                    heapq.heappush(self._heads, (rows.order, rows))
            self.on_read(self.read)
        return bool(self._heads)

    def _next_rows(self) -> "Iterator[tuple[Order, QueueKeys, Row]]":
        """Take rows in order, until those of one queue have run out and there may be more."""
        while self._heads and not self._empty:
            order, rows = heapq.heappop(self._heads)
            row = rows.rows.pop()
            if rows.rows:
                heapq.heappush(self._heads, (rows.order, rows))
            elif not rows.ended:
                self._empty.append(rows)
            yield order, rows.keys, row


class _Rows:
    """The rows of one queue that were read and not yet passed on, the newest last."""

    def __init__(self, keys: QueueKeys, newest: str, oldest: str, size: int) -> None:
        self.keys = keys
        self.newest, self.oldest = newest, oldest
        self.size = size
        self.rows: list[Row] = []
        self.ended = False

    def add(self, page: list[Row]) -> None:
        """Take in what was read from `newest` on."""
        self.ended = len(page) < self.size
        if page:
            self.newest = f"({page[-1][0]}"
            average = sum(len(fields.get("body", b"")) for _, fields in page) // len(page) + 500
            self.size = max(10, min(PAGE, PAGE_BYTES // average))
        self.rows = page[::-1]

    @property
    def order(self) -> Order:
        ms, _, number = self.rows[-1][0].partition("-")
        return -int(ms), -int(number), self.keys.tag

    def __lt__(self, other: "_Rows") -> bool:
        return self.keys.tag < other.keys.tag


def _place(cursor: str) -> tuple[str, str]:
    """Return the entry and the queue of a cursor."""
    entry, at, tag = cursor.partition("@")
    ms, dash, number = entry.partition("-")
    if not (at and tag and dash and _is_number(ms) and _is_number(number)):
        raise InvalidOption(f"{cursor!r:.80} is no place in a list: use what the list before said")
    return entry, tag


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) < 1 << 64


def _behind(place: tuple[str, str] | None, tag: str, newest: str) -> str:
    """Return where the rows of a queue begin that stand behind a place in the list of all."""
    if place is None:
        return newest
    entry, at = place
    if newest != "+" and int(newest) < int(entry.partition("-")[0]):
        return newest
    return f"({entry}" if tag <= at else entry


class Named(Source):
    """The jobs of these ids, of which each must be dead."""

    def __init__(self, namespace: str, ids: Sequence[str], selection: Selection) -> None:
        self._namespace = namespace
        self._ids = list(dict.fromkeys(ids))
        self._selection = selection
        self.skipped: Counter[str] = Counter()
        self.queues: dict[str, None] = {}

    def rows(self) -> Talk[list[Found]]:
        """Return those that are meant, all at once; none the second time. Their promise is a field of its own.

        Raises:
            NotFound: there is no job of that id.
            Refused: it is not dead.
        """
        ids, self._ids = self._ids, []
        found: list[Found] = []
        for job_id in ids:
            queue, partition, local = split_job_id(job_id)
            keys = QueueKeys(self._namespace, queue, partition)
            [fields] = yield [upkeep.lookup(keys, local)]
            if fields["state"] != b"dead":
                entry, fields = yield from _foreign(keys, local, fields)
            else:
                entry = fields.pop("entry").decode()
                del fields["state"]
            if other := self._selection.other(fields, int(entry.partition("-")[0])):
                self.skipped[other] += 1
            else:
                found.append((keys, entry, fields))
        return found


def _foreign(keys: QueueKeys, local: str, found: dict[str, bytes]) -> Talk[Row]:
    """Return the row that somebody else wrote and that stands under this id, where there is no dead job of it.

    Raises:
        NotFound, Refused: there is none.
    """
    rows: list[Row] = []
    if not local.startswith("d"):
        [rows] = yield [views.dead_rows(keys, local, local, 1)]
    if not rows or jobs.local_id(rows[0][1]):
        raise Refused(_not_dead(jobs.status(keys, local, found)))
    return rows[0]


def collect(source: Source) -> Talk[list[JobStatus]]:
    """Return all that a source gives."""
    found: list[JobStatus] = []
    while page := (yield from source.page()):
        found += page
    return found


def _not_dead(status: JobStatus) -> str:
    if status.became:
        return f"job {status.id} is not dead any more: it began anew as {status.became}"
    return f"job {status.id} is not dead but {status.state}"


def dead_job(keys: QueueKeys, entry: str, fields: dict[str, bytes]) -> JobStatus:
    """Return a row of the dead stream as a job; a foreign one, which names none, stands under its entry."""
    found = {"died_at": entry.partition("-")[0].encode(), **fields, "entry": entry.encode()}
    return jobs.dead_status(keys, jobs.local_id(fields) or entry, found)
