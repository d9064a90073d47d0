"""A sender that is interrupted: what surely was not executed stays to be sent, and nothing is sent twice."""

from time import monotonic

import pytest

from streamjobs.client.talk import Leniently, Pause
from streamjobs.core.errors import OutcomeUnknown, Unavailable
from streamjobs.core.job import Job
from streamjobs.producer.batching import Lane, Shipment
from streamjobs.producer.sending import Sender
from streamjobs.protocol.keys import QueueKeys

JOB = Job("k", b"{}", "mail")


def make(keys: QueueKeys, job: Job, local: str, duplicate: bool) -> str:
    return local


@pytest.fixture
def sender() -> Sender[str]:
    return Sender("sj", make, 10.0, lambda conversation: conversation)


def waiting(sender: Sender[str]) -> tuple[Lane, Shipment]:
    lane, shipment = sender.lane(JOB), sender.shipment([JOB])
    lane.add(shipment)
    return lane, shipment


def test_a_batch_that_was_refused_stays_in_its_lane_when_the_pause_is_interrupted(sender: Sender[str]) -> None:
    lane, shipment = waiting(sender)
    sending = sender.send_waiting(lane)
    next(sending)
    sending.send([1])

    assert isinstance(sending.send([Unavailable("full", word="OOM")]), Pause)
    sending.close()

    assert shipment.outcome is None
    batch = lane.next_batch(monotonic())
    assert batch is not None
    assert batch.shipments == [shipment]


@pytest.mark.parametrize("unknown", [False, True])
def test_a_batch_that_may_have_been_executed_leaves_its_lane(sender: Sender[str], unknown: bool) -> None:
    lane, shipment = waiting(sender)
    sending = sender.send_waiting(lane)
    next(sending)

    assert isinstance(sending.send([1]), Leniently)
    if unknown:
        assert isinstance(sending.send([OutcomeUnknown("cut")]), Pause)
    sending.close()

    assert isinstance(shipment.outcome, OutcomeUnknown)
    assert lane.next_batch(monotonic()) is None


def test_a_shipment_that_has_its_outcome_is_not_sent(sender: Sender[str]) -> None:
    lane, shipment = waiting(sender)
    shipment.outcome = OutcomeUnknown("told by another way")

    assert lane.next_batch(monotonic()) is None
