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
    engine = told.get("server_name") or ("redis" if "redis_version" in told else "")
    version = told.get(f"{engine}_version") or told.get("redis_version", "")
    return ServerFacts(
        engine,
        version,
        told.get("role", ""),
        told.get("maxmemory_policy", ""),
        _number(told, "used_memory") or 0,
        _number(told, "maxmemory"),
    )


def _number(told: dict[str, str], name: str) -> int | None:
    text = told.get(name, "")
    return int(text) if text.isdigit() else None


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
