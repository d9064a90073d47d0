"""What a user may not do that its role needs. Where the server can be asked, it is asked; else it is tried."""

from collections.abc import Mapping, Sequence
from typing import Any

from streamjobs.client.talk import Leniently, Talk
from streamjobs.core.errors import Rejected, StreamJobsError
from streamjobs.core.rights import DURABLY, RIGHTS
from streamjobs.core.roles import Role
from streamjobs.core.server import Finding, rights
from streamjobs.protocol import rights as protocol
from streamjobs.protocol.calls import Word
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.server import DENIED
from streamjobs.worker.check import tried

_PROBES = {Role.PRODUCER: "producer:probe", Role.OPERATOR: "probe", Role.MONITOR: "metrics:probe"}
"""Within a queue, a key that the role may use and nobody does."""

Attempts = Mapping[str, Sequence[Word]]


def look(role: Role, queues: Sequence[QueueKeys]) -> Talk[Finding]:
    """Find out whether this connection's user has the rights of a role in some queues, of which there is one or more.

    Where the server says (Redis 7, and a user that may ask), nothing is tried. Else each command is, on a key of
    its own, which is gone, or expires in a minute; a worker's as a worker tries them at its start.
    """
    needed = RIGHTS[role]
    first = queues[0]
    commands = protocol.attempts(needed, first, first.base + needed.keys[0].replace("*", "probe"))
    keys = {what: words for one in queues for what, words in protocol.reaches(needed, one).items()}
    user = yield from _user()
    durable = protocol.attempts(DURABLY, first, "") if role is Role.PRODUCER else {}
    if user:
        refused = yield from _asked(user, {**commands, **keys})
        return rights(refused, role, (yield from _asked(user, durable)))
    if role is Role.WORKER:
        return (yield from tried(queues))
    refused = yield from _tried(
        first.base + _PROBES[role], protocol.attempts(needed, first, first.base + _PROBES[role])
    )
    refused += yield from _refused(keys)
    return rights(refused, role, (yield from _refused(durable)))


def _user() -> Talk[str]:
    """Return our user, if the server answers questions about it; else ""."""
    [name] = yield Leniently([protocol.whoami()])
    if isinstance(name, StreamJobsError):
        return ""
    [able] = yield Leniently([protocol.ask(name, ["PING"])])
    return "" if isinstance(able, StreamJobsError) else str(name)


def _asked(user: str, attempts: Attempts) -> Talk[list[str]]:
    replies = yield Leniently([protocol.ask(user, words) for words in attempts.values()])
    # An error says that the server has no such command.
    return [what for what, reply in zip(attempts, replies, strict=True) if reply is not True]


def _tried(key: str, attempts: Attempts) -> Talk[list[str]]:
    """Return which commands are refused; those that make a key are tried only on one that is there."""
    marked = False
    if "SET" in attempts:
        [reply] = yield Leniently([protocol.mark(key)])
        marked = not isinstance(reply, StreamJobsError)
        if _denied(reply):
            return ["SET"]
    apart = () if marked else protocol.MAKING
    refused = yield from _refused({what: words for what, words in attempts.items() if what not in apart})
    if marked:
        # Where that is refused, it goes by itself.
        yield Leniently([protocol.unmark(key)])
    return refused


def _refused(attempts: Attempts) -> Talk[list[str]]:
    able = {what: words for what, words in attempts.items() if protocol.alone(what)}
    replies = yield Leniently([protocol.trial(words) for words in able.values()])
    return [what for what, reply in zip(able, replies, strict=True) if _denied(reply)]


def _denied(reply: Any) -> bool:
    return isinstance(reply, Rejected) and reply.word in DENIED
