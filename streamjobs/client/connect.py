"""Everything that one process has open to the server of one URL."""

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakSet

from streamjobs.client import lines, memory
from streamjobs.client.aio import AsyncExecutor
from streamjobs.client.lines import AsyncLine, SyncLine
from streamjobs.client.sync import SyncExecutor
from streamjobs.client.target import Target, parse_url
from streamjobs.core.errors import InvalidOption

if TYPE_CHECKING:
    from streamjobs.client.embedded import Server

REPLY_SECONDS = 10.0
"""How long a reply may take before its request's fate is unknown."""


class Connections:
    """Opens connections to one target when they are needed, and closes them all.

    Executors without `block_ms` are shared, each one with it is new. All are safe after a fork, in any
    thread (`sync`) and in any event loop (`aio`).
    """

    def __init__(self, url: str | Target, *, reply_s: float = REPLY_SECONDS) -> None:
        """Contact nothing yet.

        Args:
            url: see `parse_url`.
            reply_s: seconds to wait for a reply, on top of the time a request blocks.

        Raises:
            InvalidOption: the URL is not one of ours.
        """
        if not isinstance(url, str | Target):
            raise InvalidOption(f"url: expected a text such as redis://localhost:6379/0, not {type(url).__name__}")
        self.target = parse_url(url) if isinstance(url, str) else url
        self._reply_s = reply_s
        self._server = _embedded(self.target) if self.target.scheme == "embedded" else None
        self._sync = SyncExecutor(self.target.text, self._sync_line)
        self._aio = self._new_aio(0)
        self._readers: WeakSet[AsyncExecutor] = WeakSet()

    def sync(self) -> SyncExecutor:
        """Return the shared blocking executor."""
        return self._sync

    def aio(self, *, block_ms: int = 0) -> AsyncExecutor:
        """Return an asyncio executor: the shared one, or with `block_ms` a new one for requests that block
        on the server, which waits that much longer for a reply and can be unblocked.
        """
        if not block_ms:
            return self._aio
        reader = self._new_aio(block_ms)
        self._readers.add(reader)
        return reader

    def close(self) -> None:
        """Close the blocking connections, and leave an embedded server: the last user stops it."""
        self._sync.close()
        if self._server is not None:
            self._server.leave()

    async def aclose(self) -> None:
        """Close what this event loop has open, and what `close` closes."""
        for executor in [self._aio, *self._readers]:
            await executor.aclose()
        self._sync.close()
        if self._server is not None:
            await asyncio.to_thread(self._server.leave)

    def _new_aio(self, block_ms: int) -> AsyncExecutor:
        timeout_s = self._reply_s + block_ms / 1000
        return AsyncExecutor(self.target.text, self._async_line, timeout_s=timeout_s, blocking=block_ms > 0)

    def _sync_line(self) -> SyncLine:
        if self.target.scheme == "memory":
            return memory.sync_line(self.target.name)
        target = self._server.join() if self._server is not None else self.target
        return lines.sync_line(target, self._reply_s)

    async def _async_line(self) -> AsyncLine:
        if self.target.scheme == "memory":
            return memory.async_line(self.target.name)
        if self._server is None:
            return lines.async_line(self.target)
        return lines.async_line(await asyncio.to_thread(self._server.join))


def _embedded(target: Target) -> "Server":
    # Its file locks exist on POSIX only, and its imports cost what other targets need not pay.
    from streamjobs.client.embedded import Server

    return Server(target.folder)
