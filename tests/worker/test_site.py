"""The pages of a worker: strict about what is asked, patient for a while, and never kept up by anybody."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from streamjobs.worker import site as module
from streamjobs.worker.site import Page, Site
from tests.worker.support import WITHIN_S, within
from tests.worker.visits import Port, open_site, page


@pytest.fixture
async def port() -> AsyncIterator[Port]:
    async def hello() -> Page:
        return await page("hello\n")

    async def broken() -> Page:
        raise ValueError("a secret")

    port = Port()
    site = await open_site(port, hello=hello, broken=broken)
    yield port
    await site.close()


async def test_a_page_is_answered_once_and_the_connection_closed(port: Port) -> None:
    head, body = await port.ask(b"GET /hello?verbose=1 HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n")

    assert head.splitlines() == [
        "HTTP/1.1 200 OK", "Content-Type: text/plain; charset=utf-8", "Content-Length: 6",
        "Cache-Control: no-store", "Connection: close",
    ]  # fmt: skip
    assert body == b"hello\n"


async def test_head_is_answered_without_the_body(port: Port) -> None:
    head, body = await port.ask(b"HEAD /hello HTTP/1.0\r\n\r\n")

    assert head.startswith("HTTP/1.1 200 OK")
    assert "Content-Length: 6" in head
    assert body == b""


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"GET /hello/ HTTP/1.1\r\n\r\n", 404),
        (b"GET /../hello HTTP/1.1\r\n\r\n", 404),
        (b"POST /hello HTTP/1.1\r\n\r\n", 405),
        (b"POST /hello HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 400),
        (b"GET /hello HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 400),
        (b"GET /hello HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET http://elsewhere/hello HTTP/1.1\r\n\r\n", 400),
        (b"GET /hello HTTP/2.0\r\n\r\n", 400),
        (b"GET  /hello HTTP/1.1\r\n\r\n", 400),
        (b"get /hello HTTP/1.1\r\n\r\n", 400),
        (b"GET /h\xc3\xa9llo HTTP/1.1\r\n\r\n", 400),
        (b"GET /hello HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET /hello HTTP/1.1\r\nHost : x\r\n\r\n", 400),
        (b"GET /hello HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 400),
        (b"GET /hello HTTP/1.1\r\nHost: a\nb\r\n\r\n", 400),
        (b"GET /hello\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\x16\x03\x01\x00\xa5\x01\r\n\r\n", 400),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET /hello HTTP/1.1\r\n" + b"Cookie: " + b"a" * 100_000 + b"\r\n\r\n", 431),
        (b"GET /broken HTTP/1.1\r\n\r\n", 500),
    ],
    ids=lambda value: repr(value[:40]) if isinstance(value, bytes) else None,
)
async def test_what_is_no_request_for_a_page_is_refused(port: Port, request_: bytes, status: int) -> None:
    head, body = await port.ask(request_, end=True)

    assert int(head.split()[1]) == status, head
    assert b"secret" not in body
    assert ("Allow: GET, HEAD" in head) == (status == 405)


@pytest.mark.parametrize("part", [b"", b"GET /hello HTTP/1.1\r\nHost: x\r\n"])
async def test_who_leaves_early_gets_nothing(port: Port, part: bytes) -> None:
    assert await port.ask(part, end=True) == ("", b"")
    assert (await port.get("/hello"))[0] == 200


async def test_who_is_slow_is_left(monkeypatch: pytest.MonkeyPatch, port: Port) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)

    assert await port.ask(b"GET /hello HTTP/1.1\r\n") == ("", b"")


async def test_who_holds_on_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch, port: Port) -> None:
    """The oldest have to go, long before their time is up; the others stay."""
    monkeypatch.setattr(module, "MOST_VISITS", 3)
    monkeypatch.setattr(module, "PATIENCE_S", 600)
    holders = [await asyncio.open_connection("127.0.0.1", port.number) for _ in range(10)]

    assert await port.get("/hello") == (200, "hello\n")

    async with asyncio.timeout(WITHIN_S):
        assert [await reader.read() for reader, _ in holders[:8]] == [b""] * 8
    assert not any(reader.at_eof() for reader, _ in holders[8:])
    for _, writer in holders:
        writer.transport.abort()


async def test_closing_leaves_those_who_wait_and_the_port() -> None:
    asked = asyncio.Event()

    async def slow() -> Page:
        asked.set()
        await asyncio.Event().wait()
        return await page("never")

    port = Port()
    site = await open_site(port, slow=slow)
    asking = asyncio.ensure_future(port.ask(b"GET /slow HTTP/1.1\r\n\r\n"))
    await within(asked)

    await site.close()

    assert not [task for task in asyncio.all_tasks() if task.get_name() == "streamjobs-visit"]
    assert await asking == ("", b"")
    with pytest.raises(ConnectionRefusedError):
        await port.get("/slow")


async def test_a_site_that_was_never_opened_can_be_closed() -> None:
    await Site({}).close()
