"""One address for a supervisor and all its children: what each says of itself, put together.

Each child serves its own pages from its own loop, as a worker without a supervisor does, at a socket that it is
started with; and is asked there, so that one whose loop is blocked is found out.
"""

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from http import HTTPStatus
from time import monotonic
from typing import Protocol

from streamjobs.core.addresses import LOOPBACK
from streamjobs.core.exposition import TYPE, joined
from streamjobs.worker.probes import ANSWER_S, serving
from streamjobs.worker.site import Page

ASK_S = ANSWER_S + 0.1
"""How long a child has for its answer: it waits for the server's that long itself."""
START_S = 60.0
"""A child that does not answer yet is taken to be starting for so long."""
QUARANTINE = "quarantine"
"""What the child for suspects is called; the others have numbers."""


class Member(Protocol):
    """A child, as far as it matters here."""

    ready: bool
    """Whether it has ever worked."""
    started_at: float


class Place:
    """Where one child answers."""

    def __init__(self, name: str, listener: socket.socket | None, options: Sequence[str]) -> None:
        self.name = name
        self._listener = listener
        self._options = options
        self.member: Member | None = None
        """Who is there, once it has been started."""

    @property
    def descriptors(self) -> list[int]:
        """What the child is to inherit."""
        return [] if self._listener is None else [self._listener.fileno()]

    @property
    def words(self) -> list[str]:
        """What is added to the child's command line: it serves what is asked for, and at this socket."""
        return [word for option in self._options for one in self.descriptors for word in (option, f"fd://{one}")]

    @property
    def starting(self) -> bool:
        """Whether it need not answer yet."""
        member = self.member
        return member is None or not (member.ready or monotonic() - member.started_at > START_S)

    async def ask(self, path: str) -> tuple[int, str] | None:
        """Return status and text of a page of the child's; None where it does not answer in time."""
        assert self._listener is not None
        try:
            async with asyncio.timeout(ASK_S):
                reader, writer = await asyncio.open_connection(*self._listener.getsockname())
                try:
                    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
                    reply = await reader.read()
                finally:
                    writer.transport.abort()
            head, _, text = reply.decode().partition("\r\n\r\n")
            return int(head.split(" ")[1]), text
        except (OSError, TimeoutError, ValueError, IndexError):
            return None


class Front:
    """The pages of a supervisor: `/livez` and `/readyz` of all children, and `/metrics` with a label for each."""

    def __init__(
        self, health: int | str | None = None, metrics: int | str | None = None, *, processes: int = 0
    ) -> None:
        """
        Args:
            health: where the probes are served; None for nowhere.
            metrics: where the metrics are.
            processes: how many children must be ready, beside that for suspects.
        """
        self._health, self._metrics = health, metrics
        self._expected = {str(number) for number in range(processes)}
        self._places: dict[str, Place] = {}

    def serving(self) -> AbstractAsyncContextManager[None]:
        """Serve while a block runs.

        Raises:
            InvalidOption: an address cannot be had.
        """
        health = {"/livez": self.livez, "/readyz": self.readyz}
        return serving(
            {"health_port": (self._health, health), "metrics_port": (self._metrics, {"/metrics": self.metrics})}
        )

    @contextmanager
    def place(self, name: str) -> Iterator[Place]:
        """Make a place for a child, which is asked there while the block runs."""
        wanted = {"--health-port": self._health, "--metrics-port": self._metrics}
        options = [option for option, address in wanted.items() if address is not None]
        if not options:
            yield Place(name, None, [])
            return
        with socket.create_server((LOOPBACK, 0)) as listener:
            place = self._places[name] = Place(name, listener, options)
            try:
                yield place
            finally:
                del self._places[name]

    def dismiss(self, name: str) -> None:
        """Expect a child no more: it has done its part, or was ordered to stop."""
        self._expected.discard(name)

    async def livez(self) -> Page:
        """All that should answer do, and are live."""
        answers = await self._ask("/livez")
        return _together({place.name: _said(place, answer) for place, answer in answers}, _bad(answers, starting=False))

    async def readyz(self) -> Page:
        """As many as there should be are there, and ready."""
        answers = [(place, answer) for place, answer in await self._ask("/readyz") if place.name != QUARANTINE]
        told = dict.fromkeys(sorted(self._expected), "not there")
        missing = self._expected - {place.name for place, _ in answers}
        told |= {place.name: _said(place, answer) for place, answer in answers}
        return _together(told, bool(missing) or _bad(answers, starting=True))

    async def metrics(self) -> Page:
        """The metrics of those that answer."""
        answers = await self._ask("/metrics")
        texts = {place.name: answer[1] for place, answer in answers if answer and answer[0] == HTTPStatus.OK}
        return Page(joined(texts, "child"), type=TYPE)

    async def _ask(self, path: str) -> list[tuple[Place, tuple[int, str] | None]]:
        places = list(self._places.values())
        return list(zip(places, await asyncio.gather(*(place.ask(path) for place in places)), strict=True))


def _bad(answers: Sequence[tuple[Place, tuple[int, str] | None]], *, starting: bool) -> bool:
    """Say whether a child is not as it should be; `starting`: neither is one that need not answer yet."""
    return any(answer[0] != HTTPStatus.OK if answer else starting or not place.starting for place, answer in answers)


def _said(place: Place, answer: tuple[int, str] | None) -> str:
    if answer is None:
        return "starting" if place.starting else f"no answer within {ASK_S:g} s"
    return answer[1].strip()


def _together(told: dict[str, str], bad: bool) -> Page:
    status = HTTPStatus.SERVICE_UNAVAILABLE if bad else HTTPStatus.OK
    return Page("".join(f"child {name}: {what}\n" for name, what in told.items()) or "no child runs\n", status)
