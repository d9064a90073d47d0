"""The producer for many threads: each future ends with the handle of its job, and a full buffer makes them wait."""

import asyncio
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed, wait
from typing import Any

import pytest

from streamjobs import Handle, InvalidOption, Job, NotSent, QueueFull, Rejected, UsageError
from tests.producer.support import SOON_S, Gate, MakeApp, Queue, body


def test_many_threads_submit_and_each_future_has_its_own_handle(apps: MakeApp, url: str, queue: Queue) -> None:
    note = apps(url).kind("note")

    def some(producer: Any, first: int) -> list[tuple[int, Future[Any]]]:
        return [(n, producer.submit(note.call(n))) for n in range(first, first + 500)]

    with apps(url).producer() as producer, ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda first: some(producer, first), range(0, 4000, 500)))

    there = dict(zip((f"q:{one}" for one in queue.waiting()), queue.bodies(), strict=True))
    assert len(there) == 4000
    assert {future.result(0).id: body(n) for part in parts for n, future in part} == there


def test_jobs_of_one_thread_keep_their_order(apps: MakeApp, url: str, queue: Queue) -> None:
    app = apps(url)

    with app.producer() as producer:
        for n in range(1200):
            producer.submit(app.kind("note").call(n))

    assert queue.bodies() == [body(n) for n in range(1200)]


def test_what_gathers_goes_in_one_call(apps: MakeApp, server_url: str, queue: Queue, gate: Gate) -> None:
    app = apps(server_url)
    with app.producer() as producer:
        producer.submit(app.kind("note").call(0))
        assert gate.reached.wait(SOON_S)
        before = queue.script_calls()
        for n in range(1, 1001):
            producer.submit(app.kind("note").call(n))
        gate.open()

    # One for the first, which may be sent twice until its script is loaded, and two for the thousand.
    assert queue.script_calls() - before <= 4
    assert len(queue.waiting()) == 1001


def test_each_queue_and_time_of_day_has_its_own_way(apps: MakeApp, url: str, queue: Queue) -> None:
    note = apps(url).kind("note")
    with apps(url).producer() as producer:
        now, later = producer.submit(note.call(1)), producer.submit(note.options(delay=3600).call(2))
        other = producer.submit(note.options(queue="other").call(3))

    assert [now.result(0).id] == [f"q:{one}" for one in queue.waiting()]
    assert [later.result(0).id] == [f"q:{one}" for one in queue.scheduled()]
    assert other.result(0).queue == "other"


def test_a_duplicate_has_the_handle_of_the_first(apps: MakeApp, url: str, queue: Queue) -> None:
    call = apps(url).kind("note").options(dedupe_key="k").call(1)
    with apps(url).producer() as producer:
        first, second = producer.submit(call), producer.submit(call)

    assert (first.result(0).duplicate, second.result(0).duplicate) == (False, True)
    assert first.result(0).id == second.result(0).id == f"q:{queue.waiting()[0]}"


def test_a_full_queue_is_told_to_those_that_did_not_fit(apps: MakeApp, url: str, queue: Queue) -> None:
    app = apps(url)
    app.queue("q", max_waiting=3)
    with app.producer() as producer:
        futures = [producer.submit(app.kind("note").call(n)) for n in range(5)]

    assert [type(future.exception(0)) for future in futures] == [type(None)] * 3 + [QueueFull] * 2
    assert len(queue.waiting()) == 3


def test_who_waits_for_room_gets_it_and_holds_up_no_other_queue(apps: MakeApp, url: str, queue: Queue) -> None:
    app = apps(url)
    note = app.kind("note")
    app.queue("q", max_waiting=1, when_full="wait")
    with app.producer() as producer:
        first, second = producer.submit(note.call(1)), producer.submit(note.call(2))
        other = producer.submit(note.options(queue="other").call(3))
        assert other.result(SOON_S).queue == "other"
        assert first.result(SOON_S).id == f"q:{queue.waiting()[0]}"
        assert not second.done()
        queue.command("XDEL", queue.keys.stream, queue.waiting()[0])
        assert second.result(SOON_S).id == f"q:{queue.waiting()[0]}"


