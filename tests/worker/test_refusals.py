"""Each error that passes by itself, met once by each request that a worker makes: waited out, and nothing is lost."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest

from streamjobs import Context, Fixed, JobFailed, Permanent, Retry, Snooze, StreamJobs
from streamjobs.protocol.replies import NOT_EXECUTED, Fate, fate, word
from tests.faults.proxy import Act, Proxy, Rule, Side
from tests.faults.refusals import REPLIES
from tests.worker.support import FAST, WITHIN_S, Flag, Queue, make_app

pytestmark = pytest.mark.slow

LEASE_MS = 600
REQUESTS = (
    "join sadd hgetall xinfo promote xreadgroup blpop reclaim take suspect renew"
    " complete retry snooze bury release retire"
).split()
"""All that a worker asks for in a life with a bit of everything."""

BREAKS: dict[str, tuple[Act, Side]] = {
    "reset before": (Act.DROP, "request"),
    "reset after": (Act.DROP, "reply"),
    "half sent": (Act.TRUNCATE, "request"),
    "half answered": (Act.TRUNCATE, "reply"),
}
"""Connections that break before or after the server has executed the request."""


def rule(fault: str, request: str) -> Rule:
    """Return what lets one such request meet this fault."""
    if fault in REPLIES:
        return Rule(Act.REFUSE, request, error=REPLIES[fault], times=1)
    act, side = BREAKS[fault]
    return Rule(act, request, side=side, times=1)


def test_the_replies_are_all_that_pass_by_themselves() -> None:
    assert set(REPLIES) == NOT_EXECUTED - {"CONNECT"}
    assert {name: word(text) for name, text in REPLIES.items()} == {name: name for name in REPLIES}
    assert {fate(word(text)) for text in REPLIES.values()} == {Fate.NOT_EXECUTED}


@pytest.fixture
def proxy(server_url: str) -> Iterator[Proxy]:
    with Proxy(server_url) as proxy:
        yield proxy


@pytest.fixture
async def proxied(proxy: Proxy, namespace: str) -> AsyncIterator[StreamJobs]:
    """An app whose requests may fail."""
    app = make_app(proxy.url, namespace)
    yield app
    await app.aclose()


class Kinds:
    """A handler for each way of ending, and one that outlasts its worker."""

    def __init__(self, app: StreamJobs) -> None:
        self.outlasting = Flag()
        snoozes = Flag()

        @app.job(name="ends", retry=Retry(max_attempts=20, backoff=Fixed(0.01)))
        async def ends(ctx: Context[Any], how: str) -> None:
            match how:
                case "retry" if ctx.attempt == 1:
                    raise ValueError(how)
                case "snooze" if snoozes.raise_() == 1:
                    raise Snooze(0.01)
                case "bury":
                    raise Permanent(how)

        @app.job(name="outlasts")
        async def outlasts() -> None:
            if self.outlasting.raise_() == 1:
                await asyncio.Event().wait()


@pytest.mark.parametrize("fault", [*REPLIES, *BREAKS])
async def test_case_F12_each_passing_error_is_met_once_by_each_request_and_waited_out(
    proxy: Proxy, proxied: StreamJobs, real: StreamJobs, queue: Queue, fault: str
) -> None:
    kinds = Kinds(proxied)
    Kinds(real)
    queue.make_group()
    queue.command("HSET", queue.keys.config, "lease_ms", LEASE_MS)
    ends = real.kind("ends")
    handles = [await ends.enqueue("return") for _ in range(3)]
    queue.crash()
    rules = {name: proxy.add(rule(fault, name)) for name in REQUESTS}

    first = proxied.make_worker(options=msgspec.structs.replace(FAST, grace=0.1))
    running = asyncio.create_task(first.run())
    handles += [await ends.enqueue(how) for how in ("return", "retry", "snooze")]
    handles.append(await ends.options(delay=0.05).enqueue("return"))
    buried, outlasts = await ends.enqueue("bury"), await real.kind("outlasts").enqueue()
    await kinds.outlasting.wait()
    for handle in handles:
        await handle.result(timeout=WITHIN_S)
    with pytest.raises(JobFailed):
        await buried.result(timeout=WITHIN_S)
    await bitten(rules["renew"])
    async with proxied.worker(options=FAST):
        first.stop()
        await running
        await outlasts.result(timeout=WITHIN_S)

    assert {name: one.hits for name, one in rules.items()} == dict.fromkeys(REQUESTS, 1)
    assert (queue.length(), queue.pending()) == (0, [])
    assert (queue.totals()["done"], [row["reason"] for row in queue.dead()]) == (8, [b"permanent"])


async def bitten(rule: Rule) -> None:
    """Wait until a rule has bitten."""
    async with asyncio.timeout(WITHIN_S):
        while not rule.hits:
            await asyncio.sleep(0)
