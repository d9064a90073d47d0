"""What is asked of a server before it is trusted with jobs: what it is, and what it allows."""

from collections.abc import Sequence
from typing import Any

from streamjobs.core.errors import Rejected, StreamJobsError
from streamjobs.core.server import ServerFacts
from streamjobs.protocol.calls import Call, Command
from streamjobs.protocol.keys import GROUP, QueueKeys, queues
from streamjobs.protocol.replies import word

DENIED = ("NOPERM", "UNKNOWN_COMMAND")
"""The words for a command that this user may not use, or that nobody can: some are renamed or left out."""


def info() -> Command[ServerFacts]:
    """Read what the server says of itself; an error where it says nothing, see `facts`."""
    return Command(["INFO"], _facts)


def facts(reply: ServerFacts | StreamJobsError) -> ServerFacts:
    """Return what the reply to `info` says: nothing, where the server keeps that to itself.

    Raises:
        StreamJobsError: there was no reply, or the server refuses more than that.
    """
    if isinstance(reply, ServerFacts):
        return reply
    if isinstance(reply, Rejected) and reply.word in DENIED:
        return ServerFacts()
    raise reply


def _facts(raw: bytes) -> ServerFacts:
    lines = raw.decode("utf-8", "replace").splitlines()
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    engine = _engine(told)
    appends = told.get("aof_enabled")
    return ServerFacts(
        engine,
        told.get(f"{engine}_version") or told.get("redis_version", ""),
        told.get("role", ""),
        told.get("maxmemory_policy", ""),
        _number(told, "used_memory") or 0,
        _number(told, "maxmemory"),
        told.get("server_mode") or told.get("redis_mode", ""),
        _number(told, "total_system_memory") or 0,
        None if appends is None else appends == "1",
        tuple(what for name, what in _WRITTEN.items() if told.get(name, "ok") != "ok"),
        _number(told, "connected_slaves"),
        _number(told, "min_slaves_good_slaves"),
    )


_WRITTEN = {"rdb_last_bgsave_status": "its last snapshot", "aof_last_write_status": "its append-only file"}
"""What a server says of its writes to disk, and what each is of."""
_OTHERS = ("dragonfly", "keydb")
"""Engines that call themselves redis, and give themselves away."""


def _engine(told: dict[str, str]) -> str:
    name = told.get("server_name", "")
    program = told.get("executable", "").rpartition("/")[2]
    other = next((other for other in _OTHERS if f"{other}_version" in told or program.startswith(other)), "")
    return other or name or ("redis" if "redis_version" in told else "")


def _number(told: dict[str, str], name: str) -> int | None:
    text = told.get(name, "")
    return int(text) if text.isdigit() else None


def schema(keys: QueueKeys) -> Command[str]:
    """Read by which schema a queue is laid out; "" where it does not say, which stands for the first one."""
    return Command(["HGET", keys.config, "schema"], lambda raw: raw.decode("utf-8", "replace") if raw else "")


def probe(keys: QueueKeys) -> Call[list[str]]:
    """Try what a worker's scripts do; return the commands that its user may not use."""
    return Call("probe", [keys.probe], [], _denied)


def probe_names(namespace: str) -> Command[int]:
    """Try to write to the set of queue names, which is no script's business: take out a name that none has."""
    return Command(["SREM", queues(namespace), ""], int)


def probe_bell(keys: QueueKeys) -> Command[None]:
    """Try to wait, for a time that is none: who may wait is told just that, at once; see `may_wait`."""
    return Command(["BLPOP", keys.probe, -1], lambda raw: None)


def may_wait(reply: StreamJobsError | None) -> bool:
    """Say whether this is how `probe_bell` is answered where waiting is allowed."""
    return reply is None or (isinstance(reply, Rejected) and "timeout" in str(reply))


def write_nothing(keys: QueueKeys) -> Command[int]:
    """Write nothing: an answer shows that the server takes writes, be its memory full."""
    return Command(["XACK", keys.stream, GROUP, "0-1"], int)


def _denied(raw: Sequence[bytes]) -> list[str]:
    # Where one command is denied, others fail since it was: they say nothing.
    pairs: list[Any] = list(zip(raw[::2], raw[1::2], strict=True))
    return [command.decode() for command, error in pairs if word(error.decode("utf-8", "replace")) in DENIED]
