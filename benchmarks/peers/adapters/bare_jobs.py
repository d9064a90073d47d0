"""No job system: the least that the same costs through redis-py."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import redis
from redis.asyncio import Redis

from .base import TEXT, URL, Clock, main, mark

ADD = "for i = 1, #ARGV do redis.call('XADD', KEYS[1], '*', 'body', ARGV[i]) end"
SETTLE = "redis.call('XACK', KEYS[1], 'g', unpack(ARGV)) return redis.call('XDEL', KEYS[1], unpack(ARGV))"
BATCH = 500


@contextmanager
def add() -> Iterator[Any]:
    client = redis.Redis.from_url(URL)
    client.ping()
    yield lambda number: client.xadd("bare", {"body": _body(number)})


def bulk(jobs: int) -> None:
    client = redis.Redis.from_url(URL)
    add = client.register_script(ADD)
    add(["warm"], [_body(0)])
    with Clock(jobs):
        for first in range(0, jobs, BATCH):
            add(["bare"], [_body(number) for number in range(first, min(first + BATCH, jobs))])


async def drain() -> None:
    client, consumer = Redis.from_url(URL, protocol=2), str(os.getpid())
    with suppress(redis.ResponseError):  # another one was first
        await client.xgroup_create("bare", "g", "0", mkstream=True)
    settle = client.register_script(SETTLE)
    while True:
        reply: Any = await client.xreadgroup("g", consumer, {"bare": ">"}, count=BATCH, block=1000)
        for _, entries in reply or []:
            for _, fields in entries:
                await _handler(**json.loads(fields[b"body"]))
            await settle(["bare"], [entry for entry, _ in entries])


def _body(number: int) -> str:
    return f'{{"number":{number},"text":"{TEXT}"}}'


async def _handler(number: int, text: str) -> None:
    mark(number)


if __name__ == "__main__":
    main(add=add, bulk=bulk, drain=drain)
