"""The in-memory servers of this process: fakeredis, for tests of jobs without a server."""

import threading
from types import ModuleType
from typing import TYPE_CHECKING

from streamjobs.client.lines import AsyncLine, SyncLine, settings
from streamjobs.core.errors import MissingExtra

if TYPE_CHECKING:
    from fakeredis import FakeServer

_servers: dict[str, "FakeServer"] = {}
_making = threading.Lock()


def sync_line(name: str) -> SyncLine:
    """Return a new blocking line to the one server of this name, which lives as long as the process.

    Raises:
        MissingExtra: fakeredis is not installed.
    """
    fakeredis = _package()
    line: SyncLine = fakeredis.FakeRedisConnection(server=_server(fakeredis, name), **settings(None))
    return line


def async_line(name: str) -> AsyncLine:
    """Return a new asyncio line to the same server as `sync_line`; raises alike."""
    fakeredis = _package()
    line: AsyncLine = fakeredis.FakeAsyncRedisConnection(server=_server(fakeredis, name), **settings(None))
    return line


def _package() -> ModuleType:
    try:
        import fakeredis
    except ImportError as error:
        raise MissingExtra("memory:// needs fakeredis: pip install 'streamjobs[testing]'") from error
    return fakeredis


def _server(fakeredis: ModuleType, name: str) -> "FakeServer":
    with _making:
        if name not in _servers:
            _servers[name] = fakeredis.FakeServer()
        return _servers[name]
