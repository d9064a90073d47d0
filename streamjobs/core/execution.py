"""One claim on its way through a worker: from the claim to the decision that settles it."""

import asyncio
from enum import Enum
from functools import cached_property
from typing import Any

from streamjobs.core.context import Context
from streamjobs.core.job import Claim, Meta
from streamjobs.core.registry import Handler


class Ending(Enum):
    """Why a running handler is being ended from outside."""

    NONE = "none"
    DEADLINE = "deadline"
    STOP = "stop"
    """The worker stops, or cannot reach the server for a lease: the job goes back, uncharged."""
    LOST = "lost"
    """Another worker holds the job, or it was cancelled: whatever follows is dropped."""


class Execution:
    """A claim that a worker runs. Everything but the claim itself is worked out when asked for."""

    def __init__(self, claim: Claim, handler: Handler, meta: Meta, queue: str, tag: str, state: Any) -> None:
        self.claim = claim
        self.handler = handler
        self.meta = meta
        self.queue = queue
        self.tag = tag
        """The queue, with its partition where it has several: the job id's first part."""
        self.state = state
        self.started = 0.0
        self.deadline: float | None = None
        """Monotonic seconds; None for no timeout."""
        self.task: asyncio.Task[None] | None = None
        self.ending = Ending.NONE
        self.marked = False
        """Whether `suspect` recorded this start."""
        self.traceback = ""
        self.abandoned = False
        """Still running long after its deadline: settled without it, its slot given to others."""

    @property
    def local_id(self) -> str:
        """The job's id within its queue."""
        return self.meta.id or self.claim.entry.decode()

    @property
    def job_id(self) -> str:
        return f"{self.tag}:{self.local_id}"

    @property
    def enqueued_ms(self) -> int:
        return int(self.local_id.removeprefix("d").partition("-")[0])

    @property
    def crashes(self) -> int:
        """Starts before this one that were never settled: those of former entries, the first start of this
        one, which is presumed when there were further deliveries, and those that were marked.
        """
        claim = self.claim
        return self.meta.crashes + (0 if claim.deliveries == 1 else 1 + claim.marks)

    @property
    def attempt(self) -> int:
        return 1 + self.meta.failures + self.crashes

    @cached_property
    def lost(self) -> asyncio.Event:
        return asyncio.Event()

    @cached_property
    def context(self) -> Context[Any]:
        return Context(self)
