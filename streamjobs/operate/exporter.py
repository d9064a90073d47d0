"""A process that tells monitors what the queues hold, from Redis alone: it needs no app and no worker."""

import asyncio
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from time import monotonic

from streamjobs.client import Connections
from streamjobs.client.talk import atalk
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.exposition import TYPE
from streamjobs.operate.overview import overview
from streamjobs.operate.prom import judged
from streamjobs.protocol.upkeep import server_time
from streamjobs.worker.probes import health_pages, serving
from streamjobs.worker.site import Page

ANSWER_S = 2.0
"""How long the server has for an answer: less than a visit may take, so that a monitor is told what is wrong."""
FRESH_S = 1.0
"""Monitors that ask within this time get the same answer: however many they are, the server is asked once."""


class Exporter:
    """Serves `/metrics`, `/livez` and `/readyz`, each scrape from a look of its own."""

    def __init__(self, connections: Connections, namespace: str) -> None:
        self._executor = connections.aio()
        self._namespace = namespace
        self._turn = asyncio.Lock()
        self._page = Page("")
        self._made_at = -FRESH_S

    def serving(self, address: int | str) -> AbstractAsyncContextManager[None]:
        """Serve at an address while a block runs.

        Raises:
            InvalidOption: the address cannot be had.
        """
        pages = health_pages(lambda: "", self._unready)
        return serving({"port": (address, {**pages, "/metrics": self.metrics})})

    async def metrics(self) -> Page:
        """Return the metrics of all queues; 503 and why, where the server cannot be asked."""
        async with self._turn:
            if monotonic() - self._made_at >= FRESH_S:
                self._page = await self._ask()
                self._made_at = monotonic()
            return self._page

    async def _ask(self) -> Page:
        try:
            async with asyncio.timeout(ANSWER_S):
                return Page(judged(await atalk(self._executor, overview(self._namespace))), type=TYPE)
        except StreamJobsError as error:
            why = str(error)
        except TimeoutError:
            why = f"the server has not answered within {ANSWER_S:g} s"
        return Page(f"{why}\n", HTTPStatus.SERVICE_UNAVAILABLE)

    async def _unready(self) -> str:
        try:
            await self._executor.run(server_time())
        except StreamJobsError as error:
            return str(error)
        return ""