def test_who_waits_for_room_in_vain_is_told_that_the_queue_is_full(apps: MakeApp, url: str, queue: Queue) -> None:
    app = apps(url)
    app.queue("q", max_waiting=1, when_full="wait")
    with app.producer(enqueue_timeout=1.0) as producer:
        futures = [producer.submit(app.kind("note").call(n)) for n in range(3)]

    assert [type(future.exception(0)) for future in futures] == [type(None), QueueFull, QueueFull]


def test_a_refusal_for_good_is_told(apps: MakeApp, server_url: str, queue: Queue) -> None:
    queue.command("SET", queue.keys.stream, "not a stream")
    with apps(server_url).producer() as producer:
        future = producer.submit(apps(server_url).kind("note").call(1))

    with pytest.raises(Rejected):
        future.result(0)
    queue.command("DEL", queue.keys.stream)


def test_a_full_buffer_makes_submit_wait_until_half_of_it_is_free(apps: MakeApp, url: str, gate: Gate) -> None:
    note = apps(url).kind("note")
    with apps(url).producer(max_waiting=4) as producer, ThreadPoolExecutor(1) as pool:
        for n in range(4):
            producer.submit(note.call(n))
        late = pool.submit(lambda: producer.submit(note.call(4)))

        assert not wait([late], 0.1).done
        gate.open()
        assert isinstance(late.result(SOON_S).result(SOON_S), Handle)


def test_a_full_buffer_says_so_to_who_does_not_wait(apps: MakeApp, url: str, queue: Queue, gate: Gate) -> None:
    note = apps(url).kind("note")
    with apps(url).producer(max_waiting=2) as producer:
        futures = [producer.submit(note.call(n)) for n in range(2)]
        with pytest.raises(NotSent, match=r"nothing was enqueued: 2 jobs wait to be sent"):
            producer.submit(note.call(2), block=False)
        with pytest.raises(NotSent):
            producer.submit(note.call(3), timeout=0.05)
        gate.open()
        wait(futures, SOON_S)
        producer.submit(note.call(4), block=False)

    assert queue.bodies() == [body(0), body(1), body(4)]


def test_a_callback_may_submit_even_when_the_buffer_is_full(apps: MakeApp, url: str, queue: Queue) -> None:
    note, ends = apps(url).kind("note"), threading.Semaphore(0)
    with apps(url).producer(max_waiting=1) as producer:

        def go_on(future: Future[Any]) -> None:
            for n in (2, 3):
                producer.submit(note.call(n)).add_done_callback(lambda _: ends.release())

        producer.submit(note.call(1)).add_done_callback(go_on)
        assert all(ends.acquire(timeout=SOON_S) for _ in range(2))

    assert queue.bodies() == [body(1), body(2), body(3)]


def test_flush_waits_for_all_that_was_handed_over(apps: MakeApp, url: str, queue: Queue, gate: Gate) -> None:
    with apps(url).producer() as producer:
        futures = [producer.submit(apps(url).kind("note").call(n)) for n in range(10)]
        assert producer.flush(0.05) is False
        gate.open()
        assert producer.flush(SOON_S) is True
        assert all(future.done() for future in futures)
        assert len(queue.waiting()) == 10


def test_flush_from_a_callback_would_wait_for_itself(apps: MakeApp, url: str) -> None:
    caught: list[BaseException] = []
    with apps(url).producer() as producer:

        def flush(future: Future[Any]) -> None:
            for wait in (producer.flush, producer.close):
                with pytest.raises(UsageError, match="not from the callback") as info:
                    wait()
                caught.append(info.value)

        note = apps(url).kind("note")
        producer.submit(note.call(1)).add_done_callback(flush)
        producer.flush()
        assert producer.submit(note.call(2)).result(timeout=SOON_S).queue  # it goes on

    assert len(caught) == 2


