"""Natural batching without I/O: what goes together, what is sent again, and what each caller is told."""

from typing import Any

import pytest

from streamjobs.core.errors import (
    NotSent,
    OutcomeUnknown,
    Rejected,
    Unavailable,
    UsageError,
)
from streamjobs.core.job import Job, Meta
from streamjobs.producer.batching import EXACT_FOR_S, Lane, Sending, Shipment, Shipped
from streamjobs.protocol import intake
from streamjobs.protocol.intake import MAX_BATCH_BYTES, MAX_BATCH_JOBS, Accepted, Batch, BatchRefused
from streamjobs.protocol.keys import QueueKeys

NOW = 1000.0
DEADLINE = NOW + 15


@pytest.fixture
def lane() -> Lane:
    return Lane(QueueKeys("sj", "mail"), later=False)


def shipment(jobs: int = 1, *, deadline: float = DEADLINE, size: int = 10) -> Shipment:
    return Shipment([Job("mail", b"x" * size, "mail") for _ in range(jobs)], deadline)


def put(lane: Lane, *shipments: Shipment) -> None:
    for one in shipments:
        lane.add(one)


def send(lane: Lane, now: float = NOW) -> Sending:
    sending = lane.next_batch(now)
    assert sending is not None
    return sending


def ids(one: Shipment) -> list[str]:
    assert isinstance(one.outcome, Shipped)
    return one.outcome.ids


def batch_of(sending: Sending) -> tuple[str, Any, Any]:
    """Return producer id, number and token."""
    [producer] = [key for key in sending.call.keys if ":producer:" in key]
    return producer.rpartition(":")[2], sending.call.args[1], sending.call.args[2]


def test_whatever_has_gathered_goes_in_one_call_in_order(lane: Lane) -> None:
    first, bulk, last = shipment(), shipment(3), shipment()
    put(lane, first, bulk, last)

    sending = send(lane)
    lane.arrived(sending, Accepted("", "17", 0, {2: "9-9"}))

    assert sending.jobs == 5
    assert lane.next_batch(NOW) is None
    assert (ids(first), ids(bulk), ids(last)) == (["17-0"], ["17-1", "9-9", "17-2"], ["17-3"])
    assert isinstance(bulk.outcome, Shipped)
    assert bulk.outcome.held == {1}


@pytest.mark.parametrize("later", [False, True])
def test_a_bulk_is_made_ready_when_it_is_handed_over(later: bool) -> None:
    lane = Lane(QueueKeys("sj", "mail"), later=later)
    build = intake.schedule if later else intake.enqueue
    first, second, single = shipment(2), shipment(3), shipment(1)
    put(lane, first)
    alone = send(lane)
    put(lane, second, single)
    together = send(lane)

    assert (first.load is None, second.load is None, single.load is None) == (False, False, True)
    for sending, jobs in ((alone, first.jobs), (together, second.jobs + single.jobs)):
        call = build(lane.keys, jobs, Batch(*batch_of(sending)))
        assert (call.script, call.keys, call.args) == (sending.call.script, sending.call.keys, sending.call.args)


def test_each_caller_is_woken_once(lane: Lane) -> None:
    woken: list[int] = []
    for number in range(3):
        one = shipment()
        one.wake = lambda number=number: woken.append(number)
        lane.add(one)

    lane.arrived(send(lane), Accepted("", "17", 0, {}))

    assert woken == [0, 1, 2]


def test_a_batch_is_bounded_by_jobs(lane: Lane) -> None:
    put(lane, *(shipment(200) for _ in range(4)))

    assert [send(lane).jobs, send(lane).jobs] == [400, 400]
    assert MAX_BATCH_JOBS == 500


def test_a_batch_is_bounded_by_bytes(lane: Lane) -> None:
    quarter = MAX_BATCH_BYTES // 4
    put(lane, *(shipment(size=quarter) for _ in range(5)))

    assert [send(lane).jobs, send(lane).jobs] == [4, 1]


def test_a_job_larger_than_a_batch_still_goes_alone(lane: Lane) -> None:
    put(lane, shipment(size=MAX_BATCH_BYTES + 1), shipment())

    assert [send(lane).jobs, send(lane).jobs] == [1, 1]


def test_batches_are_numbered_and_each_has_a_token(lane: Lane) -> None:
    put(lane, shipment(500), shipment(500))

    (producer, number, token), (same, following, other) = batch_of(send(lane)), batch_of(send(lane))

    assert (producer, following) == (same, number + 1)
    assert token != other


