"""What orchestrators and monitors ask a worker over HTTP: is it alive, is it ready, what has it done."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import TypeAlias

from streamjobs.core.addresses import Address, parse_address
from streamjobs.core.errors import InvalidOption
from streamjobs.worker.site import Page, Render, Site

log = logging.getLogger("streamjobs.worker")

ANSWER_S = 0.8
"""How long the server has to answer for a worker to be ready: probes wait for a second, unless told otherwise."""


Pages: TypeAlias = Mapping[str, tuple[int | str | None, Mapping[str, Render]]]
"""By the name of the option that asks for them, an address (None: not asked for) and pages."""


def health_pages(trouble: Callable[[], str], unready: Callable[[], Awaitable[str]]) -> dict[str, Render]:
    """Return `/livez` and `/readyz`.

    Args:
        trouble: why it is not alive; "" while it is.
        unready: why it is not ready; "" while it is.
    """

    async def livez() -> Page:
        return _verdict(trouble())

    async def readyz() -> Page:
        try:
            async with asyncio.timeout(ANSWER_S):
                return _verdict(await unready())
        except TimeoutError:
            return _verdict(f"the server has not answered within {ANSWER_S:g} s")

    return {"/livez": livez, "/readyz": readyz}


def _verdict(why_not: str) -> Page:
    return Page(f"{why_not}\n", HTTPStatus.SERVICE_UNAVAILABLE) if why_not else Page("ok\n")


@asynccontextmanager
async def serving(wanted: Pages) -> AsyncIterator[None]:
    """Serve pages while the block runs; those of one address together.

    Raises:
        InvalidOption: an address cannot be had.
    """
    sites: dict[Address, dict[str, Render]] = {}
    asked: dict[Address, str] = {}
    for name, (value, pages) in wanted.items():
        if value is not None:
            address = parse_address(value, name)
            sites.setdefault(address, {}).update(pages)
            asked.setdefault(address, f"{name}={value}")
    async with AsyncExitStack() as stack:
        for address, pages in sites.items():
            site = Site(pages)
            stack.push_async_callback(site.close)
            try:
                where = await site.open(address)
            except OSError as error:
                advice = "choose another port, or end what listens there"
                raise InvalidOption(f"{asked[address]}: cannot listen there: {_reason(error)}; {advice}") from error
            log.info("%s at http://%s", ", ".join(pages), where)
        yield


def _reason(error: OSError) -> str:
    """Return the system's own words: asyncio writes the address into them, and more."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror or error)
