"""Suspects in a group of processes: the ordinary ones leave them, and one runs nothing else."""

import asyncio

import pytest

from streamjobs import StreamJobs
from streamjobs.protocol import leases
from streamjobs.worker.duty import Duty
from tests.worker.bench import Bench, Gate, crash_marked
from tests.worker.support import Queue


async def test_an_ordinary_child_leaves_a_suspect_to_others_without_a_ring(
    app: StreamJobs, queue: Queue, gate: Gate
) -> None:
    bench = Bench(app, queue, duty=Duty.ORDINARY)
    await gate.kind.enqueue("suspect")
    queue.crash()
    crash_marked(queue, "second")
    await gate.kind.enqueue("fresh")

    bench.take_over()
    bench.read()
    await gate.started.wait(1)
    await bench.settled()

    assert (gate.names, len(bench.left)) == (["fresh"], 1)
    assert queue.command("SCARD", queue.keys.released) == 1
    assert queue.command("LLEN", queue.keys.bell) == 0


async def test_the_quarantine_child_waits_for_a_queue_where_patterns_have_found_none(
    app: StreamJobs, queue: Queue, gate: Gate
) -> None:
    bench = Bench(app, queue, 1, duty=Duty.SUSPECTS)
    bench.station.queues.clear()

    assert await bench.quarantine.tick() > 0


@pytest.mark.parametrize("slots", [1, 10])
async def test_an_ordinary_child_takes_what_it_left_once_a_ring_and_not_for_ever(
    app: StreamJobs, queue: Queue, gate: Gate, slots: int
) -> None:
    bench = Bench(app, queue, slots, duty=Duty.ORDINARY)
    await gate.kind.enqueue("suspect")
    queue.crash()
    crash_marked(queue, "second")
    bench.take_over()
    await bench.settled()

    bench.queue.rung = True
    bench.queue.next_sweep = asyncio.get_running_loop().time() + 60
    for _ in range(5):
        await bench.fetcher.tick()
        await bench.settled()

    assert (gate.names, len(bench.left), bench.queue.rung) == ([], 2, False)


async def test_the_quarantine_child_runs_suspects_one_at_a_time(app: StreamJobs, queue: Queue, gate: Gate) -> None:
    bench = Bench(app, queue, 1, duty=Duty.SUSPECTS)
    await app.enqueue_many(gate.kind.call(name) for name in "ab")
    queue.crash()
    crash_marked(queue, "second")

    await bench.quarantine.tick()
    await gate.started.wait(1)
    assert (gate.names, bench.starter.free()) == (["a"], 0)

    gate.go_on.set()
    await bench.quarantine.tick()
    await gate.started.wait(2)
    await bench.settled()
    assert (gate.names, gate.attempts, bench.stops) == (["a", "b"], [3, 3], [])


async def test_the_quarantine_child_ends_when_there_are_no_suspects(app: StreamJobs, queue: Queue, gate: Gate) -> None:
    bench = Bench(app, queue, 1, duty=Duty.SUSPECTS)
    await gate.kind.enqueue("fresh")

    await bench.quarantine.tick()

    assert (len(bench.stops), gate.names) == (1, [])


async def test_the_quarantine_child_passes_others_on_with_who_is_presumed_dead(
    app: StreamJobs, queue: Queue, gate: Gate
) -> None:
    bench = Bench(app, queue, 1, duty=Duty.SUSPECTS)
    await gate.kind.enqueue("innocent")
    queue.crash()

    await bench.quarantine.tick()
    await bench.settled()

    assert queue.command("LLEN", queue.keys.bell) == 1
    [taken] = queue.run(leases.take(queue.keys, "other", 10, 0.0))
    assert (taken.marks, taken.starts.partition("@")[0], gate.names) == (0, "dead-worker", [])


async def test_the_quarantine_child_ends_rather_than_run_beside_a_handler_that_does_not(
    app: StreamJobs, queue: Queue, gate: Gate
) -> None:
    bench = Bench(app, queue, 1, duty=Duty.SUSPECTS)
    await app.enqueue_many(gate.kind.call(name) for name in "ab")
    queue.crash()
    crash_marked(queue, "second")
    await bench.quarantine.tick()
    await gate.started.wait(1)

    [execution] = [one for one in bench.queue.held.values() if one.runs]
    bench.runner.abandon(execution)
    await bench.quarantine.tick()

    assert (len(bench.stops), gate.names) == (1, ["a"])
    gate.go_on.set()
    await bench.settled()
