"""The bare loops: the least that adding and draining such jobs costs through redis-py.

No retries, leases or checks, but no work left out either: the same server, connection kind, protocol, fields
and batch size as ours, every job's body is decoded and its handler run. One count per batch tells
several that drain together when all is done.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import msgspec
import redis
from redis.asyncio import Redis

from streamjobs.protocol.keys import GROUP, QueueKeys

from .jobs import KIND, QUEUE, Arguments, Noop, body, busy, countdown
from .measure import Meter, Order, Sample

BATCH = 500
PATIENCE_MS = 100
TRIES = 20
"""So often may nothing have come before a drain gives up."""

ADD = """
local kind = ARGV[1]
for i = 2, #ARGV do
  redis.call('XADD', KEYS[1], '*', 'kind', kind, 'body', ARGV[i], 'meta', '')
end
"""
SETTLE = """
redis.call('XACK', KEYS[1], 'workers', unpack(ARGV))
redis.call('XDEL', KEYS[1], unpack(ARGV))
return redis.call('HINCRBY', KEYS[2], 'done', #ARGV)
"""


def enqueue(order: Order) -> Sample:
    """Send encoded bodies, one script call per batch, through the asyncio client."""
    return asyncio.run(_enqueue(order))


async def _enqueue(order: Order) -> Sample:
    meter, key, warm, batches = _prepare(order)
    client = Redis.from_url(order.url, protocol=2)
    add = await client.script_load(ADD)
    await client.evalsha(add, 1, warm, KIND, body(0))
    meter.start()
    for batch in batches:
        await client.evalsha(add, 1, key, KIND, *batch)
    sample = meter.stop(order.jobs)
    await client.aclose()
    return sample


def enqueue_sync(order: Order) -> Sample:
    """Send encoded bodies, one script call per batch, through the blocking client."""
    meter, key, warm, batches = _prepare(order)
    client = redis.Redis.from_url(order.url, protocol=2)
    add = client.script_load(ADD)
    client.evalsha(add, 1, warm, KIND, body(0))
    meter.start()
    for batch in batches:
        client.evalsha(add, 1, key, KIND, *batch)
    sample = meter.stop(order.jobs)
    client.close()
    return sample


def one_by_one(order: Order) -> Sample:
    """Send each body by a command of its own, awaited, through the asyncio client."""
    return asyncio.run(_one_by_one(order))


async def _one_by_one(order: Order) -> Sample:
    meter, key, warm, _ = _prepare(order)
    client = Redis.from_url(order.url, protocol=2)
    await client.xadd(warm, _fields(0))
    meter.start()
    for number in range(order.jobs):
        await client.xadd(key, _fields(number))
    sample = meter.stop(order.jobs)
    await client.aclose()
    return sample


def one_by_one_sync(order: Order) -> Sample:
    """Send each body by a command of its own through the blocking client."""
    meter, key, warm, _ = _prepare(order)
    client = redis.Redis.from_url(order.url, protocol=2)
    client.xadd(warm, _fields(0))
    meter.start()
    for number in range(order.jobs):
        client.xadd(key, _fields(number))
    sample = meter.stop(order.jobs)
    client.close()
    return sample


def _fields(number: int) -> dict[Any, Any]:
    return {"kind": KIND, "body": body(number), "meta": ""}


def together(order: Order) -> Sample:
    """Let `callers` tasks send one body after the other; what they have at one moment goes in one call."""
    return asyncio.run(_together(order))


async def _together(order: Order) -> Sample:
    meter, key, warm, _ = _prepare(order)
    callers = int(order.how["callers"])
    client = Redis.from_url(order.url, protocol=2)
    sender, warmer = Coalescer(client, key), Coalescer(client, warm)
    await warmer.add(body(0))

    async def call(first: int) -> None:
        for number in range(first, order.jobs, callers):
            await sender.add(body(number))

    meter.start()
    await asyncio.gather(*map(call, range(callers)))
    sample = meter.stop(order.jobs)
    await client.aclose()
    return sample


class Coalescer:
    """Sends what callers have at one moment in one call; no number, no token, no second try."""

    def __init__(self, client: "Redis", key: str) -> None:
        self._client, self._key = client, key
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, content: bytes) -> "asyncio.Future[None]":
        """Send a body; the future is done when it has arrived."""
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((content, arrived))
        if self._task is None:
            self._task = asyncio.create_task(self._send())
        return arrived

    async def _send(self) -> None:
        add = await self._client.script_load(ADD)
        while self._waiting:
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            await self._client.evalsha(add, 1, self._key, KIND, *[content for content, _ in batch])
            for _, arrived in batch:
                arrived.set_result(None)
            # Those who were woken may have more.
            await asyncio.sleep(0)
        self._task = None


def drain(order: Order) -> Sample:
    """Read, decode, await the handler, and settle each batch by one script; until all is done, whoever did it."""
    return asyncio.run(_drain(order, countdown(order.jobs)[0]))


def drain_busy(order: Order) -> Sample:
    """Drain as `drain` does, with a handler that computes for a millisecond."""
    return asyncio.run(_drain(order, busy))


async def _drain(order: Order, handler: Noop) -> Sample:
    keys, meter = QueueKeys(order.namespace, QUEUE), Meter(order.url)
    decode, done = msgspec.json.Decoder(Arguments).decode, 0
    meter.start()
    client = Redis.from_url(order.url, protocol=2)
    settle = await client.script_load(SETTLE)
    async for entries in read(client, keys.stream):
        ids = []
        for entry, fields in entries:
            arguments = decode(fields[b"body"])
            await handler(arguments.number, arguments.text)
            ids.append(entry)
        if ids:
            done = int(await client.evalsha(settle, 2, keys.stream, keys.totals, *ids))
        else:
            done = int(await client.hget(keys.totals, "done") or 0)
        if done >= order.jobs:
            break
    sample = meter.stop(done)
    await client.aclose()
    return sample


async def read(client: "Redis", key: str) -> AsyncIterator[list[tuple[bytes, dict[bytes, bytes]]]]:
    """Yield batches of fresh entries, an empty one after each tenth of a second without any, and in the end none."""
    with suppress(redis.ResponseError):  # another one was first
        await client.xgroup_create(key, GROUP, "0", mkstream=True)
    left = TRIES
    while left:
        reply: Any = await client.xreadgroup(GROUP, f"bare-{os.getpid()}", {key: ">"}, count=BATCH, block=PATIENCE_MS)
        left = TRIES if reply else left - 1
        yield reply[0][1] if reply else []


def _prepare(order: Order) -> tuple[Meter, str, str, list[list[bytes]]]:
    bodies = [body(number) for number in range(order.jobs)]
    batches = [bodies[start : start + BATCH] for start in range(0, order.jobs, BATCH)]
    key, warm = (QueueKeys(order.namespace, queue).stream for queue in (QUEUE, "warm"))
    return Meter(order.url), key, warm, batches