def test_two_lanes_never_send_under_one_id() -> None:
    lanes = [Lane(QueueKeys("sj", "mail"), later=later) for later in (False, True, False)]
    for one in lanes:
        one.add(shipment())

    assert len({batch_of(send(one))[0] for one in lanes}) == 3
    assert [one.next_batch(NOW) for one in lanes] == [None] * 3


def test_a_job_past_its_deadline_is_definitely_not_sent(lane: Lane) -> None:
    late, early = shipment(deadline=NOW), shipment()
    put(lane, late, early)

    assert send(lane).shipments == [early]
    assert isinstance(late.outcome, NotSent)
    assert "mail" in str(late.outcome)


def test_a_job_whose_caller_has_gone_is_taken_out(lane: Lane) -> None:
    gone, there = shipment(), shipment()
    put(lane, gone, there)
    gone.abandoned = True

    assert send(lane).shipments == [there]
    assert gone.outcome is None


def test_nothing_but_gone_and_late_ones_is_no_batch(lane: Lane) -> None:
    gone, late = shipment(), shipment(deadline=NOW)
    gone.abandoned = True
    put(lane, gone, late)

    assert lane.next_batch(NOW) is None


@pytest.mark.parametrize("error", [Unavailable("loading", word="LOADING"), BatchRefused("STALEBATCH")])
def test_what_was_surely_not_executed_goes_again_in_order(lane: Lane, error: Exception) -> None:
    first, second, third = shipment(), shipment(deadline=NOW + 1), shipment()
    put(lane, first, second)
    sending = send(lane)
    lane.add(third)

    assert not lane.failed(sending, error, NOW + 2)
    assert lane.pause_s(sending, NOW + 2, 1.0) == pytest.approx(0.05)

    assert send(lane, NOW + 2).shipments == [first, third]
    assert isinstance(second.outcome, NotSent)
    assert str(error) in str(second.outcome)


def test_a_refused_batch_goes_on_under_a_new_id(lane: Lane) -> None:
    put(lane, shipment())
    sending = send(lane)

    lane.failed(sending, BatchRefused("TWOPRODUCERS"), NOW)

    assert batch_of(send(lane))[0] != batch_of(sending)[0]


def test_a_permanent_refusal_is_told_to_all(lane: Lane) -> None:
    shipments = [shipment(), shipment(2)]
    put(lane, *shipments)
    error = Rejected("no", word="NOPERM")

    assert not lane.failed(send(lane), error, NOW)

    assert [one.outcome for one in shipments] == [error, error]
    assert lane.next_batch(NOW) is None


def test_an_unknown_batch_is_sent_again_as_it_is_until_it_is_known(lane: Lane) -> None:
    one, other = shipment(), shipment()
    put(lane, one)
    sending = send(lane)
    lane.add(other)

    assert lane.failed(sending, OutcomeUnknown("cut"), NOW + 1)
    assert lane.failed(sending, Unavailable("down"), NOW + 2)
    lane.arrived(sending, Accepted("", "17", 0, {}))

    assert ids(one) == ["17-0"]
    following = send(lane)
    assert batch_of(following)[0] == batch_of(sending)[0]
    assert following.shipments == [other]


@pytest.mark.parametrize(
    ("error", "now"),
    [
        (OutcomeUnknown("cut"), DEADLINE),
        (Unavailable("down"), DEADLINE),
        (BatchRefused("STALEBATCH"), NOW + 1),
        (Rejected("no", word="NOPERM"), DEADLINE),
    ],
)
def test_a_batch_that_stays_unknown_is_told_so_and_left(lane: Lane, error: Exception, now: float) -> None:
    """A refusal of a repetition says nothing of the first try."""
    one = shipment()
    put(lane, one)
    sending = send(lane)
    assert lane.failed(sending, OutcomeUnknown("cut"), NOW)

    assert not lane.failed(sending, error, now)

    assert isinstance(one.outcome, OutcomeUnknown)
    assert str(error) in str(one.outcome)
    lane.add(shipment())
    assert batch_of(send(lane))[0] != batch_of(sending)[0]


def test_a_repetition_settles_the_batch_for_all_its_callers(lane: Lane) -> None:
    one, other = shipment(), shipment(2)
    put(lane, one, other)
    sending = send(lane)
    lane.lose(sending, "cut")

    assert one.sending is other.sending is sending
    assert sending.again(NOW + EXACT_FOR_S) is sending.call
    sending.settle(Accepted("", "17", 0, {}))

    assert (ids(one), ids(other)) == (["17-0"], ["17-1", "17-2"])


