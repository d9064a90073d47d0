"""Scenario `dead`: what an operator waits for who works through dead jobs, from the start of the command to its end.

`list` and `groups`: a filter that fits every hundredth job. `groups_all`: all of them, each with another number in its
error. `few`: a list of 12 dead jobs, beside 700,000 that are done. `replay`: all of them put back.
"""

import resource
import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter

import redis

from streamjobs.protocol.keys import QueueKeys

from .document import Result
from .duel import Size, Void
from .jobs import QUEUE
from .lab import Lab, SideFailed
from .measure import Order, Sample, Spread
from .trial import medians

DONE = 700_000
FEW = 12
STEP = 5000
RARE = 100
"""Every so many jobs is of the kind that is looked for."""

_DIE = """
for i = ARGV[1], ARGV[2] do
  local kind = i % ARGV[3] == 0 and 'page.render' or 'mail.send'
  local job = string.format('1600000000000-%d', i)
  local entry = redis.call('XADD', KEYS[1], '*', 'id', job, 'kind', kind,
    'body', string.format('{"user_id":%d,"text":"%s"}', i, string.rep('x', 72)), 'meta', '', 'reason', 'exhausted',
    'error', string.format('TimeoutError: user %d: still running after 600 s', i), 'attempts', '8',
    'history', '[{"at":1764412345678,"n":8,"e":"TimeoutError: slow","k":"timeout","w":"host-1-abcdef"}]',
    'died_at', '1764412345678')
  redis.call('HSET', KEYS[2], job, entry)
end
"""
_END = """
for i = 1, ARGV[1] do redis.call('XDEL', KEYS[1], redis.call('XADD', KEYS[1], '*', 'kind', 'k', 'body', '{}')) end
redis.call('HINCRBY', KEYS[2], 'done', ARGV[1])
"""
FILTER = ("--kind", "page.render", "--error", "user N", "--class", "timeout", "--since", "1h")


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield the results."""
    for variant, jobs, done, words in (
        ("list", size.jobs, 0, ("list", *FILTER)),
        ("groups", size.jobs, 0, ("groups", *FILTER)),
        ("groups_all", size.jobs, 0, ("groups",)),
        ("few", FEW, DONE, ("list", "--kind", "mail.send", "--error", "user N", "--since", "1h")),
        ("replay", size.jobs, 0, ("replay", "--yes")),
    ):
        try:
            samples = [_once(lab, jobs, done, words) for _ in range(size.repeats)]
            yield _result(variant, jobs, samples)
        except (Void, SideFailed) as error:
            yield Result(scenario="dead", variant=variant, repeats=size.repeats, jobs=jobs, void=str(error))


def _once(lab: Lab, jobs: int, done: int, words: tuple[str, ...]) -> Sample:
    order = lab.order(jobs)
    try:
        _fill(order, done)
        sample = _command(order, *words)
        print(f"dead {words[0]} of {jobs:,}: {sample.seconds:.2f} s", file=sys.stderr, flush=True)
        return sample
    finally:
        lab.wipe(order)


def _fill(order: Order, done: int) -> None:
    """Let jobs be dead, and others have ended well."""
    keys = QueueKeys(order.namespace, QUEUE)
    with redis.Redis.from_url(order.url, protocol=2) as server:
        server.sadd(f"{order.namespace}:queues", QUEUE)
        for _ in range(0, done, STEP):
            server.eval(_END, 2, keys.stream, keys.totals, STEP)
        for first in range(1, order.jobs + 1, STEP):
            server.eval(_DIE, 2, keys.dead, keys.dead_ids, first, min(order.jobs, first + STEP - 1), RARE)


def _command(order: Order, *words: str) -> Sample:
    """Run a command to its end; the sample is of its whole process.

    Raises:
        SideFailed: it ended with an error, or said nothing.
    """
    command = [sys.executable, "-m", "streamjobs", "dead", *words, "--url", order.url, "--namespace", order.namespace]
    with redis.Redis.from_url(order.url, protocol=2) as server:
        server_s, client_s, begun = _server_cpu(server), _client_cpu(), perf_counter()
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = perf_counter() - begun
        if ended.returncode or not ended.stdout:
            raise SideFailed(f"dead {words[0]} ended with exit code {ended.returncode}: {ended.stderr.strip()[:200]}")
        return Sample(order.jobs, seconds, _client_cpu() - client_s, _server_cpu(server) - server_s)


def _client_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _server_cpu(server: redis.Redis) -> float:
    cpu = server.info("cpu")
    return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])


def _result(variant: str, jobs: int, samples: list[Sample]) -> Result:
    cpu_s = Spread.of((one.client_s + one.server_s for one in samples), 2)
    return medians("dead", variant, jobs, samples, {
        "s from the start of the command to its end": Spread.of((one.seconds for one in samples), 2),
        "s of CPU time, the command's and the server's": cpu_s,
    })  # fmt: skip
