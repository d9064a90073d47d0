"""What all parts of one worker share."""

import os
import socket
from random import Random

import msgspec

from streamjobs.client.aio import AsyncExecutor
from streamjobs.core.options import WorkerOptions
from streamjobs.worker.clock import Pulse, ServerClock
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.service import Complaints


class Station(msgspec.Struct, frozen=True, eq=False):
    """One worker's name, queues and options, and the way to its server."""

    executor: AsyncExecutor
    namespace: str
    queues: list[WorkerQueue]
    options: WorkerOptions
    consumer: str
    random: Random = msgspec.field(default_factory=Random)
    clock: ServerClock = msgspec.field(default_factory=ServerClock)
    pulse: Pulse = msgspec.field(default_factory=Pulse)
    complaints: Complaints = msgspec.field(default_factory=Complaints)


def new_consumer() -> str:
    """Return a name that no other start of a process has: the fence relies on it."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{os.urandom(4).hex()}"
