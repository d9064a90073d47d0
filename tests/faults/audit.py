"""What the server holds: where every job is, what the counters say, and what should not be there."""

from collections.abc import Iterator
from typing import Any

import msgspec

from streamjobs.client import Connections
from streamjobs.client.sync import SyncExecutor
from streamjobs.core.errors import StreamJobsError
from streamjobs.operate.jobs import read_meta
from streamjobs.protocol import views
from streamjobs.protocol.calls import Command
from streamjobs.protocol.keys import EXPIRING, GROUP, PARKED, RELEASED, QueueKeys, describe
from tests.faults.history import digest

PAGE = 1000
_PLACES = {RELEASED: "waiting", PARKED: "parked"}
"""Where a claim is that lies under one of these consumers: no worker has it."""


class Live(msgspec.Struct, frozen=True):
    """A job that is not at its end."""

    job: str
    place: str
    """waiting, parked (in a lane of a limit), running, scheduled or retries; orphaned for an entry that nobody will
    ever be given."""
    kind: str
    body: str
    """Hash of its arguments; of those that it was made with, where newer ones have come."""
    cron: str = ""
    """The cron that made it."""


class Row(msgspec.Struct, frozen=True):
    """A row of the dead stream."""

    job: str
    kind: str
    body: str
    reason: str
    error: str
    attempts: int
    died_ms: int = 0


class Snapshot(msgspec.Struct, frozen=True):
    """The state of a namespace. Exact when nothing moves."""

    live: list[Live] = []
    dead: list[Row] = []
    totals: dict[str, dict[str, int]] = {}
    """The counters, per queue."""
    holders: dict[str, str] = {}
    """Dedupe keys that are held, with their queue in front, and the job that holds each."""
    leftovers: list[str] = []
    """What is kept of jobs that are not there, and keys that are not documented or lack a TTL."""

    def total(self, name: str) -> int:
        """Return a counter, over all queues."""
        return sum(totals.get(name, 0) for totals in self.totals.values())


def audit(connections: Connections, namespace: str) -> Snapshot:
    """Read the state of a namespace; changes nothing. `app.connections` and `app.namespace` are an app's.

    Raises:
        Unavailable, OutcomeUnknown, Rejected: the server does not answer.
    """
    server = connections.sync()
    keys = sorted(key.decode("utf-8", "backslashreplace") for key in _scan(server, namespace))
    tags = sorted({key.partition("{")[2].partition("}")[0] for key in keys if describe(key) and "{" in key})
    snapshot = Snapshot([], [], {}, {}, [problem for key in keys for problem in _problems(server, key)])
    for tag in tags:
        queue, _, partition = tag.partition("/")
        _Queue(server, QueueKeys(namespace, queue, int(partition or 0)), snapshot).read(keys)
    return snapshot


