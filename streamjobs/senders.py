"""The producers of one app: one for plain code, one for each event loop."""

import asyncio
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from streamjobs.client import Connections
from streamjobs.client.forks import watch
from streamjobs.core.registry import Registry
from streamjobs.handle import Handle, handle_of
from streamjobs.producer.aio import AsyncProducer
from streamjobs.producer.sending import Sender
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
        self._sync = SyncProducer(connections.sync(reply_s=patience_s), self._sender())
        self._aio: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncProducer[Handle[Any]]] = WeakKeyDictionary()

    def _sender(self) -> Sender[Handle[Any]]:
        """Return a sender that goes by what the code says, also later, of queues and of kinds."""
        known = self._registry
        make_handle = partial(handle_of, self._connections, known)
        return Sender(self._namespace, make_handle, self._timeout_s, known.bounds, known.secrets, known.meter)

    def sync(self) -> SyncProducer[Handle[Any]]:
        """Return the producer for plain code."""
        return self._sync

    def aio(self) -> AsyncProducer[Handle[Any]]:
        """Return the producer of the running event loop."""
        loop = asyncio.get_running_loop()
        producer = self._aio.get(loop)
        if producer is None:
            producer = self._aio[loop] = AsyncProducer(self._executor, self._sender())
        return producer