def test_a_callback_that_fails_or_exits_stops_nothing(
    apps: MakeApp, url: str, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    def leave(future: Future[Any]) -> None:
        raise SystemExit(3)

    with apps(url).producer() as producer:
        producer.submit(apps(url).kind("note").call(1)).add_done_callback(leave)
        assert producer.flush(SOON_S)
        assert producer.submit(apps(url).kind("note").call(2)).result(SOON_S).id == f"q:{queue.waiting()[1]}"

    assert "a callback of a future failed" in caplog.text


def test_a_future_cancelled_in_time_takes_its_job_out(apps: MakeApp, url: str, queue: Queue, gate: Gate) -> None:
    note = apps(url).kind("note")
    with apps(url).producer(max_waiting=3) as producer:
        sent = producer.submit(note.call(0))
        assert gate.reached.wait(SOON_S)
        kept, dropped = producer.submit(note.call(1)), producer.submit(note.call(2))

        assert (sent.cancel(), dropped.cancel()) == (False, True)
        gate.open()
        assert wait([sent, kept, dropped], SOON_S).not_done == set()
        with pytest.raises(CancelledError):
            dropped.result(0)

    assert queue.bodies() == [body(0), body(1)]


def test_results_come_to_those_who_wait_for_them_in_any_way(apps: MakeApp, url: str) -> None:
    note = apps(url).kind("note")
    with apps(url).producer() as producer:
        futures = [producer.submit(note.call(n)) for n in range(100)]
        assert len({future.result().id for future in as_completed(futures, SOON_S)}) == 100
        with ThreadPoolExecutor(20) as pool:
            ids = set(pool.map(lambda n: producer.submit(note.call(n)).result(SOON_S).id, range(200)))
        assert len(ids) == 200

        async def in_a_loop() -> list[Handle[Any]]:
            return await asyncio.gather(*(asyncio.wrap_future(producer.submit(note.call(n))) for n in range(10)))

        assert len(asyncio.run(in_a_loop())) == 10


def test_a_future_that_has_not_ended_times_out(apps: MakeApp, url: str, gate: Gate) -> None:
    with apps(url).producer() as producer:
        future = producer.submit(apps(url).kind("note").call(1))
        with pytest.raises(TimeoutError):
            future.result(0.01)
        with pytest.raises(TimeoutError):
            future.exception(0.01)
        gate.open()
        assert future.exception(SOON_S) is None


def test_a_job_that_nobody_checked_ends_its_own_future_alone(apps: MakeApp, url: str, queue: Queue) -> None:
    with apps(url).producer() as producer:
        wrong: Any = [Job("note", b"{}", "q", durability="disk"), Job("note", None, "q")]  # type: ignore[arg-type]
        futures = [producer.submit(job) for job in wrong]
        assert [type(future.exception(SOON_S)) for future in futures] == [InvalidOption, TypeError]
        assert producer.submit(apps(url).kind("note").call(1)).result(SOON_S).id == f"q:{queue.waiting()[0]}"


def test_what_is_no_job_is_refused(apps: MakeApp, url: str) -> None:
    with apps(url).producer() as producer, pytest.raises(UsageError, match="expected a job made by call"):
        producer.submit("note")  # type: ignore[arg-type]
    for wrong in (0, 10**7, 1.5):
        with pytest.raises(InvalidOption, match="max_waiting"):
            apps(url).producer(max_waiting=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="enqueue_timeout"):
        apps(url).producer(enqueue_timeout=0)


def test_what_came_of_each_job_is_counted(apps: MakeApp, url: str) -> None:
    app = apps(url)
    app.registry.meter.on = True
    app.queue("q", max_waiting=2)
    with app.producer() as producer:
        for n in range(5):
            producer.submit(app.kind("note").call(n))

    assert app.registry.meter.enqueued == {("q", "note", "accepted"): 2, ("q", "note", "full"): 3}
