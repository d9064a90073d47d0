"""What is asked of a server before it is trusted with jobs: what it is, and what it allows."""

from collections.abc import Sequence
from typing import Any

from streamjobs.core.errors import Rejected, StreamJobsError
from streamjobs.core.server import ServerFacts
from streamjobs.protocol import views
from streamjobs.protocol.calls import Call, Command
from streamjobs.protocol.keys import QueueKeys, queues
from streamjobs.protocol.replies import word

DENIED = ("NOPERM", "UNKNOWN_COMMAND")
"""The words for a command that this user may not use, or that nobody can: some are renamed or left out."""


def sections() -> list[Command[dict[str, str]]]:
    """Read what `facts` decodes."""
    return [views.facts(section) for section in ("server", "replication", "memory")]


def facts(replies: Sequence[dict[str, str] | StreamJobsError]) -> ServerFacts:
    """Return what the replies to `sections` say; a server may keep some of it to itself.

    Raises:
        StreamJobsError: there was no reply, or the server refuses more than that.
    """
    told: dict[str, str] = {}
    for reply in replies:
        if isinstance(reply, dict):
            told |= reply
        elif not (isinstance(reply, Rejected) and reply.word in DENIED):
            raise reply
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


def _denied(raw: Sequence[bytes]) -> list[str]:
    # Where one command is denied, others fail since it was: they say nothing.
    pairs: list[Any] = list(zip(raw[::2], raw[1::2], strict=True))
    return [command.decode() for command, error in pairs if word(error.decode("utf-8", "replace")) in DENIED]
