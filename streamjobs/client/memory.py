"""The in-memory servers of this process: fakeredis, for tests of jobs without a server."""

import threading
from typing import TYPE_CHECKING

from streamjobs.client.lines import AsyncLine, SyncLine, settings
from streamjobs.core.errors import MissingExtra

if TYPE_CHECKING:
    from fakeredis import FakeServer

_servers: dict[str, "FakeServer"] = {}
_making = threading.Lock()


def server(name: str) -> "FakeServer":
    """Return the one server of this name, made on first use; it lives as long as the process.

    Raises:
        MissingExtra: fakeredis is not installed.
    """
    try:
        from fakeredis import FakeServer
    except ImportError as error:
        raise MissingExtra("memory:// needs fakeredis: pip install 'streamjobs[testing]'") from error
    with _making:
        if name not in _servers:
            _servers[name] = FakeServer()
        return _servers[name]


def sync_line(name: str) -> SyncLine:
    """Return a new blocking line to the server of this name."""
    from fakeredis import FakeRedisConnection

    return FakeRedisConnection(server=server(name), **settings(None))


def async_line(name: str) -> AsyncLine:
    """Return a new asyncio line to the server of this name."""
    from fakeredis import FakeAsyncRedisConnection

    return FakeAsyncRedisConnection(server=server(name), **settings(None))
