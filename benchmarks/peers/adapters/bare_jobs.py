"""No job system: the least that the same costs through redis-py."""

import json
from typing import Any

import redis
from redis.asyncio import Redis

from .base import TEXT, URL, Clock, main, mark

ADD = "for i = 1, #ARGV do redis.call('XADD', KEYS[1], '*', 'body', ARGV[i]) end"
SETTLE = "redis.call('XACK', KEYS[1], 'g', unpack(ARGV)) return redis.call('XDEL', KEYS[1], unpack(ARGV))"
BATCH = 500


def one(jobs: int) -> None:
    client = redis.Redis.from_url(URL)
    client.ping()
    with Clock(jobs):
        for number in range(jobs):
            client.xadd("bare", {"body": _body(number)})


def bulk(jobs: int) -> None:
    client = redis.Redis.from_url(URL)
    add = client.register_script(ADD)
    add(["warm"], [_body(0)])
    with Clock(jobs):
        for first in range(0, jobs, BATCH):
            add(["bare"], [_body(number) for number in range(first, min(first + BATCH, jobs))])


async def drain() -> None:
    client = Redis.from_url(URL, protocol=2)
    await client.xgroup_create("bare", "g", "0", mkstream=True)
    settle = client.register_script(SETTLE)
    while True:
        reply: Any = await client.xreadgroup("g", "one", {"bare": ">"}, count=BATCH, block=1000)
        for _, entries in reply or []:
            for _, fields in entries:
                await _handler(**json.loads(fields[b"body"]))
            await settle(["bare"], [entry for entry, _ in entries])


def _body(number: int) -> str:
    return f'{{"number":{number},"text":"{TEXT}"}}'


async def _handler(number: int, text: str) -> None:
    mark()


if __name__ == "__main__":
    main(one=one, bulk=bulk, drain=drain)
