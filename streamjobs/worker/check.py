"""Look at a server before any job is put at risk there: what it is, what it allows, what it deletes."""

import logging
from collections.abc import Sequence
from typing import Any

from streamjobs.client.aio import AsyncExecutor
from streamjobs.client.talk import Leniently, Talk, atalk
from streamjobs.client.target import Target
from streamjobs.core.errors import Refused, Rejected, StreamJobsError, Unavailable
from streamjobs.core.server import About, Finding, Level, ServerFacts, eviction, rights, role, schema, version
from streamjobs.protocol import scripts, server
from streamjobs.protocol.calls import Request
from streamjobs.protocol.keys import QueueKeys

log = logging.getLogger("streamjobs.worker")

_FORCE = "or accept that with --allow-eviction (allow_eviction=True in code)"


def told() -> Talk[ServerFacts]:
    """Ask a server about itself.

    Raises:
        StreamJobsError: there was no reply, or the server refuses more than that.
    """
    [reply] = yield Leniently([server.info()])
    return server.facts(reply)


def critical(facts: ServerFacts, target: Target) -> list[Finding]:
    """Judge what a worker must know before anything else; pure."""
    return [role(facts), version(facts), eviction(facts), target.transport]


def understood(queues: Sequence[QueueKeys]) -> Talk[Finding]:
    """Find out whether this version knows how queues are laid out. What cannot be read is left to others to say."""
    replies = yield Leniently([server.schema(keys) for keys in queues])
    return schema({keys.queue: one for keys, one in zip(queues, replies, strict=True) if isinstance(one, str)})


def tried(queues: Sequence[QueueKeys]) -> Talk[Finding]:
    """Find out by trying whether a worker could do its work in queues, of which there is one or more; nothing is
    left there.

    Raises:
        Rejected: the server refuses scripts, or these keys.
    """
    tries: list[Request[Any]] = [*map(server.probe, queues)]
    tries += (server.probe_names(queues[0].namespace), server.probe_bell(queues[0]))
    *refused, names, bell = yield Leniently(tries)
    for reply in (*refused, names, None if server.may_wait(bell) else bell):
        if isinstance(reply, StreamJobsError):
            raise reply
    return rights(command for commands in refused for command in commands)


def look(queues: Sequence[QueueKeys], target: Target) -> Talk[list[Finding]]:
    """Find out about a server, in three round trips; nothing is left there.

    Raises:
        Rejected: it refuses scripts, or these keys.
    """
    findings = critical((yield from told()), target)
    # What a node of a cluster, or a replica, answers to these is what passes by itself.
    unfit = any(one.level is Level.FAIL and one.about in (About.ROLE, About.VERSION) for one in findings)
    # A worker whose patterns fit no queue yet has no keys to try its rights on.
    if queues and not unfit:
        findings.append((yield from understood(queues)))
        findings.append((yield from tried(queues)))
    return findings


async def check(executor: AsyncExecutor, target: Target, queues: Sequence[QueueKeys], *, allow_eviction: bool) -> None:
    """Make sure that a worker may start, and has all that it needs at hand; log what else there is to say.

    Args:
        executor: the way to the server.
        target: where that leads.
        queues: what the worker will serve.
        allow_eviction: start although the server deletes when its memory is full.

    Raises:
        Unavailable: it is a replica, and may be promoted, or replaced, any moment.
        Rejected: it is too old, a right is missing, or a queue is laid out as no version knows that is this old.
        Refused: it may delete jobs, and that was not allowed.
    """
    scripts.load_all()
    findings = await atalk(executor, look(queues, target))
    for finding in findings:
        if finding.level is Level.FAIL and not (finding.about is About.EVICTION and allow_eviction):
            raise _error(finding, target.text)
    for finding in findings:
        if finding.level in (Level.FAIL, Level.WARN):
            log.warning("%s: %s", target, finding)
    if unknown := [finding.about.value for finding in findings if finding.level is Level.UNKNOWN]:
        log.info("%s does not tell its %s: not checked", target, ", ".join(unknown))


def _error(finding: Finding, where: str) -> StreamJobsError:
    message = f"{where}: {finding}"
    match finding.about:
        case About.ROLE:
            return Unavailable(message, word="READONLY")
        case About.EVICTION:
            return Refused(f"{message}, {_FORCE}")
        case About.RIGHTS:
            return Rejected(message, word="NOPERM")
    return Rejected(message, word=finding.about.name)
