"""What a doctor sees in the queues: keys that somebody else made, workers that are gone, jobs that nobody will run."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from streamjobs.client.talk import Leniently, Talk
from streamjobs.core.errors import Rejected, StreamJobsError
from streamjobs.core.numbers import whole
from streamjobs.core.server import About, Finding, Level
from streamjobs.core.text import plural
from streamjobs.operate.stats import live_ones
from streamjobs.protocol import inspect, server, upkeep, views
from streamjobs.protocol.inspect import Held
from streamjobs.protocol.keys import EXPIRING, PARKED, RELEASED, QueueKeys, describe, types
from streamjobs.protocol.metrics import MINUTE_MS
from streamjobs.protocol.workers import KEEP_MS

DEFAULT_LEASE_MS = 15_000
AT_ONCE = 20
"""Queues that are asked for in one round trip."""
CLAIMS_MOST = 100
DELIVERIES_MANY = 20
"""A job that was handed out more often is not getting anywhere: three starts that kill their workers end a job."""
LEFT_MANY = 100
ROUNDS_MOST = 100
"""Steps of a walk over the server's keys, each over about 1000."""
NAMED = 3
"""Things of one sort that are named; of the rest there is the number."""


class QueueFacts(msgspec.Struct, frozen=True):
    """One queue; None for what could not be read."""

    queue: str
    wrong: tuple[str, ...] | None = ()
    """Keys of a wrong type, in words."""
    rotten: tuple[str, ...] = ()
    """Counters that nothing can be added to, in words."""
    lease: str = ""
    """What stands where its lease should, and is none, in words; "" where all is well."""
    waiting: int | None = 0
    live: tuple[str, ...] = ()
    """Workers seen within 15 s."""
    quiet: bool = False
    """All of those were told to start nothing."""
    paused: bool = False
    lease_ms: int = DEFAULT_LEASE_MS
    consumers: dict[str, tuple[int, int]] | None = {}
    """Ms since each did anything, and how many entries it holds."""
    held: tuple[Held, ...] | None = ()
    """The oldest claims."""
    schema: str = ""


def read(queues: Sequence[QueueKeys], now_ms: int) -> Talk[list[QueueFacts]]:
    """Read what there is to judge of queues: a fixed number of cheap commands for each."""
    found: list[QueueFacts] = []
    for at in range(0, len(queues), AT_ONCE):
        some = queues[at : at + AT_ONCE]
        replies = yield Leniently([request for keys in some for request in _requests(keys, now_ms)])
        each = len(replies) // len(some)
        found += [_facts(keys, replies[i * each : (i + 1) * each], now_ms) for i, keys in enumerate(some)]
    return found


