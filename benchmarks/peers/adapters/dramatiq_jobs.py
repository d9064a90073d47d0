"""Dramatiq; fast is with retries as the only middleware, and reads far ahead."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

from .base import FAST, TEXT, URL, main, mark

if FAST:
    os.environ["dramatiq_queue_prefetch"] = "1000"  # noqa: SIM112 (it is spelled like this)

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import Retries

broker = RedisBroker(url=URL, middleware=[Retries()]) if FAST else RedisBroker(url=URL)
dramatiq.set_broker(broker)


def run(number: int, text: str) -> None:
    mark(number)


noop = dramatiq.actor(run, actor_name="noop")


@contextmanager
def add() -> Iterator[Any]:
    broker.client.ping()
    yield lambda number: noop.send(number, TEXT)


def drain() -> None:
    dramatiq.Worker(broker, worker_threads=8).start()
    Event().wait()


if __name__ == "__main__":
    main(add=add, drain=drain)
