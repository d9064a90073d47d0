"""Look at a server before any job is put at risk there: what it is, what it allows, what it deletes."""

import logging
from collections.abc import Sequence
from typing import Any

from streamjobs.client.aio import AsyncExecutor
from streamjobs.client.talk import Leniently, Talk, atalk
from streamjobs.core.errors import Refused, Rejected, StreamJobsError, Unavailable
from streamjobs.core.server import About, Finding, Level, eviction, rights, role, version
from streamjobs.protocol import server
from streamjobs.protocol.calls import Request
from streamjobs.protocol.keys import QueueKeys

log = logging.getLogger("streamjobs.worker")

_FORCE = "or accept that with --allow-eviction (allow_eviction=True in code)"


def look(queues: Sequence[QueueKeys]) -> Talk[list[Finding]]:
    """Find out about a server, in two round trips; nothing is left there.

    Raises:
        Rejected: it refuses scripts, or these keys.
    """
    [told] = yield Leniently([server.info()])
    facts = server.facts(told)
    findings = [role(facts), version(facts), eviction(facts)]
    # A worker whose patterns fit no queue yet has no keys to try its rights on.
    if queues and findings[0].level is not Level.FAIL:
        tries: list[Request[Any]] = [*map(server.probe, queues)]
        tries += (server.probe_names(queues[0].namespace), server.probe_bell(queues[0]))
        *refused, names, bell = yield Leniently(tries)
        for reply in (*refused, names, None if server.may_wait(bell) else bell):
            if isinstance(reply, StreamJobsError):
                raise reply
        findings.append(rights(command for commands in refused for command in commands))
    return findings


async def check(executor: AsyncExecutor, where: str, queues: Sequence[QueueKeys], *, allow_eviction: bool) -> None:
    """Make sure that a worker may start; log what else there is to say.

    Args:
        executor: the way to the server.
        where: what messages call it.
        queues: what the worker will serve.
        allow_eviction: start although the server deletes when its memory is full.

    Raises:
        Unavailable: it is a replica, and may be promoted, or replaced, any moment.
        Rejected: it is too old, or a right is missing.
        Refused: it may delete jobs, and that was not allowed.
    """
    findings = await atalk(executor, look(queues))
    for finding in findings:
        if finding.level is Level.FAIL and not (finding.about is About.EVICTION and allow_eviction):
            raise _error(finding, where)
    for finding in findings:
        if finding.level in (Level.FAIL, Level.WARN):
            log.warning("%s: %s", where, finding)
    if unknown := [finding.about.value for finding in findings if finding.level is Level.UNKNOWN]:
        log.info("%s does not tell its %s: not checked", where, ", ".join(unknown))


def _error(finding: Finding, where: str) -> StreamJobsError:
    message = f"{where}: {finding}"
    match finding.about:
        case About.ROLE:
            return Unavailable(message, word="READONLY")
        case About.VERSION:
            return Rejected(message, word="VERSION")
        case About.EVICTION:
            return Refused(f"{message}, {_FORCE}")
        case About.RIGHTS:
            return Rejected(message, word="NOPERM")
