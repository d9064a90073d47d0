"""Natural batching, without any I/O: what is sent together, under which number, and what came of it.

A *shipment* is what one caller hands over: one job, or a part of a bulk. A *lane* leads to one
script of one queue; at most one of its batches is under way, and whatever arrives meanwhile goes
into the next one. A batch keeps its number and token through every repetition, so the server
takes it once (lua/include/batch.lua).
"""

import os
from collections import deque
from collections.abc import Callable

import msgspec

from streamjobs.core.durability import Durability
from streamjobs.core.errors import NotSent, OutcomeUnknown, StreamJobsError, Unavailable, UsageError
from streamjobs.core.job import Job
from streamjobs.core.retry import RECONNECT
from streamjobs.protocol import intake
from streamjobs.protocol.calls import Call
from streamjobs.protocol.intake import Accepted, Batch, Load
from streamjobs.protocol.keys import QueueKeys

EXACT_FOR_S = 300.0
"""How long an unknown batch can be sent again: half of what the server remembers it for."""


class Shipped(msgspec.Struct, frozen=True, gc=False):
    """What came of a shipment: the local id of each job, which of them others held already, and which were refused."""

    ids: list[str]
    held: frozenset[int] = frozenset()
    full: dict[int, int] = {}
    """Those that found the queue full, and how many may wait in it."""


class Shipment(msgspec.Struct, eq=False):
    """Jobs of one caller on their way; `outcome` is set once, then `wake` is called."""

    jobs: list[Job]
    deadline: float
    """Monotonic seconds."""
    outcome: Shipped | StreamJobsError | None = None
    wake: Callable[[], None] | None = None
    abandoned: bool = False
    """Its caller was cancelled: do not send it any more."""
    load: Load | None = None
    """Its jobs as a batch has them, where it was made ahead."""
    sending: "Sending | None" = None
    """The batch it went with last; it can be sent again when its outcome is unknown."""
    rest: "tuple[Shipment, dict[int, int]] | None" = None
    """The jobs that the queue had no room for, sent once more, and the place there of each by its place here."""
    refusal: Shipped | None = None
    """What came of its last try, when the queue had no room for any of it."""

    def once_more(self) -> "Shipment":
        """Return a shipment of the jobs that the queue had no room for: itself, if those are all."""
        assert isinstance(self.outcome, Shipped)
        full = self.outcome.full
        if len(full) == len(self.jobs):
            self.refusal, self.outcome = self.outcome, None
            return self
        rest = Shipment([self.jobs[index] for index in full], self.deadline)
        rest.refusal = Shipped([""] * len(full), full=dict(enumerate(full.values())))
        self.rest = rest, {index: place for place, index in enumerate(full)}
        return rest

    def last(self, index: int) -> "tuple[Shipment, int]":
        """Return the shipment with which the n-th job went last, and its place there."""
        shipment = self
        while shipment.rest is not None and index in shipment.rest[1]:
            shipment, places = shipment.rest
            index = places[index]
        return shipment, index

    def settle(self, outcome: Shipped | StreamJobsError) -> None:
        """Set what came of it, and wake the caller."""
        self.outcome = outcome
        if self.wake is not None:
            self.wake()


class Sending(msgspec.Struct, eq=False):
    """One batch: the shipments in it and the call that carries them, the same at each repetition."""

    shipments: list[Shipment]
    call: Call[Accepted]
    jobs: int
    deadline: float
    first_sent: float
    unknown: bool = False
    """A former repetition may have been executed."""

    def settle(self, accepted: Accepted) -> None:
        """Give each shipment its ids."""
        ids = accepted.ids(self.jobs)
        at = 0
        for shipment in self.shipments:
            # Not to be sent again: in a cycle the jobs of both would stay until a collection.
            shipment.sending = None
            end = at + len(shipment.jobs)
            shipped = Shipped(ids[at:end])
            if accepted.held or accepted.full:
                held = frozenset(i - at for i in range(at, end) if i in accepted.held)
                full = {i - at: accepted.full[i] for i in range(at, end) if i in accepted.full}
                shipped = Shipped(ids[at:end], held, full)
            shipment.settle(shipped)
            at = end

    def fail(self, error: StreamJobsError) -> None:
        """Give each shipment the same error."""
        for shipment in self.shipments:
            shipment.settle(error)

    def again(self, now: float) -> Call[Accepted]:
        """Return the call for an exact repetition.

        Raises:
            UsageError: more time has passed than the server surely remembers this batch for.
        """
        if now - self.first_sent > EXACT_FOR_S:
            raise UsageError("more than 5 minutes have passed: sending again could enqueue the jobs twice")
        return self.call


