"""Look a server and a namespace over: is it fit, what may it lose, are the rights there, is anything left behind.

Reads only, but where rights have to be tried (operate/rights.py). What a worker looks at before it starts is
judged here by the same code.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from time import monotonic
from typing import Any

import msgspec

from streamjobs.client.talk import Leniently, Talk
from streamjobs.client.target import Target
from streamjobs.core import fitness
from streamjobs.core.errors import OutcomeUnknown, Rejected, StreamJobsError, Unavailable
from streamjobs.core.fitness import Settings
from streamjobs.core.holes import holes
from streamjobs.core.options import DEFAULT_QUEUE
from streamjobs.core.roles import Role
from streamjobs.core.server import About, Finding, Level, ServerFacts, schema
from streamjobs.operate import checkup, rights
from streamjobs.operate.replies import of_wrong_type
from streamjobs.protocol import inspect, upkeep, views
from streamjobs.protocol.keys import QueueKeys, queues
from streamjobs.protocol.server import DENIED
from streamjobs.worker.check import critical, told

PINGS = 5


class Report(msgspec.Struct, frozen=True):
    """What was found, in the order in which it is to be read."""

    at_ms: int
    """The server's time."""
    server: ServerFacts
    findings: list[Finding]

    def count(self, level: str) -> int:
        """Return how many findings are of a level, by its value."""
        return sum(1 for finding in self.findings if finding.level.value == level)


def examine(target: Target, namespace: str, role: Role) -> Talk[Report]:
    """Look everything over that this role relies on.

    Raises:
        Unavailable, OutcomeUnknown: the server went away.
        Rejected: it refuses the connection.
    """
    facts = yield from told()
    at_ms, ahead_s, unsure_s = yield from _clock()
    findings = [(yield from _latency()), _driver(), *critical(facts, target), holes(facts)]
    findings += yield from _fitness(facts)
    [names] = yield Leniently([views.queue_names(namespace)])
    keys = [QueueKeys(namespace, name) for name in _answered(names, [])]
    replica = any(one.about is About.ROLE and one.level is Level.FAIL for one in findings)
    findings.append((yield from _rights(role, keys or [QueueKeys(namespace, DEFAULT_QUEUE)], replica=replica)))
    findings.append(fitness.clock(ahead_s, unsure_s))
    findings += yield from _queues(namespace, keys, names, at_ms)
    return Report(at_ms, facts, findings)


def _clock() -> Talk[tuple[int, float, float]]:
    """Return the server's time, and by how many seconds this machine's is ahead, give or take how many."""
    # The one place that asks this machine's clock: to say how wrong it is.
    before = monotonic()
    ours = datetime.now(UTC).timestamp()
    [now_ms] = yield [upkeep.server_time()]
    half_s = (monotonic() - before) / 2
    return now_ms, ours + half_s - now_ms / 1000, half_s


def _latency() -> Talk[Finding]:
    took = []
    for _ in range(PINGS):
        before = monotonic()
        yield [upkeep.server_time()]
        took.append(monotonic() - before)
    return fitness.latency(took)


def _driver() -> Finding:
    """Say with what we talk; without hiredis replies are read by plain Python."""
    try:
        what = f"redis-py {version('redis')} with hiredis {version('hiredis')}"
    except PackageNotFoundError:
        what = "redis-py reads replies without hiredis, several times slower"
        return Finding(About.DRIVER, Level.WARN, what, "pip install 'redis[hiredis]'")
    return Finding(About.DRIVER, Level.OK, what)


def _fitness(facts: ServerFacts) -> Talk[list[Finding]]:
    names = ("appendfsync", "save", "min-replicas-to-write")
    *replies, slow = yield Leniently([*map(inspect.setting, names), inspect.slow_calls()])
    sync, save, least = (_answered(reply, None) for reply in replies)
    settings = Settings(sync, save, int(least) if least and least.isdigit() else None)
    found = [fitness.memory(facts), fitness.persistence(facts, settings), fitness.replicas(facts, settings)]
    slow = _answered(slow, None)
    if slow is None:
        return [*found, Finding(About.SLOW_LOG, Level.UNKNOWN, "this user may not read it")]
    return [*found, fitness.slow_log(slow)]


def _rights(role: Role, keys: Sequence[QueueKeys], *, replica: bool) -> Talk[Finding]:
    if replica:
        return Finding(About.RIGHTS, Level.UNKNOWN, "not tried on a replica")
    try:
        return (yield from rights.look(role, keys))
    except Rejected as error:
        if error.word in DENIED:
            return Finding(About.RIGHTS, Level.FAIL, str(error))
        return Finding(About.RIGHTS, Level.UNKNOWN, f"could not be tried: {error}")
    except Unavailable as error:
        return Finding(About.RIGHTS, Level.UNKNOWN, f"could not be tried: {_answered(error, error)}")


def _queues(namespace: str, keys: Sequence[QueueKeys], names: Any, at_ms: int) -> Talk[list[Finding]]:
    found = yield from checkup.read(keys, at_ms)
    findings = [schema({one.queue: one.schema for one in found})]
    if of_wrong_type(names):
        findings.append(checkup.wrong_types([f"{queues(namespace)} is not a set"]))
    elif isinstance(names, StreamJobsError):
        findings.append(Finding(About.BACKLOG, Level.UNKNOWN, "this user may not see which queues there are"))
    else:
        findings += checkup.judge(found)
    walked = yield from checkup.walk(namespace, [one.queue for one in keys])
    return findings + checkup.judge_walk(walked)


def _answered(reply: Any, instead: Any) -> Any:
    """Return a reply, or `instead` where the server refuses it; raise where there is no server any more."""
    if isinstance(reply, OutcomeUnknown) or (isinstance(reply, Unavailable) and reply.word == "CONNECT"):
        raise reply
    return instead if isinstance(reply, StreamJobsError) else reply
