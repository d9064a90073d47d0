"""A few small pages over HTTP, from the event loop: probes and metrics, and nothing else.

A loop that is blocked answers nobody, which is the answer that an orchestrator needs. Whoever reaches the
port may ask anything, so requests are read strictly and within bounds: of size, time, and how many at once.
"""

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import TypeAlias

import msgspec

from streamjobs.core.addresses import Address

log = logging.getLogger("streamjobs.worker")

HEAD_BYTES = 8192
PATIENCE_S = 5.0
"""How long one visit may take, from the connection to the last byte of the answer."""
MOST_VISITS = 64
TEXT = "text/plain; charset=utf-8"

_REQUEST = re.compile(rb"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.[01]")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*)")


class Page(msgspec.Struct, frozen=True):
    """An answer."""

    text: str | bytes
    status: HTTPStatus = HTTPStatus.OK
    type: str = TEXT


Render: TypeAlias = Callable[[], Awaitable[Page]]
"""Makes a page when it is asked for."""


class Site:
    """Pages by path, at one address. GET and HEAD, one request a connection."""

    def __init__(self, pages: Mapping[str, Render]) -> None:
        self._pages = pages
        self._visits: dict[asyncio.Task[None], None] = {}
        self._server: asyncio.Server | None = None

    async def open(self, address: Address) -> str:
        """Begin to listen; return where.

        Raises:
            OSError: that cannot be had.
        """
        limit = HEAD_BYTES
        if address.descriptor is not None:
            given = socket.socket(fileno=address.descriptor)
            # What handlers start must not keep it open.
            given.set_inheritable(False)
            self._server = await asyncio.start_server(self._arrive, sock=given, limit=limit)
        else:
            self._server = await asyncio.start_server(self._arrive, address.host or None, address.port, limit=limit)
        host, port, *_ = self._server.sockets[0].getsockname()
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def close(self) -> None:
        """Listen no more, and leave those who are just being answered."""
        if self._server is None:
            return
        self._server.close()
        visits = list(self._visits)
        for visit in visits:
            visit.cancel()
        await asyncio.gather(*visits, return_exceptions=True)
        await self._server.wait_closed()

    def _arrive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._visits) >= MOST_VISITS:
            # The oldest has to go: who is slow on purpose must not keep a probe out.
            oldest = next(iter(self._visits))
            del self._visits[oldest]
            oldest.cancel()
        visit = asyncio.get_running_loop().create_task(self._visit(reader, writer), name="streamjobs-visit")
        self._visits[visit] = None
        visit.add_done_callback(lambda _: self._visits.pop(visit, None))

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                head, page = await self._answer(reader)
                writer.write(_reply(page, whole=not head))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, EOFError, TimeoutError):
            # Whoever it was has gone, or is too slow.
            pass
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[bool, Page]:
        """Return whether only the head of the answer was asked for, and the answer."""
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return False, _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        line, *lines = raw[:-4].split(b"\r\n")
        request = _REQUEST.fullmatch(line)
        fields = [_FIELD.fullmatch(one) for one in lines]
        if request is None or None in fields or any(one and _has_body(one[1], one[2]) for one in fields):
            return False, _refusal(HTTPStatus.BAD_REQUEST)
        method, target = request[1], request[2].decode("ascii")
        if method not in (b"GET", b"HEAD"):
            return False, _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        render = self._pages.get(target.partition("?")[0])
        return method == b"HEAD", await self._rendered(render) if render else _refusal(HTTPStatus.NOT_FOUND)

    async def _rendered(self, render: Render) -> Page:
        try:
            return await render()
        except Exception:
            log.exception("a page could not be made")
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR)


def _has_body(name: bytes, value: bytes) -> bool:
    return name.lower() == b"transfer-encoding" or (name.lower() == b"content-length" and value.strip() != b"0")


def _refusal(status: HTTPStatus) -> Page:
    return Page(f"{status.phrase.lower()}\n", status)


def _reply(page: Page, *, whole: bool) -> bytes:
    body = page.text.encode() if isinstance(page.text, str) else page.text
    head = [
        f"HTTP/1.1 {page.status.value} {page.status.phrase}",
        f"Content-Type: {page.type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if page.status is HTTPStatus.METHOD_NOT_ALLOWED:
        head.append("Allow: GET, HEAD")
    return "\r\n".join([*head, "", ""]).encode() + (body if whole else b"")