def _requests(keys: QueueKeys, now_ms: int) -> list[Any]:
    return [
        views.length(keys.stream),
        views.groups(keys),
        views.aside(keys),
        views.table(keys.config),
        upkeep.workers(keys),
        upkeep.consumers(keys),
        inspect.held(keys, CLAIMS_MOST),
        server.schema(keys),
        views.table(keys.totals),
        views.table(keys.minute(now_ms // MINUTE_MS)),
        *map(inspect.type_of, _types_of(keys, now_ms)),
    ]


def _facts(keys: QueueKeys, replies: Sequence[Any], now_ms: int) -> QueueFacts:
    length, group, aside, config, workers, consumers, held, schema, totals, minute, *found = map(_seen, replies)
    # What is of another type, or not there yet, is empty here; the types are judged for themselves.
    group, aside, config = group or views.Group(), aside or views.Aside(), config or {}
    waiting = None if length is None else max(0, (length or 0) - group.pending + aside.released + aside.parked)
    pairs = zip(_types_of(keys, now_ms).items(), found, strict=True)
    wrong = [f"{key} is a {real}, not a {right}" for (key, right), real in pairs if real not in ("none", right)]
    counters = {keys.totals: totals or {}, keys.minute(now_ms // MINUTE_MS): minute or {}}
    rotten = [f"{name} of {key}" for key, fields in counters.items() for name in fields if not _counts(fields[name])]
    live = live_ones(workers or {}, now_ms)
    return QueueFacts(
        keys.queue,
        None if None in found else tuple(wrong),
        tuple(rotten),
        _no_lease(keys, config),
        waiting,
        tuple(live),
        bool(live) and not any(map(whole, live.values())),
        "paused" in config,
        whole(config.get("lease_ms", ""), DEFAULT_LEASE_MS),
        None if consumers is None else consumers or {},
        None if held is None else tuple(held or ()),
        schema or "",
    )


def _no_lease(keys: QueueKeys, config: dict[str, str]) -> str:
    value = config.get("lease_ms", "")
    return f"{value!r:.40} (lease_ms of {keys.config})" if value and whole(value) < 1 else ""


def _types_of(keys: QueueKeys, now_ms: int) -> dict[str, str]:
    """Return the type of each key that a queue has one of, and of the one in which it counts now."""
    return types(keys) | {keys.minute(now_ms // MINUTE_MS): "hash"}


def _counts(value: str) -> bool:
    """Say whether something can be added to a counter."""
    return str(whole(value)) == value


def _seen(reply: Any) -> Any:
    """Return a reply; None where this user may not have it, False where there is another error."""
    if not isinstance(reply, StreamJobsError):
        return reply
    return None if isinstance(reply, Rejected) and reply.word in server.DENIED else False


def _each(
    about: About, queues: Iterable[QueueFacts], judge: Callable[[QueueFacts], Finding | None], fine: str
) -> list[Finding]:
    """Return what is found of each queue; one finding that all is well where nothing is."""
    found = [finding for queue in queues if (finding := judge(queue))]
    return found or [Finding(about, Level.OK, fine)]


def judge(queues: Sequence[QueueFacts]) -> list[Finding]:
    """Judge queues; pure."""
    return [
        *_each(About.TYPES, queues, _types, "as they should be"),
        *_each(About.CONSUMERS, queues, _consumers, "none that left jobs behind"),
        *_each(About.CLAIMS, queues, _claims, f"none handed out more than {DELIVERIES_MANY} times"),
        *_each(About.BACKLOG, queues, _backlog, "none without a worker"),
    ]


def _types(queue: QueueFacts) -> Finding | None:
    if queue.wrong is None:
        return Finding(About.TYPES, Level.UNKNOWN, f"this user may not see those of queue {queue.queue}")
    if queue.wrong:
        return wrong_types(queue.wrong)
    if queue.lease:
        advice = "delete that field (HDEL): the next worker that starts sets its own, and until then none can"
        return Finding(
            About.TYPES, Level.FAIL, f"queue {queue.queue}: its lease is no number of ms: {queue.lease}", advice
        )
    if not queue.rotten:
        return None
    what = f"no number, so that nothing is counted there: {_some(queue.rotten)}"
    return Finding(About.TYPES, Level.WARN, what, "delete that field (HDEL) and see who wrote it; jobs are not touched")


def wrong_types(what: Sequence[str]) -> Finding:
    """Return the finding for keys that are something else."""
    advice = "move it away (RENAME) and see who wrote it, or use another namespace; what needs it fails meanwhile"
    return Finding(About.TYPES, Level.FAIL, _some(what), advice)


def _consumers(queue: QueueFacts) -> Finding | None:
    if queue.consumers is None:
        return Finding(About.CONSUMERS, Level.UNKNOWN, f"this user may not see those of queue {queue.queue}")
    gone = {name: found for name, found in queue.consumers.items() if name not in (RELEASED, PARKED, *queue.live)}
    silent_ms = max(60_000, 3 * queue.lease_ms)
    holding = [held for idle_ms, held in gone.values() if held and idle_ms > silent_ms]
    if holding:
        what = f"queue {queue.queue}: {plural(sum(holding), 'job')} left behind by {plural(len(holding), 'worker')}"
        advice = f"start a worker, which takes over what is left (streamjobs worker -A APP -Q {queue.queue})"
        if queue.live:
            advice = "look into the logs of its live workers: they take over within lease and sweep"
        return Finding(About.CONSUMERS, Level.WARN, what, advice)
    left = sum(1 for idle_ms, held in gone.values() if not held and idle_ms > KEEP_MS)
    if left < LEFT_MANY:
        return None
    what = f"queue {queue.queue}: {left} consumers of workers that are gone"
    return Finding(About.CONSUMERS, Level.WARN, what, "any worker of the queue forgets them within a minute")


def _claims(queue: QueueFacts) -> Finding | None:
    if queue.held is None:
        return Finding(About.CLAIMS, Level.UNKNOWN, f"this user may not see those of queue {queue.queue}")
    over = [f"{one.entry} ({one.deliveries} times)" for one in queue.held if one.deliveries > DELIVERIES_MANY]
    if not over:
        return None
    what = f"queue {queue.queue}: handed out more than {DELIVERIES_MANY} times: {_some(over)}"
    advice = "its workers die, or are stopped, while they run it: look into their logs"
    return Finding(About.CLAIMS, Level.WARN, what, advice)


def _backlog(queue: QueueFacts) -> Finding | None:
    if queue.waiting is None:
        return Finding(About.BACKLOG, Level.UNKNOWN, f"this user may not see that of queue {queue.queue}")
    if not queue.waiting:
        return None
    what = f"queue {queue.queue}: {plural(queue.waiting, 'job')} waiting"
    if queue.paused:
        return Finding(About.BACKLOG, Level.WARN, f"{what}, and it is paused", f"streamjobs queue resume {queue.queue}")
    if queue.quiet:
        advice = "let them go on: streamjobs workers quiet NAME --undo"
        return Finding(About.BACKLOG, Level.WARN, f"{what}, and all its workers are quiet", advice)
    if queue.live:
        return None
    return Finding(
        About.BACKLOG,
        Level.WARN,
        f"{what}, and no worker is subscribed",
        f"start one: streamjobs worker -A APP -Q {queue.queue}",
    )


class Walk(msgspec.Struct):
    """What a walk over the server's keys came by."""

    keys: int = 0
    """Ours."""
    whole: bool = True
    strange: list[str] = []
    """Keys of this namespace that no version of ours makes."""
    endless: list[str] = []
    """Keys that should expire, and do not."""
    unlisted: set[str] = set()
    """Queues that the set of names does not have."""


def walk(namespace: str, names: Iterable[str]) -> Talk[Walk | None]:
    """Walk over the server's keys, 100,000 at most; None where this user may not."""
    found, cursor, known = Walk(), "0", set(names)
    for _ in range(ROUNDS_MOST):
        [reply] = yield Leniently([inspect.scan(namespace, cursor)])
        if isinstance(reply, StreamJobsError):
            return None
        cursor, keys = reply
        found.keys += len(keys)
        yield from _sort(found, keys, known)
        if cursor == "0":
            return found
    found.whole = False
    return found


def _sort(found: Walk, keys: Sequence[str], known: set[str]) -> Talk[None]:
    kinds = {key: describe(key) for key in keys}
    found.strange += [key for key, kind in kinds.items() if kind is None]
    expiring = [key for key, kind in kinds.items() if kind in EXPIRING]
    ttls = yield Leniently([inspect.ttl_ms(key) for key in expiring])
    endless = [key for key, ttl in zip(expiring, ttls, strict=True) if ttl == -1]
    found.endless += endless
    # What goes by itself outlives its queue: results, windows of dedupe keys, effects.
    lasting = {key for key, kind in kinds.items() if kind and kind not in EXPIRING}.union(endless)
    tags = {key.partition("{")[2].partition("}")[0] for key in lasting if ":{" in key}
    found.unlisted |= {tag.partition("/")[0] for tag in tags} - known


def judge_walk(found: Walk | None) -> list[Finding]:
    """Judge what a walk came by; pure."""
    if found is None:
        return [Finding(About.LEAKS, Level.UNKNOWN, "this user may not walk over the server's keys")]
    findings = []
    if found.endless:
        what = f"{plural(len(found.endless), 'key')} that should expire and never will: {_some(found.endless)}"
        advice = "see who wrote them; delete them if no job needs them (DEL)"
        findings.append(Finding(About.LEAKS, Level.WARN, what, advice))
    if found.strange:
        what = f"{plural(len(found.strange), 'key')} in this namespace that we never made: {_some(found.strange)}"
        findings.append(Finding(About.LEAKS, Level.WARN, what, "let other programs use another prefix"))
    if found.unlisted:
        what = f"missing in the list of queues, so that nobody sees them: {_some(sorted(found.unlisted))}"
        advice = "any worker of such a queue adds it; jobs that came by a plain XADD wait until then"
        findings.append(Finding(About.LEAKS, Level.WARN, what, advice))
    seen = "" if found.whole else f" (of about {ROUNDS_MOST * inspect.SCAN_COUNT:,} on the server; it has more)"
    return findings or [Finding(About.LEAKS, Level.OK, f"none among {plural(found.keys, 'key')}{seen}")]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(name if len(name) <= 100 else f"{name[:99]}…" for name in names[:NAMED]) + more
