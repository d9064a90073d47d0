"""The producers of one app: one for plain code, one for each event loop."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from streamjobs.client import Connections
from streamjobs.client.forks import watch
from streamjobs.client.talk import atalk, talk
from streamjobs.core import names
from streamjobs.core.errors import InvalidOption
from streamjobs.core.registry import Registry
from streamjobs.handle import Handle, handle_of
from streamjobs.producer.aio import AsyncProducer
from streamjobs.producer.sending import ANSWER_S, Carry, Sender
from streamjobs.producer.submit import Producer
from streamjobs.producer.threads import SyncProducer


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
        self._plain = connections.sync(reply_s=patience_s)
        self._sync = SyncProducer(self._plain, self._sender(partial(talk, self._plain), timeout_s))
        self._aio: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncProducer[Handle[Any]]] = WeakKeyDictionary()

    def _sender(self, carry: Carry[Handle[Any]], timeout_s: float) -> Sender[Handle[Any]]:
        """Return a sender that goes by what the code says, also later, of queues and of kinds."""
        known = self._registry
        make_handle = partial(handle_of, self._connections, known)
        return Sender(self._namespace, make_handle, timeout_s, carry, known.bounds, known.secrets, known.meter)

    def sync(self) -> SyncProducer[Handle[Any]]:
        """Return the producer for plain code."""
        return self._sync

    def aio(self) -> AsyncProducer[Handle[Any]]:
        """Return the producer of the running event loop."""
        loop = asyncio.get_running_loop()
        producer = self._aio.get(loop)
        if producer is None:
            producer = self._aio[loop] = AsyncProducer(
                self._executor, self._sender(partial(atalk, self._executor), self._timeout_s)
            )
        return producer

    def producer(self, max_waiting: int, timeout: float | timedelta | None) -> Producer[Handle[Any]]:
        """Return a new producer for many threads; see `StreamJobs.producer`."""
        if not isinstance(max_waiting, int) or not 1 <= max_waiting <= 1_000_000:
            raise InvalidOption(f"max_waiting={max_waiting!r:.80}: use 1 to 1000000 jobs")
        timeout_s = self._timeout_s if timeout is None else names.milliseconds(timeout, "enqueue_timeout") / 1000
        return Producer(self._plain, partial(self._sender, partial(talk, self._plain)), timeout_s, max_waiting)