class Lane:
    """The way to one script of one queue at one level of durability, and the only sender under its producer id."""

    def __init__(self, keys: QueueKeys, *, later: bool, level: Durability | None = None) -> None:
        self.keys = keys
        self.level = level
        self._load = intake.load_later if later else intake.load
        self.start_afresh()

    def start_afresh(self) -> None:
        """Forget everything; a forked child must, or two processes would send under one id."""
        self._waiting: deque[Shipment] = deque()
        self._tries = 0
        self._trouble: StreamJobsError | None = None
        """The last failure since something arrived."""
        self._most = 0
        """How many may wait in the queue, where its last answer was that it had no room for a job; else 0."""
        self.confirms = False
        """Whether the server is known to confirm what the level asks for; after a failure it may be another one."""
        self.take_new_id()

    def take_new_id(self) -> None:
        """Go on under a new producer id, leaving an unknown batch of the old one as it is."""
        self._producer = os.urandom(8).hex()
        self._number = 0

    def add(self, shipment: Shipment) -> None:
        """Hand over a shipment; it goes with the next batch."""
        if len(shipment.jobs) > 1 and shipment.load is None:
            # Most likely a batch of its own. The server may be at another one just now, so this time is free.
            shipment.load = self._load(self.keys, shipment.jobs)
        self._waiting.append(shipment)

    def next_batch(self, now: float) -> Sending | None:
        """Return what is to be sent next, or None.

        A shipment past its deadline gets `NotSent`; one whose caller has gone is left out.
        """
        shipments: list[Shipment] = []
        jobs: list[Job] = []
        size = 0
        while self._waiting:
            shipment = self._waiting[0]
            if shipment.outcome is not None:
                self._waiting.popleft()
                continue
            if not shipment.abandoned and shipment.deadline > now:
                size += sum([len(job.body) for job in shipment.jobs])
                too_many = len(jobs) + len(shipment.jobs) > intake.MAX_BATCH_JOBS
                if jobs and (too_many or size > intake.MAX_BATCH_BYTES):
                    break
                shipments.append(shipment)
                jobs += shipment.jobs
            elif not shipment.abandoned:
                # Who waited for room in vain is told so, unless it was something else in the end.
                in_vain = self._no_room(shipment) if self._trouble is None else None
                shipment.settle(in_vain or self._not_sent())
            self._waiting.popleft()
        try:
            return self._sending(shipments, jobs, now) if jobs else None
        except BaseException:
            # Else nobody knew of them any more.
            self._waiting.extendleft(reversed(shipments))
            raise

    def _sending(self, shipments: list[Shipment], jobs: list[Job], now: float) -> Sending:
        self._number += 1
        batch = Batch(self._producer, self._number, os.urandom(4).hex())
        load = shipments[0].load if len(shipments) == 1 else None
        call = (load or self._load(self.keys, jobs)).call(self.keys, batch)
        sending = Sending(shipments, call, len(jobs), max(s.deadline for s in shipments), now)
        for shipment in shipments:
            shipment.sending = sending
        return sending

    def _put_back(self, sending: Sending, now: float) -> None:
        """Take a batch that was surely not executed back to the front of the lane.

        A shipment past its deadline gets `NotSent` with the reason instead.
        """
        for shipment in reversed(sending.shipments):
            if shipment.deadline > now:
                self._waiting.appendleft(shipment)
            else:
                shipment.settle(self._not_sent())

    def give_up(self, error: BaseException) -> None:
        """Tell those who wait that nothing of theirs was sent, since this came in between."""
        waiting, self._waiting = self._waiting, deque()
        for shipment in waiting:
            if shipment.outcome is None and not shipment.abandoned:
                shipment.settle(NotSent(f"not sent to {self.keys.queue}, nothing was enqueued: {error!r}"))

    def _no_room(self, shipment: Shipment) -> Shipped | None:
        """Return what came of a shipment whose time has passed where there was no room: for itself, or for those
        behind which it waited without a try of its own.
        """
        if shipment.refusal is not None or not self._most:
            return shipment.refusal
        return Shipped([""] * len(shipment.jobs), full=dict.fromkeys(range(len(shipment.jobs)), self._most))

    def _not_sent(self) -> NotSent:
        why = f": {self._trouble}" if self._trouble else " before its deadline"
        word = self._trouble.word if isinstance(self._trouble, Unavailable) else ""
        return NotSent(f"not sent to {self.keys.queue}, nothing was enqueued{why}", word=word)

    def failed(self, sending: Sending, error: StreamJobsError, now: float) -> bool:
        """Take note of a failed try; say whether the same batch is to be sent again.

        When it is not, its shipments have their outcome or wait in the lane again.
        """
        self._tries += 1
        self._trouble = error
        self.confirms = False
        if isinstance(error, OutcomeUnknown):
            sending.unknown = True
        refused = isinstance(error, intake.BatchRefused)
        if sending.unknown:
            # Once a repetition may have been executed, only its own reply can tell: a refusal of a
            # later one says nothing of the earlier.
            if now < sending.deadline and not refused:
                return True
            self.lose(sending, str(error))
        elif isinstance(error, Unavailable):
            if refused:
                self.take_new_id()
            self._put_back(sending, now)
        else:
            sending.fail(error)
        return False

    def lose(self, sending: Sending, why: str) -> None:
        """Give up on a batch that may have been executed, and go on under a new producer id."""
        self.take_new_id()
        sending.fail(OutcomeUnknown(f"enqueue to {self.keys.queue}: {why}"))

    def arrived(self, sending: Sending, accepted: Accepted) -> None:
        """Give each shipment of a batch its ids."""
        self._tries = 0
        self._trouble = None
        self._most = next(iter(accepted.full.values()), 0)
        sending.settle(accepted)

    def pause_s(self, sending: Sending, now: float, draw: float) -> float:
        """Return how long to wait after a failed try; `draw` is evenly from [0, 1).

        Not beyond the batch's deadline, and not at all when each of its shipments has its outcome.
        """
        if all(shipment.outcome is not None for shipment in sending.shipments):
            return 0.0
        return min(RECONNECT.delay_ms(self._tries, draw) / 1000, max(0.0, sending.deadline - now))