class _Queue:
    """Reads one partition of a queue into a snapshot."""

    def __init__(self, server: SyncExecutor, keys: QueueKeys, snapshot: Snapshot) -> None:
        self._server, self._keys, self._into = server, keys, snapshot
        self._local: dict[str, str] = {}
        """Entry of each job in the stream."""

    def read(self, names: list[str]) -> None:
        keys = self._keys
        pending = dict(self._pending())
        released = {entry.decode() for entry in self._ask("SMEMBERS", keys.released)}
        self._stream(pending)
        self._scheduled()
        dead = dict(self._dead())
        self._into.totals[keys.tag] = {name: int(n) for name, n in self._server.run(views.table(keys.totals)).items()}
        prefix = keys.dedupe("")
        for name in names:
            if name.startswith(prefix) and (holder := self._ask("GET", name)):
                self._into.holders[f"{keys.tag}:{name.removeprefix(prefix)}"] = keys.job_id(holder.decode())
        self._left("claims of entries that are not there", set(pending) - set(self._local))
        self._left("released entries that are not there", released - set(self._local))
        self._left("suspects that are not there", set(self._table(keys.suspects)) - set(self._local))
        moved = {job: entry for job, entry in self._table(keys.moved).items() if self._local.get(entry) != job}
        self._left("moved jobs that are not there", set(moved))
        there = {live.job for live in self._into.live}
        replaced = {field.removesuffix("+") for field in self._table(keys.latest)}
        self._left("arguments of jobs that are not there", {job for job in replaced if keys.job_id(job) not in there})
        ids = set(self._table(keys.dead_ids).items())
        self._left("dead ids without their row, or rows without their id", ids ^ set(dead.items()))
        self._left("ids", set(range(self._server.run(views.length(keys.ids)))))

    def _stream(self, pending: dict[str, str]) -> None:
        last = "0-0"
        groups = self._try(views.groups(self._keys))
        if groups is not None:
            last = groups.last_delivered
        for entry, fields in self._rows(self._keys.stream):
            meta = read_meta(fields.get(b"meta", b""))
            self._local[entry] = local = meta.id or entry
            place = "waiting"
            if entry in pending:
                place = _PLACES.get(pending[entry], "running")
            elif _order(entry) <= _order(last):
                place = "orphaned"
            cron = (meta.headers or {}).get("cron", "")
            self._add(local, place, fields.get(b"kind", b""), fields.get(b"body", b""), cron)

    def _scheduled(self) -> None:
        keys = self._keys
        bodies = self._table(keys.bodies)
        for place, key in (("scheduled", keys.scheduled), ("retries", keys.retries)):
            for member in self._ask("ZRANGE", key, 0, -1):
                local = member.decode()
                sizes, _, rest = bodies.pop(local, "0:0:").partition(":")
                length, _, text = rest.partition(":")
                raw = text.encode("utf-8", "surrogateescape")
                kind, end = int(sizes), int(sizes) + int(length)
                cron = (read_meta(raw[end:]).headers or {}).get("cron", "")
                self._add(local, place, raw[:kind], raw[kind:end], cron)
        self._left("envelopes that are not scheduled", set(bodies))

    def _dead(self) -> Iterator[tuple[str, str]]:
        for entry, fields in self._rows(self._keys.dead):
            text = {name.decode(): value.decode("utf-8", "replace") for name, value in fields.items()}
            local = text.get("id", entry)
            self._into.dead.append(
                Row(
                    self._keys.job_id(local), text.get("kind", ""), digest(fields.get(b"body", b"")),
                    text.get("reason", ""), text.get("error", ""), int(text.get("attempts", 0)),
                    int(text.get("died_at", 0)),
                )
            )  # fmt: skip
            yield local, entry

    def _add(self, local: str, place: str, kind: bytes, body: bytes, cron: str) -> None:
        job = self._keys.job_id(local)
        self._into.live.append(Live(job, place, kind.decode("utf-8", "replace"), digest(body), cron))

    def _left(self, what: str, found: "set[Any]") -> None:
        if found:
            some = ", ".join(sorted(map(str, found))[:5])
            self._into.leftovers.append(f"{self._keys.base}: {len(found)} {what}: {some}")

    def _rows(self, key: str) -> Iterator[tuple[str, dict[bytes, bytes]]]:
        start = "-"
        while page := self._ask("XRANGE", key, start, "+", "COUNT", PAGE):
            for entry, flat in page:
                yield entry.decode(), dict(zip(flat[::2], flat[1::2], strict=True))
            start = f"({page[-1][0].decode()}"

    def _pending(self) -> Iterator[tuple[str, str]]:
        start = "-"
        while page := self._try(
            Command(["XPENDING", self._keys.stream, GROUP, start, "+", PAGE], lambda raw: raw or None)
        ):
            yield from ((row[0].decode(), row[1].decode()) for row in page)
            start = f"({page[-1][0].decode()}"

    def _table(self, key: str) -> dict[str, str]:
        flat = [word.decode("utf-8", "surrogateescape") for word in self._ask("HGETALL", key)]
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def _ask(self, *words: str | int) -> Any:
        return self._server.run(Command(words, lambda raw: raw))

    def _try(self, request: Command[Any]) -> Any:
        """Return a reply; None where the stream or the group is not there."""
        [reply] = self._server.run_all([request])
        if isinstance(reply, StreamJobsError):
            if "NOGROUP" in str(reply) or "no such key" in str(reply).lower():
                return None
            raise reply
        return reply


def _order(entry: str) -> tuple[int, int]:
    ms, _, number = entry.partition("-")
    return int(ms), int(number)


def _scan(server: SyncExecutor, namespace: str) -> Iterator[bytes]:
    cursor: bytes | int = 0
    while True:
        command: Command[Any] = Command(["SCAN", cursor, "MATCH", f"{namespace}:*", "COUNT", PAGE], lambda raw: raw)
        cursor, keys = server.run(command)
        yield from keys
        if cursor in (0, b"0"):
            return


def _problems(server: SyncExecutor, key: str) -> Iterator[str]:
    kind = describe(key)
    if kind is None:
        yield f"{key}: no documented key has this form"
    elif kind in EXPIRING and server.run(Command(["PTTL", key], int)) == -1:
        yield f"{key}: a {kind} key must have a TTL"
