"""After a fork, parent and child each have connections of their own."""

import asyncio
import gc
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from streamjobs.client import Connections
from tests.client.words import command

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform"),
    # The test runner may have threads of its own.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def in_child(act: Callable[[], Any]) -> bytes:
    """Run a function in a forked child and return what it returned, as text."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, str(act()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said


def connection_ids(connections: Connections) -> Any:
    return connections.sync().run(command("CLIENT", "ID"))


def test_child_has_a_blocking_connection_of_its_own(server_url: str) -> None:
    connections = Connections(server_url)
    before = connection_ids(connections)

    child = in_child(lambda: connection_ids(connections))

    assert int(child) not in (0, before)
    assert connection_ids(connections) == before
    connections.close()


def in_fresh_loop(act: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine in a child that was forked inside its parent's event loop."""
    asyncio._set_running_loop(None)
    with asyncio.Runner() as runner:
        # Replaces the last reference to the parent's loop, so that all of it can be collected.
        asyncio.set_event_loop(runner.get_loop())
        return runner.run(act())


async def test_child_has_an_asyncio_connection_of_its_own(server_url: str) -> None:
    connections = Connections(server_url)
    executor = connections.aio()
    before = await executor.run(command("CLIENT", "ID"))

    async def ask() -> Any:
        reply = await executor.run(command("CLIENT", "ID"))
        await connections.aclose()
        return reply

    child = in_child(lambda: in_fresh_loop(ask))

    assert int(child) not in (0, before)
    assert await executor.run(command("CLIENT", "ID")) == before
    await connections.aclose()


async def test_read_under_way_in_the_parent_goes_on(server_url: str, namespace: str) -> None:
    """Closing the child's copy of a connection would take it out of the epoll that both share."""
    connections = Connections(server_url)
    key, other = f"{namespace}:k", connections.aio()
    reading = asyncio.create_task(connections.aio(block_ms=60_000).run(command("BLPOP", key, 60)))
    while b"cmd=blpop" not in await other.run(command("CLIENT", "LIST")):
        await asyncio.sleep(0)

    async def push() -> None:
        gc.collect()
        await other.run(command("RPUSH", key, "x"))
        await connections.aclose()

    in_child(lambda: in_fresh_loop(push))

    async with asyncio.timeout(10):
        assert await reading == [key.encode(), b"x"]
    await connections.aclose()


def test_childs_close_leaves_the_parent_connected(server_url: str) -> None:
    connections = Connections(server_url)
    before = connection_ids(connections)

    in_child(connections.close)

    assert connection_ids(connections) == before
    connections.close()
