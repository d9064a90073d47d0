"""Ask over HTTP, byte by byte where that matters."""

import asyncio
import socket

from streamjobs.worker.site import Page, Render, Site
from tests.worker.support import WITHIN_S


class Port:
    """A listening socket on loopback, to be handed to whoever is to serve there: `address` is its option's value."""

    def __init__(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.number: int = listener.getsockname()[1]
        self.address = f"fd://{listener.detach()}"

    async def get(self, path: str) -> tuple[int, str]:
        """Return the status and the text of a page."""
        head, body = await self.ask(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return int(head.split()[1]), body.decode()

    async def ask(self, request: bytes, *, end: bool = False) -> tuple[str, bytes]:
        """Send this; return the head and the body of what is answered, "" for both where nothing is."""
        async with asyncio.timeout(WITHIN_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.number)
            try:
                writer.write(request)
                if end:
                    writer.write_eof()
                reply = await reader.read()
            finally:
                writer.transport.abort()
        head, _, body = reply.partition(b"\r\n\r\n")
        return head.decode(), body


async def page(text: str) -> Page:
    """Return a page of this text."""
    return Page(text)


async def open_site(port: Port, **pages: Render) -> Site:
    """Serve pages by their names at a port."""
    from streamjobs.core.addresses import parse_address

    site = Site({f"/{name}": render for name, render in pages.items()})
    await site.open(parse_address(port.address, "port"))
    return site