def test_a_repetition_after_five_minutes_is_refused(lane: Lane) -> None:
    put(lane, shipment())

    with pytest.raises(UsageError, match="5 minutes"):
        send(lane).again(NOW + EXACT_FOR_S + 1)


def test_pauses_double_from_50_ms_to_2_s_and_begin_anew_after_a_success(lane: Lane) -> None:
    put(lane, shipment(), shipment())
    sending = send(lane)
    pauses = []
    for _ in range(10):
        lane.failed(sending, OutcomeUnknown("cut"), NOW)
        pauses.append(lane.pause_s(sending, NOW, 1.0))

    assert pauses[:6] == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
    assert set(pauses[6:]) == {2.0}
    assert lane.pause_s(sending, NOW, 0.0) == 1.0
    lane.arrived(sending, Accepted("", "17", 0, {}))
    put(lane, shipment())
    sending = send(lane)
    lane.failed(sending, OutcomeUnknown("cut"), NOW)
    assert lane.pause_s(sending, NOW, 1.0) == pytest.approx(0.05)


def test_nobody_waits_beyond_the_deadline_nor_for_what_is_known(lane: Lane) -> None:
    put(lane, shipment())
    sending = send(lane)
    for _ in range(10):
        lane.failed(sending, OutcomeUnknown("cut"), NOW)

    assert lane.pause_s(sending, DEADLINE - 0.5, 1.0) == 0.5
    lane.failed(sending, OutcomeUnknown("cut"), DEADLINE)
    assert lane.pause_s(sending, NOW, 1.0) == 0.0


def test_each_shipment_is_told_which_of_its_jobs_found_no_room(lane: Lane) -> None:
    first, bulk, last = shipment(), shipment(3), shipment()
    put(lane, first, bulk, last)

    lane.arrived(send(lane), Accepted("", "17", 0, {1: "9-9"}, {2: 5, 4: 5}))

    assert [one.outcome for one in (first, bulk, last)] == [
        Shipped(["17-0"]),
        Shipped(["9-9", "", "17-1"], frozenset({0}), {1: 5}),
        Shipped([""], frozenset(), {0: 5}),
    ]


def test_only_what_found_no_room_is_sent_once_more_and_found_where_it_went(lane: Lane) -> None:
    bulk = shipment(4)
    bulk.outcome = Shipped(["1-0", "", "1-1", ""], full={1: 2, 3: 2})

    rest = bulk.once_more()
    rest.outcome = Shipped(["2-0", ""], full={1: 2})
    again = rest.once_more()

    assert (rest.jobs, again.jobs) == ([bulk.jobs[1], bulk.jobs[3]], [bulk.jobs[3]])
    assert [bulk.last(index) for index in range(4)] == [(bulk, 0), (rest, 0), (bulk, 2), (again, 0)]
    again.outcome = Shipped([""], full={0: 2})
    assert again.once_more() is again
    assert again.outcome is None


@pytest.mark.parametrize("jobs", [1, 2])
def test_who_waited_for_room_until_its_deadline_is_refused(lane: Lane, jobs: int) -> None:
    one = shipment(jobs)
    one.outcome = Shipped(["1-0", ""][-jobs:], full={jobs - 1: 2})
    again = one.once_more()
    put(lane, again)

    assert lane.next_batch(DEADLINE) is None
    assert again.outcome == Shipped([""], full={0: 2})


def test_who_had_no_try_behind_others_that_found_no_room_is_refused_likewise(lane: Lane) -> None:
    first, behind, later = shipment(), shipment(2), shipment(deadline=DEADLINE + 15)
    put(lane, first)
    sending = send(lane)
    put(lane, behind, later)
    lane.arrived(sending, Accepted("", "17", 0, {}, {0: 5}))

    lane.arrived(send(lane, DEADLINE), Accepted("", "18", 0, {}))

    assert behind.outcome == Shipped(["", ""], full={0: 5, 1: 5})
    assert ids(later) == ["18-0"]
    put(lane, late := shipment())
    assert lane.next_batch(DEADLINE) is None
    assert isinstance(late.outcome, NotSent), "room was found since"


def test_what_cannot_be_made_a_batch_is_not_forgotten(lane: Lane) -> None:
    odd: Any = {"trace": object()}
    first, second = shipment(), Shipment([Job("mail", b"x", "mail", meta=Meta(headers=odd))], DEADLINE)
    put(lane, first, second)

    with pytest.raises(NotImplementedError) as caught:
        lane.next_batch(NOW)
    lane.give_up(caught.value)

    assert [type(one.outcome) for one in (first, second)] == [NotSent] * 2
    assert lane.next_batch(NOW) is None
