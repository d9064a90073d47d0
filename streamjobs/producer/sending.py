"""How batches are sent, whatever the executor: as conversations, with pauses between failed tries."""

from collections.abc import Callable, Mapping
from random import Random
from time import monotonic
from typing import Any, Generic, TypeAlias, TypeVar

from streamjobs.client.forks import watch
from streamjobs.client.talk import Leniently, Pause, Talk
from streamjobs.core import durability
from streamjobs.core.errors import NotSent, OutcomeUnknown, StreamJobsError
from streamjobs.core.failpoints import failpoint
from streamjobs.core.job import Job
from streamjobs.core.limits import Bound
from streamjobs.core.meter import Meter
from streamjobs.core.retry import Exponential
from streamjobs.producer.batching import Lane, Sending, Shipment, Shipped
from streamjobs.protocol import config, intake
from streamjobs.protocol.calls import Call, Request
from streamjobs.protocol.durability import confirm, probe, unable, unconfirmed
from streamjobs.protocol.intake import Accepted
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.secrets import Secrets, declare

H = TypeVar("H")

MakeHandle = Callable[[QueueKeys, Job, str, bool], H]
"""Makes what callers get for one job: of its keys, itself, its local id, and whether it is another's."""

ANSWER_S = 3.0
"""How long a producer waits for an answer; it then sends the very same batch again, on another connection."""
SLACK_S = 0.5
"""By how much sooner, but no more than half of that, a server that waits for its replicas or its disk must give up:
it looks at its clock ten times a second, and its answer has a way to go."""

FULL = Exponential(base=0.025, cap=0.5)
"""Between tries to get into a full queue: 25 ms, doubling up to half a second, the upper half drawn."""

Carry: TypeAlias = Callable[[Talk[H]], object]
"""Carries a conversation through: plainly, or as an awaitable."""


