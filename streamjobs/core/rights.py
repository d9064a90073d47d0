"""Who may do what: the commands, keys and channels that each role needs, and the ACL rules that give it no more.

docs/security.md shows the rules, `doctor` looks whether they hold, and tests try both on each server.
"""

import msgspec

from streamjobs.core.roles import Role


class Rights(msgspec.Struct, frozen=True):
    """What one role needs."""

    commands: frozenset[str]
    """`|` parts a subcommand."""
    keys: tuple[str, ...]
    """Names within a queue, behind its tag; patterns where they end in `*`."""
    channels: tuple[str, ...] = ()
    apart: tuple[str, ...] = ("queues",)
    """Names behind the namespace, of what belongs to no queue alone; likewise."""

    def __or__(self, other: "Rights") -> "Rights":
        keys, channels = _union(self.keys, other.keys), _union(self.channels, other.channels)
        return Rights(self.commands | other.commands, keys, channels, _union(self.apart, other.apart))


def _union(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return ("*",) if "*" in some + others else tuple(dict.fromkeys(some + others))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SCRIPTS = _words("CLIENT|SETNAME EVALSHA SCRIPT|LOAD TIME")
_COUNTING = _words(
    "CLIENT|SETNAME HGET HGETALL HMGET INFO MEMORY|USAGE PING SMEMBERS TIME TYPE XINFO|CONSUMERS XINFO|GROUPS"
    " XLEN XPENDING XRANGE ZCARD ZLEXCOUNT ZRANGE"
)
_PRODUCER = Rights(
    _SCRIPTS
    | _words(
        "GET HEXISTS HGET HINCRBY HLEN HMGET HSET LLEN LPUSH PEXPIRE PTTL SADD SET XADD XLEN XPENDING ZADD ZRANGE"
    ),
    (
        *("stream", "latest", "config", "totals", "metrics:*", "producer:*", "dedupe:*"),
        *("ids", "scheduled", "retries", "bodies", "bell"),
    ),
)
ASKING = Rights(
    _SCRIPTS | _words("EXISTS GET HEXISTS HGET SUBSCRIBE XINFO|STREAM XPENDING XRANGE ZSCORE"),
    (
        *("stream", "ids", "moved", "scheduled", "retries", "bodies", "dead", "dead:ids", "suspects", "latest"),
        *("result:*", "became:*"),
    ),
    ("done",),
)
"""What a producer needs beside its own to ask for its jobs: `status`, `result`."""
_WORKER = (
    _PRODUCER
    | ASKING
    | Rights(
        _words(
            "BLPOP CLIENT|ID CLIENT|UNBLOCK DEL HDEL HGETALL HKEYS HLEN HSETNX INFO PING PUBLISH SMEMBERS SRANDMEMBER"
            " SREM UNLINK XACK XCLAIM XDEL XGROUP|CREATE XGROUP|DELCONSUMER XGROUP|SETID XINFO|CONSUMERS XINFO|GROUPS"
            " XREADGROUP ZCARD ZCOUNT ZLEXCOUNT ZRANDMEMBER ZRANGEBYLEX ZRANGEBYSCORE ZREM"
        ),
        ("*",),
        ("*",),
        ("queues", "worker:*"),
    )
)
_OPERATOR = (
    _PRODUCER
    | ASKING
    | Rights(
        _COUNTING
        | _words(
            "DEL HDEL PUBLISH SREM UNLINK XACK XDEL XGROUP|CREATE XGROUP|DELCONSUMER XGROUP|SETID XREVRANGE ZCOUNT"
            " ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREM"
        ),
        ("*",),
        ("*",),
        ("queues", "worker:*"),
    )
)
_MONITOR = Rights(
    _COUNTING,
    (
        *("stream", "released", "scheduled", "retries", "dead", "workers", "config", "totals", "metrics:*"),
        *("limits", "line", "cron", "cron:holds", "cron:code"),
    ),
    apart=("queues", "worker:*"),
)

DURABLY = Rights(_words("WAIT WAITAOF"), ())
"""What a producer needs beside its own for `durability=`; servers that do not know the second refuse a rule with it."""

RIGHTS = {
    Role.PRODUCER: _PRODUCER,
    Role.WORKER: _WORKER,
    Role.OPERATOR: _OPERATOR,
    Role.MONITOR: _MONITOR,
}


def rules(rights: Rights, namespace: str, queue: str = "*") -> str:
    """Return the ACL rules that give a user these rights and no others, in all queues or in one; without a password."""
    commands = [f"+{name.lower()}" for name in sorted(rights.commands)]
    if rights.keys == ("*",) and queue == "*":
        keys = [f"~{namespace}:*"]
    else:
        keys = [f"~{namespace}:{name}" for name in rights.apart]
        keys += [f"~{namespace}:{{{queue}}}:{name}" for name in rights.keys]
    channels = [f"&{namespace}:{{{queue}}}:{name}" for name in rights.channels]
    return " ".join(["on resetkeys resetchannels -@all", *commands, *keys, *channels])
