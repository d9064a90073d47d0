"""Find out what a user may do, without doing it: ask the server, or try it where it has no effect."""

from collections.abc import Mapping, Sequence

from streamjobs.core.rights import Rights
from streamjobs.protocol.calls import Command, Word
from streamjobs.protocol.keys import GROUP, QueueKeys

_NO_SCRIPT = "0" * 40
MAKING = frozenset("HINCRBY HSET HSETNX LPUSH SADD SET XADD ZADD".split())
"""Would make a key that is not there: tried only on one that is there, and of another type."""
_NOT_ALONE = frozenset({"SUBSCRIBE"})
"""Would change the connection that it is tried on."""
_MARKED_MS = 60_000


def whoami() -> Command[str]:
    """Read which user we are."""
    return Command(["ACL", "WHOAMI"], lambda raw: raw.decode("utf-8", "replace"))


def ask(user: str, words: Sequence[Word]) -> Command[bool]:
    """Ask whether a user might do something. An error where the server cannot say, or may not."""
    return Command(["ACL", "DRYRUN", user, *words], lambda raw: raw == b"OK")


def mark(key: str) -> Command[None]:
    """Make the key to try things on: a text, which expires by itself. Whatever wants another type changes nothing."""
    return Command(["SET", key, "", "PX", _MARKED_MS], lambda raw: None)


def unmark(key: str) -> Command[int]:
    """Remove that key."""
    return Command(["DEL", key], int)


def attempts(rights: Rights, keys: QueueKeys, key: str) -> dict[str, list[Word]]:
    """Return each command of these rights as words that have no effect on `key`, a text or not there."""
    return {
        name: _words(name, {"KEY": key, "GONE": f"{key}:gone", "CHANNEL": keys.done})
        for name in sorted(rights.commands)
    }


def trial(words: Sequence[Word]) -> Command[None]:
    """Try it; an error with a word of `DENIED` where it is not allowed."""
    return Command(words, lambda raw: None)


def alone(name: str) -> bool:
    """Say whether a command can be tried on any connection."""
    return name not in _NOT_ALONE


def reaches(rights: Rights, keys: QueueKeys) -> dict[str, list[Word]]:
    """Return for each key of these rights words that need it, and have no effect."""
    names = [f"{keys.namespace}:{name}" for name in rights.apart] + [keys.base + name for name in rights.keys]
    found = [name.replace("*", "probe") for name in names]
    if "EVALSHA" in rights.commands:
        return {key: ["EVALSHA", _NO_SCRIPT, 1, key] for key in found}
    return {key: ["TYPE", key] for key in found}


def _words(name: str, places: Mapping[str, str]) -> list[Word]:
    """Return a command as it can be sent."""
    return [*name.split("|"), *(places.get(word, word) for word in _FORMS.get(name, "KEY").split())]


_FORMS = {
    "CLIENT|ID": "",
    "CLIENT|SETNAME": "streamjobs",
    "CLIENT|UNBLOCK": "0",
    "SCRIPT|LOAD": "return",
    "EVALSHA": f"{_NO_SCRIPT} 1 KEY",
    "INFO": "",
    "PING": "",
    "TIME": "",
    "BLPOP": "KEY -1",
    "DEL": "GONE",
    "HDEL": "KEY f",
    "HEXISTS": "KEY f",
    "HGET": "KEY f",
    "HINCRBY": "KEY f 1",
    "HMGET": "KEY f",
    "HSET": "KEY f v",
    "HSETNX": "KEY f v",
    "LPUSH": "KEY v",
    "PEXPIRE": f"KEY {_MARKED_MS}",
    "PUBLISH": "KEY probe",
    "SADD": "KEY m",
    "SET": f"KEY v XX PX {_MARKED_MS}",
    "SRANDMEMBER": "KEY 1",
    "SUBSCRIBE": "CHANNEL",
    "SREM": "KEY m",
    "UNLINK": "GONE",
    "WAIT": "0 1",
    "WAITAOF": "0 0 1",
    "XACK": f"KEY {GROUP} 0-1",
    "XADD": "KEY 1-1 f v",
    "XCLAIM": f"KEY {GROUP} probe 0 0-1 JUSTID",
    "XDEL": "KEY 0-1",
    "XGROUP|CREATE": f"KEY {GROUP} 0",
    "XGROUP|DELCONSUMER": f"KEY {GROUP} probe",
    "XGROUP|SETID": f"KEY {GROUP} 0",
    "XINFO|CONSUMERS": f"KEY {GROUP}",
    "XPENDING": f"KEY {GROUP}",
    "XRANGE": "KEY - + COUNT 1",
    "XREADGROUP": f"GROUP {GROUP} probe COUNT 1 STREAMS KEY >",
    "XREVRANGE": "KEY + - COUNT 1",
    "ZADD": "KEY 1 m",
    "ZCOUNT": "KEY 0 1",
    "ZLEXCOUNT": "KEY - +",
    "ZRANDMEMBER": "KEY 1",
    "ZRANGE": "KEY 0 0",
    "ZRANGEBYLEX": "KEY - +",
    "ZRANGEBYSCORE": "KEY 0 1",
    "ZRANK": "KEY m",
    "ZREM": "KEY m",
    "ZSCORE": "KEY m",
}
"""What stands behind a command's name; those that are not here take one key and nothing else."""
