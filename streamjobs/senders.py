"""The producers of one app: one for plain code, one for each event loop."""

import asyncio
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from streamjobs.client import Connections
from streamjobs.client.forks import watch
from streamjobs.core.limits import Bound
from streamjobs.core.meter import Meter
from streamjobs.core.registry import Registry
from streamjobs.handle import Handle, handle_of
from streamjobs.producer.aio import AsyncProducer
from streamjobs.producer.threads import SyncProducer

ANSWER_S = 3.0
"""How long a producer waits for an answer; it then sends the very same batch again, on another connection."""


class Senders:
    """Makes producers when they are first needed."""

    def __init__(self, registry: Registry, connections: Connections, namespace: str, timeout_s: float) -> None:
        self._registry = registry
        watch(registry.meter)
        self.use(connections, namespace, timeout_s)

    def use(self, connections: Connections, namespace: str, timeout_s: float) -> None:
        """Make producers for another place from now on; those made before go on to the old one."""
        self._connections = connections
        self._namespace = namespace
        self._timeout_s = timeout_s
        patience_s = min(ANSWER_S, timeout_s)
        self._executor = connections.aio(reply_s=patience_s)
        self._sync = SyncProducer[Handle[Any]](
            connections.sync(reply_s=patience_s), namespace, self._make_handle, timeout_s, *self._shared
        )
        self._aio: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncProducer[Handle[Any]]] = WeakKeyDictionary()

    @property
    def _shared(self) -> tuple[dict[str, Bound], dict[str, tuple[str, ...]], Meter]:
        """What the code says of queues and of kinds, and may say more of later; and where all is counted."""
        return self._registry.bounds, self._registry.secrets, self._registry.meter

    @property
    def _make_handle(self) -> Any:
        return partial(handle_of, self._connections, self._registry)

    def sync(self) -> SyncProducer[Handle[Any]]:
        """Return the producer for plain code."""
        return self._sync

    def aio(self) -> AsyncProducer[Handle[Any]]:
        """Return the producer of the running event loop."""
        loop = asyncio.get_running_loop()
        producer = self._aio.get(loop)
        if producer is None:
            producer = AsyncProducer[Handle[Any]](
                self._executor, self._namespace, self._make_handle, self._timeout_s, *self._shared
            )
            self._aio[loop] = producer
        return producer