class Sender(Generic[H]):
    """The lanes of one producer, made when first used. A forked child begins with none."""

    def __init__(
        self,
        namespace: str,
        make_handle: MakeHandle[H],
        timeout_s: float,
        carry: Carry[H],
        bounds: Mapping[str, Bound] | None = None,
        secrets: Secrets | None = None,
        meter: Meter | None = None,
    ) -> None:
        """`timeout_s`: how long a job may wait to be sent, and a batch without an answer be sent again.

        `carry`: how one finds out what became of a job whose outcome is unknown. `bounds`: by queue, what the code
        says of how many jobs may wait there; it may grow later. `secrets`: by kind, which arguments operators are
        not to see; likewise. `meter`: where what came of each job is counted, while it is on.
        """
        self._bounds = {} if bounds is None else bounds
        self._secrets = {} if secrets is None else secrets
        self._meter = meter or Meter()
        self._namespace = namespace
        self._make_handle = make_handle
        self._carry = carry
        self._timeout_s = timeout_s
        answer_s = min(ANSWER_S, timeout_s)
        self._confirm_s = max(answer_s / 2, answer_s - SLACK_S)
        self._random = Random()
        # A process may later have no file left to open, and its jobs must go all the same.
        intake.load_scripts()
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        """Begin anew: the parent's batches are the parent's to send."""
        self._lanes: dict[tuple[str, bool, str], Lane] = {}
        self._queues: dict[str, QueueKeys] = {}
        self._unannounced: set[str] = set()
        self._declared: dict[str, Bound] = {}

    def lane(self, job: Job) -> Lane:
        """Return the lane that this job takes."""
        later = job.delay_ms > 0 or job.at_ms > 0
        lane = self._lanes.get((job.queue, later, job.durability))
        if lane is None:
            if job.queue not in self._queues:
                self._queues[job.queue] = QueueKeys(self._namespace, job.queue)
                self._unannounced.add(job.queue)
            made = Lane(self._queues[job.queue], later=later, level=durability.parse(job.durability))
            lane = self._lanes.setdefault((job.queue, later, job.durability), made)
        return lane

    def shipment(self, jobs: list[Job]) -> Shipment:
        """Return a shipment of these jobs, all of one lane, whose deadline counts from now."""
        return Shipment(jobs, monotonic() + self._timeout_s)

    def send_waiting(self, lane: Lane, own: Shipment | None = None) -> Talk[None]:
        """Send what waits in a lane, batch after batch, until nothing does, or `own` has its outcome."""
        yield from self._announce()
        while own is None or own.outcome is None:
            sending = lane.next_batch(monotonic())
            if sending is None:
                return
            yield from self._send(lane, sending)

    def _announce(self) -> Talk[None]:
        names, self._unannounced = self._unannounced, set()
        if names:
            told: list[Request[Any]] = [intake.announce(self._namespace, sorted(names))]
            if self._secrets:
                # Before the first job is there to be looked at.
                told += [declare(self._queues[name], self._secrets) for name in names]
            replies = yield Leniently(told)
            if any(isinstance(reply, StreamJobsError) for reply in replies):
                # The jobs themselves will tell; a worker announces its queues too.
                self._unannounced |= names
        for name, bound in list(self._bounds.items()):
            if bound.max_waiting and name in self._queues and self._declared.get(name) != bound:
                [reply] = yield Leniently([config.declare(self._queues[name], config.MAX_WAITING, bound.max_waiting)])
                if not isinstance(reply, StreamJobsError):
                    self._declared[name] = bound

    def _send(self, lane: Lane, sending: Sending) -> Talk[None]:
        again = True
        while again:
            try:
                failpoint("producer.before_send")
                reply = yield from self._try(lane, sending.call, sending.deadline)
                failpoint("producer.after_reply")
            except BaseException:
                # With a call under way: nobody knows whether it was executed.
                lane.lose(sending, "interrupted")
                raise
            if not isinstance(reply, StreamJobsError):
                lane.arrived(sending, reply)
                return
            again = lane.failed(sending, reply, monotonic())
            try:
                yield Pause(lane.pause_s(sending, monotonic(), self._random.random()))
            except BaseException:
                # A batch that surely was not executed waits in the lane again, for whoever sends next.
                if again:
                    lane.lose(sending, "interrupted")
                raise

    def _try(self, lane: Lane, call: Call[Accepted], deadline: float) -> Talk[Accepted | StreamJobsError]:
        """Send a batch once, and have it confirmed where its lane wants that; return what came of it."""
        if lane.level is None:
            [reply] = yield Leniently([call])
            return reply  # type: ignore[no-any-return]
        if not lane.confirms:
            # Known before anything is enqueued, this is an error and no doubt.
            [reply] = yield Leniently([probe(lane.level)])
            if isinstance(reply, StreamJobsError):
                return unable(lane.level, reply)
            lane.confirms = True
        wait_s = min(self._confirm_s, deadline - monotonic())
        reply, confirmed = yield Leniently([call, confirm(lane.level, int(wait_s * 1000))])
        if isinstance(confirmed, StreamJobsError) and not isinstance(reply, StreamJobsError):
            return unconfirmed(confirmed)
        return reply  # type: ignore[no-any-return]

    def waits(self, lane: Lane, shipment: Shipment) -> bool:
        """Say whether the queue had no room for jobs of a shipment, and this process waits for some."""
        if not isinstance(shipment.outcome, Shipped) or not shipment.outcome.full:
            return False
        bound = self._bounds.get(lane.keys.queue)
        return bound is not None and bound.when_full == "wait"

    def wait_for_room(self, shipments: list[Shipment], tries: int) -> Talk[list[Shipment]]:
        """Wait after so many tries; return what is to be sent then: nothing of those whose deadline has passed."""
        left = max(shipment.deadline for shipment in shipments) - monotonic()
        if left > 0:
            yield Pause(min(FULL.delay_ms(tries, self._random.random()) / 1000, left))
        now = monotonic()
        return [shipment.once_more() for shipment in shipments if shipment.deadline > now]

    def carry(self, lane: Lane, shipments: list[Shipment]) -> Talk[None]:
        """Send shipments in a lane that nobody else sends in, until each has its outcome."""
        tries = 0
        while shipments:
            for shipment in shipments:
                lane.add(shipment)
            yield from self.send_waiting(lane)
            shipments = [shipment for shipment in shipments if self.waits(lane, shipment)]
            if shipments:
                tries += 1
                shipments = yield from self.wait_for_room(shipments, tries)

    def again(self, lane: Lane, shipment: Shipment, index: int) -> Talk[H]:
        """Send the batch of an unknown shipment once more; return the handle of its n-th job."""
        last, _ = shipment.last(index)
        sending = last.sending
        if sending is not None and not isinstance(last.outcome, Shipped):
            now = monotonic()
            reply = yield from self._try(lane, sending.again(now), now + self._confirm_s)
            if isinstance(reply, StreamJobsError):
                raise self.error(lane, shipment, index) or reply
            sending.settle(reply)
        return self.result(lane, shipment, index)

    def count(self, shipment: Shipment) -> None:
        """Count what came of a shipment, if somebody wants to know."""
        if self._meter.on:
            for index, job in enumerate(shipment.jobs):
                self._meter.enqueue(job.queue, job.kind, _outcome(*shipment.last(index)))

    def handle(self, lane: Lane, shipment: Shipment, index: int) -> H:
        """Return the handle of one job of a shipment that arrived."""
        if shipment.rest is not None:
            shipment, index = shipment.last(index)
        assert isinstance(shipment.outcome, Shipped)
        ids, held = shipment.outcome.ids, shipment.outcome.held
        return self._make_handle(lane.keys, shipment.jobs[index], ids[index], index in held)

    def result(self, lane: Lane, shipment: Shipment, index: int) -> H:
        """Return the handle of one job of a shipment that has its outcome, or raise its error."""
        if error := self.error(lane, shipment, index):
            raise error
        return self.handle(lane, shipment, index)

    def error(self, lane: Lane, shipment: Shipment, index: int) -> StreamJobsError | None:
        """Return the error for one job of a shipment, with its own way to find out; None when it arrived."""
        last, at = shipment.last(index)
        outcome = last.outcome
        if isinstance(outcome, Shipped):
            return intake.queue_full(last.jobs[at].queue, outcome.full[at]) if at in outcome.full else None
        if isinstance(outcome, OutcomeUnknown):
            return OutcomeUnknown(str(outcome), retry=lambda: self._carry(self.again(lane, shipment, index)))
        return outcome


def _outcome(shipment: Shipment, index: int) -> str:
    """Return what came of one job, as metrics name it."""
    match shipment.outcome:
        case Shipped() as shipped:
            return "full" if index in shipped.full else "duplicate" if index in shipped.held else "accepted"
        case OutcomeUnknown():
            return "unknown"
        case NotSent():
            return "not_sent"
    return "rejected"
