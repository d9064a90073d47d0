"""The bare loops: the least that adding and draining such jobs costs through redis-py.

No retries, leases, counters or checks, but no work left out either: the same server, connection
kind, protocol, fields and batch size as ours, and every job's body is decoded and its handler run.
"""

import asyncio
from typing import Any

import msgspec
import redis
from redis.asyncio import Redis

from streamjobs.protocol.keys import GROUP, QueueKeys

from .jobs import KIND, QUEUE, Arguments, body, countdown
from .measure import Meter, Order, Sample

BATCH = 500

ADD = """
local kind = ARGV[1]
for i = 2, #ARGV do
  redis.call('XADD', KEYS[1], '*', 'kind', kind, 'body', ARGV[i], 'meta', '')
end
"""
SETTLE = """
redis.call('XACK', KEYS[1], 'workers', unpack(ARGV))
return redis.call('XDEL', KEYS[1], unpack(ARGV))
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


def drain(order: Order) -> Sample:
    """Read, decode, await the handler, and settle each batch by one script."""
    return asyncio.run(_drain(order))


async def _drain(order: Order) -> Sample:
    meter, key = Meter(order.url), QueueKeys(order.namespace, QUEUE).stream
    decode, (noop, _) = msgspec.json.Decoder(Arguments).decode, countdown(order.jobs)
    handled = 0
    meter.start()
    client = Redis.from_url(order.url, protocol=2)
    settle = await client.script_load(SETTLE)
    await client.xgroup_create(key, GROUP, "0")
    while entries := _entries(await client.xreadgroup(GROUP, "bare", {key: ">"}, count=BATCH, block=100)):
        ids = []
        for entry, fields in entries:
            arguments = decode(fields[b"body"])
            await noop(arguments.number, arguments.text)
            ids.append(entry)
        await client.evalsha(settle, 1, key, *ids)
        handled += len(ids)
        if handled >= order.jobs:
            break
    sample = meter.stop(handled)
    await client.aclose()
    return sample


def _entries(reply: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    return reply[0][1] if reply else []


def _prepare(order: Order) -> tuple[Meter, str, str, list[list[bytes]]]:
    bodies = [body(number) for number in range(order.jobs)]
    batches = [bodies[start : start + BATCH] for start in range(0, order.jobs, BATCH)]
    key, warm = (QueueKeys(order.namespace, queue).stream for queue in (QUEUE, "warm"))
    return Meter(order.url), key, warm, batches
