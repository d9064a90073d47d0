"""Every key name in one place.

All keys of one partition of a queue share the hash tag `{queue}` (`{queue/p}` for partition
p > 0), so no script would span slots of a Redis Cluster; what waits for several queues at once does,
and a cluster is refused (core/server.py). docs/protocol.md is the public form of this table.
"""

import re
from functools import cached_property

GROUP = "workers"
RELEASED = "released"
"""The consumer under which claims lie that were given back."""
PARKED = "parked"
"""The consumer under which claims lie that wait in a lane of a limit."""
DEFAULT_NAMESPACE = "sj"


class QueueKeys:
    """The keys of one partition of one queue, made once and kept."""

    def __init__(self, namespace: str, queue: str, partition: int = 0) -> None:
        self.namespace = namespace
        self.queue = queue
        self.partition = partition
        self.tag = queue if partition == 0 else f"{queue}/{partition}"
        self.base = f"{namespace}:{{{self.tag}}}:"
        self.stream = self.base + "stream"
        self.released = self.base + "released"
        self.suspects = self.base + "suspects"
        self.totals = self.base + "totals"
        self.metrics = self.base + "metrics:"
        """Base only: scripts append the minute, on the server's time; see `minute`."""

    @cached_property
    def ids(self) -> str:
        return self.base + "ids"

    @cached_property
    def scheduled(self) -> str:
        return self.base + "scheduled"

    @cached_property
    def retries(self) -> str:
        return self.base + "retries"

    @cached_property
    def bodies(self) -> str:
        return self.base + "bodies"

    @cached_property
    def moved(self) -> str:
        return self.base + "moved"

    @cached_property
    def latest(self) -> str:
        return self.base + "latest"

    @cached_property
    def dead(self) -> str:
        return self.base + "dead"

    @cached_property
    def dead_ids(self) -> str:
        return self.base + "dead:ids"

    @cached_property
    def config(self) -> str:
        return self.base + "config"

    @cached_property
    def bell(self) -> str:
        return self.base + "bell"

    @cached_property
    def promoter(self) -> str:
        return self.base + "promoter"

    @cached_property
    def workers(self) -> str:
        return self.base + "workers"

    @cached_property
    def cron(self) -> str:
        return self.base + "cron"

    @cached_property
    def cron_holds(self) -> str:
        return self.base + "cron:holds"

    @cached_property
    def cron_code(self) -> str:
        return self.base + "cron:code"

    @cached_property
    def line(self) -> str:
        return self.base + "line"

    @cached_property
    def slots(self) -> str:
        return self.base + "slots"

    @cached_property
    def wake(self) -> str:
        return self.base + "wake"

    @cached_property
    def gone(self) -> str:
        return self.base + "gone"

    @cached_property
    def tats(self) -> str:
        return self.base + "tats"

    @cached_property
    def limits(self) -> str:
        return self.base + "limits"

    @cached_property
    def lanes(self) -> tuple[str, ...]:
        """What scripts need that look at lanes, in their order (lua/include/lanes.lua)."""
        own = (self.line, self.slots, self.wake, self.gone, self.tats, self.limits)
        return (*own, self.config, self.released, self.bell)

    @property
    def named(self) -> dict[str, str]:
        """Every key of the queue that has a name of its own: not those of single jobs, producers, minutes."""
        return {name: self.base + name for name in _KINDS}

    @cached_property
    def done(self) -> str:
        """The channel on which ids of ended jobs with a result wish are published."""
        return self.base + "done"

    @cached_property
    def probe(self) -> str:
        """A key and a channel that nobody uses: what is tried on them shows whether it is allowed."""
        return self.base + "probe"

    def dedupe(self, key: str) -> str:
        return f"{self.base}dedupe:{key}"

    def once(self, key: str) -> str:
        return f"{self.base}once:{key}"

    def minute(self, number: int) -> str:
        """Return what was counted in a minute, by minutes since 1970."""
        return f"{self.metrics}{number}"

    def times(self, minute: int) -> str:
        """Return how long jobs waited and ran in a minute."""
        return f"{self.metrics}times:{minute}"

    def times_of_hour(self, hour: int) -> str:
        """Return how long jobs waited and ran in an hour, by hours since 1970."""
        return f"{self.metrics}times:{hour}h"

    def producer(self, producer_id: str) -> str:
        return f"{self.base}producer:{producer_id}"

    def result(self, local_id: str) -> str:
        return f"{self.base}result:{local_id}"

    def promise(self, job_id: str, entry: str, at_ms: int) -> str:
        """What came of a promise that a dead job, here or elsewhere, begins anew in this queue."""
        return f"{self.base}promise:{job_id}/{entry}/{at_ms}"

    def became(self, local_id: str) -> str:
        """As which job a dead one of this queue began anew."""
        return f"{self.base}became:{local_id}"

    def job_id(self, local_id: str) -> str:
        """Return the public id of a job of this partition."""
        return f"{self.tag}:{local_id}"


def worker(namespace: str, consumer: str) -> str:
    """Return the key under which a worker tells of itself, and is told orders: outside the tags, since it may serve
    many queues.
    """
    return f"{namespace}:worker:{consumer}"


def queues(namespace: str) -> str:
    """Return the key of the set of queue names: outside the tags, so no script touches it."""
    return f"{namespace}:queues"


_KINDS = {
    "stream": "stream",
    "ids": "stream, always empty",
    "released": "set",
    "scheduled": "zset",
    "retries": "zset",
    "bodies": "hash",
    "moved": "hash",
    "latest": "hash",
    "dead": "stream",
    "dead:ids": "hash",
    "suspects": "hash",
    "config": "hash",
    "bell": "list",
    "promoter": "string",
    "totals": "hash",
    "workers": "hash",
    "cron": "hash",
    "cron:holds": "hash",
    "cron:code": "hash",
    "line": "zset",
    "slots": "zset",
    "wake": "zset",
    "gone": "zset",
    "tats": "zset",
    "limits": "hash",
}
_PREFIXES = ("dedupe:", "once:", "producer:", "result:", "promise:", "became:", "metrics:")
EXPIRING = {"dedupe", "once", "producer", "promoter", "result", "promise", "became", "metrics", "worker"}
"""Kinds of keys that would pile up for ever, one per job or per minute, without a TTL."""
_KEY = re.compile(
    r"[A-Za-z0-9_.-]{1,64}:"
    r"(?:\{[A-Za-z0-9_.-]{1,64}(?:/\d+)?\}:(?P<name>.+)|(?P<queues>queues)|(?P<worker>worker):.+)\Z",
    re.DOTALL,
)


def describe(key: str) -> str | None:
    """Return what a key of ours is (`stream`, `dedupe`, ...), or None for a key that is not ours."""
    match = _KEY.match(key)
    if not match:
        return None
    if apart := match["queues"] or match["worker"]:
        return apart
    name = match["name"]
    if name in _KINDS:
        return name
    return next((prefix[:-1] for prefix in _PREFIXES if name.startswith(prefix)), None)


def types(keys: QueueKeys) -> dict[str, str]:
    """Return the type of each key that a queue has one of, by its name."""
    return {keys.base + name: kind.partition(",")[0] for name, kind in _KINDS.items()}
