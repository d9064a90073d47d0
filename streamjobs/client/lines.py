"""The few methods of the driver's connections that the executors use, and how they are set up.

A line is one connection of redis-py, or of fakeredis, driven by hand: taken, written to, read from.
So it is always known whether a request was handed over, no reply passes through a callback, and
nothing is ever sent twice behind our back.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

from streamjobs.client.target import Target

CONNECT_SECONDS = 5.0
"""How long connecting may take, for asyncio with the handshake; a blocking line gives each reply of the
handshake the time of any reply."""

MOST_LINES = 64
"""How many connections an executor has at most, for asyncio in each loop; further calls wait for one."""


class SyncLine(Protocol):
    """One blocking connection."""

    def connect(self) -> None: ...
    def send_packed_command(self, command: Sequence[bytes]) -> None: ...
    def read_response(self, *, disconnect_on_error: bool) -> Any: ...
    def can_read(self, timeout: float = 0) -> bool: ...
    def disconnect(self) -> None: ...


class AsyncLine(Protocol):
    """One asyncio connection; it belongs to the loop that it was connected in."""

    async def connect(self) -> None: ...
    async def send_packed_command(self, command: Sequence[bytes]) -> None: ...
    async def read_response(self, *, disconnect_on_error: bool) -> Any: ...
    async def can_read(self) -> bool: ...
    async def disconnect(self, nowait: bool = False) -> None: ...


def settings(timeout_s: float | None) -> dict[str, Any]:
    """Return what every line is made with; `timeout_s` bounds each single read and write.

    RESP2 without decoding keeps replies as they are on the wire. The driver's own retries would
    repeat a request whose reply was lost, so there are none.
    """
    return {
        "protocol": 2,
        "decode_responses": False,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
        "health_check_interval": 0,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": CONNECT_SECONDS,
        "driver_info": None,
    }


_SYNC: dict[str, Callable[..., SyncLine]] = {
    "redis": redis.Connection,
    "rediss": redis.SSLConnection,
    "unix": redis.UnixDomainSocketConnection,
}
_ASYNC: dict[str, Callable[..., AsyncLine]] = {
    "redis": redis.asyncio.Connection,
    "rediss": redis.asyncio.SSLConnection,
    "unix": redis.asyncio.UnixDomainSocketConnection,
}
_EXTRA: dict[str, dict[str, Any]] = {
    "redis": {"socket_keepalive": True},
    "rediss": {"socket_keepalive": True, "ssl_cert_reqs": "required", "ssl_check_hostname": True},
    "unix": {},
}


def sync_line(target: Target, timeout_s: float) -> SyncLine:
    """Return a new blocking line to a `redis`, `rediss` or `unix` target, not yet connected."""
    return _SYNC[target.scheme](**settings(timeout_s), **_EXTRA[target.scheme], **target.arguments)


def async_line(target: Target) -> AsyncLine:
    """Return a new asyncio line, not yet connected. It has no timeout: the executor keeps one per call,
    which costs a third of the driver's one per write and one per read.
    """
    return _ASYNC[target.scheme](**settings(None), **_EXTRA[target.scheme], **target.arguments)
