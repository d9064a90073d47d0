"""How a bulk is cut into shipments, and how its results come back in order."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from streamjobs.client.talk import Talk
from streamjobs.core.errors import OutcomeUnknown, StreamJobsError, UsageError
from streamjobs.core.job import Job
from streamjobs.producer.batching import Shipped
from streamjobs.producer.cargo import Cargo
from streamjobs.producer.sending import Sender
from streamjobs.protocol.intake import MAX_BATCH_BYTES, MAX_BATCH_JOBS
from streamjobs.protocol.keys import QueueKeys

Result = tuple[str, str, bytes, bool]


def make(keys: QueueKeys, job: Job, local: str, duplicate: bool) -> Result:
    return keys.queue, local, job.body, duplicate


def carry(conversation: Talk[Result]) -> object:
    """Carry a conversation through that asks for nothing."""
    try:
        next(conversation)
    except StopIteration as end:
        return end.value
    raise AssertionError("it asks for something")


def cargo(jobs: Iterable[Any]) -> Cargo[Result]:
    return Cargo(Sender("sj", make, 0.0, carry), jobs)


def job(n: int, queue: str = "mail", delay_ms: int = 0, size: int = 0) -> Job:
    return Job("k", b"%d" % n + b" " * size, queue, delay_ms)


def unload(one: Cargo[Result]) -> list[int]:
    """Let every shipment arrive, its jobs numbered by their place in it; return the sizes."""
    sizes = []
    for lane, shipment in one.shipments():
        sizes.append(len(shipment.jobs))
        shipment.outcome = Shipped([f"{index}-0" for index in range(len(shipment.jobs))])
        one.unload(lane, shipment)
    return sizes


def test_shipments_are_full_before_they_leave() -> None:
    one = cargo(job(n) for n in range(1100))

    assert unload(one) == [MAX_BATCH_JOBS, MAX_BATCH_JOBS, 100]
    assert [result[2] for result in one.results if isinstance(result, tuple)] == [b"%d" % n for n in range(1100)]


def test_shipments_are_bounded_by_bytes() -> None:
    assert unload(cargo(job(n, size=MAX_BATCH_BYTES // 8) for n in range(10))) == [4, 4, 2]


def test_results_come_in_the_order_of_their_jobs_whatever_lane_they_took() -> None:
    jobs = [job(n, queue="ab"[n % 2], delay_ms=n % 3) for n in range(30)]
    one = cargo(jobs)

    unload(one)

    assert [result[:1] + result[2:3] for result in one.results if isinstance(result, tuple)] == [
        (each.queue, each.body) for each in jobs
    ]


def test_what_is_no_job_gets_its_error_and_the_others_go_on() -> None:
    one = cargo([job(0), "mail", job(2), None])

    unload(one)

    assert [isinstance(result, UsageError) for result in one.results] == [False, True, False, True]
    assert "item 1: expected a job made by call()" in str(one.results[1])


def test_an_iterable_that_raises_still_ships_what_it_gave_before() -> None:
    def jobs() -> Iterator[Job]:
        yield from (job(n) for n in range(3))
        raise KeyError("source")

    one = cargo(jobs())
    shipments = one.shipments()

    assert len(next(shipments)[1].jobs) == 3
    with pytest.raises(KeyError, match="source"):
        next(shipments)


def test_nothing_to_send_is_nothing() -> None:
    assert unload(cargo([])) == []


def test_each_job_of_an_unknown_shipment_has_a_retry_of_its_own() -> None:
    one = cargo([job(0), job(1)])
    for lane, shipment in one.shipments():
        shipment.outcome = OutcomeUnknown("cut")
        one.unload(lane, shipment)
        shipment.outcome = Shipped(["7-0", "7-1"])

    errors = [result for result in one.results if isinstance(result, OutcomeUnknown)]
    assert [error.retry() for error in errors] == [("mail", "7-0", b"0", False), ("mail", "7-1", b"1", False)]


def test_other_errors_are_the_result_of_each_job() -> None:
    one = cargo([job(0), job(1)])
    error = StreamJobsError("no")
    for lane, shipment in one.shipments():
        shipment.outcome = error
        one.unload(lane, shipment)

    assert one.results == [error, error]


def test_each_queue_has_a_lane_for_now_and_one_for_later() -> None:
    sender = Sender("sj", make, 0.0, carry)

    assert sender.lane(job(0, "a")) is sender.lane(job(1, "a"))
    assert len({sender.lane(job(0, queue, delay_ms)) for queue in "ab" for delay_ms in (0, 5, 6)}) == 4
