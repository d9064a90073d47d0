"""Handlers in processes: what they get, give back and may cost."""

import os
import signal
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from streamjobs import Batch, InvalidOption, JobCancelled, JobFailed, Retry, StreamJobs
from tests.worker import in_process
from tests.worker.processes import alive, lines, until
from tests.worker.support import FAST, WITHIN_S, Queue, make_app


async def test_runs_in_other_processes_which_are_reused(processes: StreamJobs) -> None:
    async with processes.worker(options=FAST, pool=2):
        handles = [await in_process.pid.enqueue() for _ in range(20)]
        pids = {await handle.result(timeout=WITHIN_S) for handle in handles}

    assert os.getpid() not in pids
    assert len(pids) <= 2
    assert not any(map(alive, pids))


async def test_arguments_and_results_are_of_their_types(processes: StreamJobs) -> None:
    when = datetime(2030, 1, 1, tzinfo=UTC)
    async with processes.worker(options=FAST):
        handle = await in_process.add.enqueue(when, Decimal("1.10"), days=2)
        assert await handle.result(timeout=WITHIN_S) == (datetime(2030, 1, 3, tzinfo=UTC), Decimal("2.20"))


async def test_a_result_that_is_too_large_makes_the_job_dead_one_that_is_not_kept_never(
    processes: StreamJobs, queue: Queue
) -> None:
    async with processes.worker(options=FAST):
        assert len(await (await in_process.large.enqueue(200_000)).result(timeout=WITHIN_S)) == 200_000
        with pytest.raises(JobFailed, match="the result cannot be kept: what was returned: 300002 bytes") as caught:
            await (await in_process.large.enqueue(300_000)).result(timeout=WITHIN_S)
        await in_process.unkept.enqueue()
        await until(lambda: queue.totals().get("done") == 2)

    assert caught.value.reason == "permanent"
    assert b'"k":"bug"' in queue.dead()[0]["history"]


async def test_a_result_that_raises_is_no_death_of_its_process(processes: StreamJobs, queue: Queue) -> None:
    async with processes.worker(options=FAST):
        with pytest.raises(JobFailed, match=r"the result cannot be kept: .*LookupError") as caught:
            await (await in_process.undumped.enqueue()).result(timeout=WITHIN_S)

    assert caught.value.reason == "permanent"
    assert b'"k":"bug"' in queue.dead()[0]["history"]


async def test_a_run_cannot_move_the_deadline_at_which_it_is_killed(processes: StreamJobs) -> None:
    async with processes.worker(options=FAST):
        with pytest.raises(JobFailed, match="killed at its timeout"):
            await (await in_process.extends.enqueue()).result(timeout=WITHIN_S)


def test_a_batch_in_a_process_is_refused() -> None:
    decorate = make_app("memory://", "n").job(batch=Batch(5), process=True)
    with pytest.raises(InvalidOption, match="batch= and process=True"):
        decorate(_several)


@dataclass
class Item:
    n: int


def _several(items: list[Item]) -> None: ...


async def test_the_context_knows_its_run(processes: StreamJobs) -> None:
    async with processes.worker(options=FAST):
        handle = await in_process.look.options(headers={"a": "b"}).enqueue(7)
        seen = await handle.result(timeout=WITHIN_S)

    kind = "tests.worker.in_process.look"
    assert seen == [handle.id, kind, "q", 1, 8, 1, {"a": "b"}, None, handle.id, 7]


