"""What a test left on its backend: every key must be one that docs/protocol.md describes."""

from collections.abc import Iterator
from typing import Any

from streamjobs.client.connect import Connections
from streamjobs.client.sync import SyncExecutor
from streamjobs.protocol.calls import Command
from streamjobs.protocol.keys import EXPIRING, describe

NO_TTL = -1


def check_keys(url: str, namespace: str) -> list[str]:
    """Return what is wrong with the keys of a namespace, and remove them.

    Removing keeps a shared server small; nothing else on it is touched.
    """
    connections = Connections(url)
    server = connections.sync()
    try:
        keys = list(_keys(server, namespace))
        problems = [problem for key in keys if (problem := _problem(server, key))]
        server.run_all([_command("DEL", key) for key in keys])
        return problems
    finally:
        server.close()


def _keys(server: SyncExecutor, namespace: str) -> Iterator[bytes]:
    cursor: bytes | None = b"0"
    while cursor is not None:
        found, keys = server.run(_command("SCAN", cursor, "MATCH", f"{namespace}:*", "COUNT", 1000))
        yield from keys
        cursor = found if found != b"0" else None


def _problem(server: SyncExecutor, key: bytes) -> str | None:
    name = key.decode("utf-8", "backslashreplace")
    kind = describe(name)
    if kind is None:
        return f"{name}: no documented key has this form"
    if kind in EXPIRING and server.run(_command("PTTL", key)) == NO_TTL:
        return f"{name}: a {kind} key must have a TTL"
    return None


def _command(*words: bytes | str | int) -> Command[Any]:
    return Command(words, decode=lambda reply: reply)
