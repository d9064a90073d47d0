"""Everything that one process has open to the server of one URL."""

import asyncio
from functools import partial
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

    Executors asked for without anything are shared, all others are new. All are safe after a fork, in any
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
        self._syncs: list[SyncExecutor] = []
        self._aios: list[AsyncExecutor] = []
        self._readers: WeakSet[AsyncExecutor] = WeakSet()
        self._sync = self.sync(reply_s=reply_s)
        self._aio = self.aio(reply_s=reply_s)

    def sync(self, *, reply_s: float | None = None) -> SyncExecutor:
        """Return a blocking executor: the shared one, or with `reply_s` a new one with its own patience, kept as
        long as these connections.
        """
        if reply_s is None:
            return self._sync
        executor = SyncExecutor(self.target.text, partial(self._sync_line, reply_s))
        self._syncs.append(executor)
        return executor

    def aio(self, *, block_ms: int = 0, reply_s: float | None = None) -> AsyncExecutor:
        """Return an asyncio executor: the shared one; with `block_ms` a new one for requests that block on
        the server, which waits that much longer for a reply and can be unblocked; with `reply_s` a new
        one with its own patience, kept as long as these connections.
        """
        if not block_ms and reply_s is None:
            return self._aio
        timeout_s = (self._reply_s if reply_s is None else reply_s) + block_ms / 1000
        executor = AsyncExecutor(self.target.text, self._async_line, timeout_s=timeout_s, blocking=block_ms > 0)
        if block_ms:
            self._readers.add(executor)
        else:
            self._aios.append(executor)
        return executor

    def close(self) -> None:
        """Close the blocking connections, and leave an embedded server: the last user stops it."""
        self._close_syncs()
        if self._server is not None:
            self._server.leave()

    async def aclose(self) -> None:
        """Close what this event loop has open, and what `close` closes."""
        for executor in [*self._aios, *self._readers]:
            await executor.aclose()
        self._close_syncs()
        if self._server is not None:
            await asyncio.to_thread(self._server.leave)

    def _close_syncs(self) -> None:
        for executor in self._syncs:
            executor.close()

    def _sync_line(self, reply_s: float) -> SyncLine:
        if self.target.scheme == "memory":
            return memory.sync_line(self.target.name)
        target = self._server.join() if self._server is not None else self.target
        return lines.sync_line(target, reply_s)

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