@pytest.mark.parametrize(
    ("how", "reason", "text", "errors"),
    [
        ("strange", "exhausted", "Strange: what is this", "ours"),
        ("permanent", "permanent", "Permanent: never", "other"),
        ("exit", "exhausted", "SystemExit: 3", "other"),
        ("wrong", "exhausted", "a wrong delay", "bug"),
        ("lost", "exhausted", "ValueError", "validation"),
    ],
)
async def test_what_it_raises_is_judged_where_it_is(
    processes: StreamJobs, queue: Queue, how: str, reason: str, text: str, errors: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with processes.worker(options=FAST):
        with pytest.raises(JobFailed, match=text) as caught:
            await (await in_process.fails.enqueue(how)).result(timeout=WITHIN_S)

    assert caught.value.reason == reason
    assert f'"k":"{errors}"'.encode() in queue.dead()[0]["history"]
    # With the traceback, as it was there.
    assert "in_process.py" in caplog.text


async def test_it_can_steer_its_job(processes: StreamJobs, queue: Queue, file: str) -> None:
    async with processes.worker(options=FAST):
        assert await (await in_process.snoozes.enqueue(file)).result(timeout=WITHIN_S) == 1
        with pytest.raises(JobCancelled):
            await (await in_process.fails.enqueue("cancel")).result(timeout=WITHIN_S)
        await in_process.fails.enqueue("limited")
        await until(lambda: queue.totals().get("snoozed", 0) >= 3)


async def test_what_it_prints_and_logs_is_the_workers(
    processes: StreamJobs, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async with processes.worker(options=FAST):
        handle = await in_process.talks.enqueue()
        await handle.result(timeout=WITHIN_S)

    said = [
        record for record in caplog.records if record.name in ("a.library", f"streamjobs.job.{in_process.talks.name}")
    ]
    assert [record.getMessage() for record in said] == ["from a library", "from the job"]
    assert {record.__dict__["job_id"] for record in said} == {handle.id}
    out, err = capfd.readouterr()
    assert "to stdout" in err
    assert "to stderr" in err
    assert not out


async def test_effects_are_guarded_and_jobs_sent_where_the_worker_works(processes: StreamJobs, file: str) -> None:
    async with processes.worker(options=FAST):
        assert await (await in_process.guarded.enqueue(file)).result(timeout=WITHIN_S)
        assert not await (await in_process.guarded.enqueue(file)).result(timeout=WITHIN_S)
        sent = await (await in_process.sends.enqueue()).result(timeout=WITHIN_S)
        assert await processes.handle(sent).result(timeout=WITHIN_S)

    assert lines(file) == ["had"]


async def test_a_process_is_replaced_after_so_many_jobs(processes: StreamJobs) -> None:
    async with processes.worker(options=FAST, pool=1, max_jobs_per_process=2):
        pids = [await (await in_process.pid.enqueue()).result(timeout=WITHIN_S) for _ in range(4)]
        await until(lambda: not alive(pids[0]))

    assert pids[0] == pids[1] != pids[2] == pids[3]


async def test_a_process_that_holds_too_much_is_replaced(processes: StreamJobs) -> None:
    async with processes.worker(options=FAST, pool=1, max_process_bytes=200_000_000):
        grown = [await (await in_process.grows.enqueue(n)).result(timeout=WITHIN_S) for n in (1, 300_000_000, 1)]

    assert grown[0] == grown[1] != grown[2]


async def test_a_process_whose_threads_do_not_end_is_replaced_all_the_same(processes: StreamJobs) -> None:
    async with processes.worker(options=FAST, pool=1, max_jobs_per_process=1):
        pid = await (await in_process.stays.enqueue()).result(timeout=WITHIN_S)
        await until(lambda: not alive(pid))


async def test_jobs_that_find_no_free_process_are_left_to_others_and_hold_up_no_other_queue(
    processes: StreamJobs, queue: Queue, file: str
) -> None:
    async with processes.worker(["q", "other"], options=FAST, pool=1):
        blocking = await in_process.waits.enqueue(file)
        await until(lambda: lines(file))
        waiting = [await in_process.pid.enqueue() for _ in range(30)]
        async with processes.worker(["q"], options=FAST, pool=1):
            here = {await handle.result(timeout=WITHIN_S) for handle in waiting}
        await (await in_process.in_the_loop.options(queue="other").enqueue()).result(timeout=WITHIN_S)
        assert len(here) == 1
        os.kill(int(lines(file)[0]), signal.SIGKILL)
        await blocking.result(timeout=WITHIN_S)


async def test_what_returns_an_awaitable_fails(processes: StreamJobs) -> None:
    async with processes.worker(options=FAST):
        with pytest.raises(JobFailed, match="something to be awaited"):
            await (await in_process.awaitable.enqueue()).result(timeout=WITHIN_S)


async def test_one_that_its_module_does_not_register_fails_with_the_reason(server_url: str, namespace: str) -> None:
    app = make_app(server_url, namespace)

    @app.job(name="hidden", process=True, retry=Retry(max_attempts=1))
    def hidden() -> None: ...

    async with app.worker(options=FAST):
        with pytest.raises(JobFailed, match="does not register it") as caught:
            await (await hidden.enqueue()).result(timeout=WITHIN_S)
    await app.aclose()

    assert caught.value.reason == "exhausted"


async def test_what_cannot_work_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, namespace: str) -> None:
    def plain() -> None: ...

    async def works() -> None: ...

    app = make_app("memory://", namespace)
    with pytest.raises(InvalidOption, match="this one is async"):
        app.job(process=True)(works)
    app.job(process=True)(plain)
    with pytest.raises(InvalidOption, match="memory:// is seen by one process alone"):
        await app.make_worker(options=FAST).run()
    app.use("redis://localhost:1/0")
    monkeypatch.setattr(plain, "__module__", "__main__")
    with pytest.raises(InvalidOption, match="in a module of its own"):
        await app.make_worker(options=FAST).run()


async def test_what_was_claimed_beyond_the_processes_is_given_back_once(processes: StreamJobs, queue: Queue) -> None:
    handles = [await in_process.pid.enqueue() for _ in range(40)]
    async with processes.worker(options=FAST, concurrency=10, pool=2):
        for handle in handles:
            await handle.result(timeout=WITHIN_S)

    assert queue.totals()["released"] <= 8
    assert queue.totals()["done"] == 40
