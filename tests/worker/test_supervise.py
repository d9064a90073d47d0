"""`-w N`: children that work, that are replaced when they die, and that end with their supervisor."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from streamjobs import StreamJobs
from streamjobs.client.talk import talk
from streamjobs.core.options import EnqueueOptions
from streamjobs.core.retry import Exponential
from streamjobs.operate import workers
from streamjobs.worker import supervise
from streamjobs.worker.line import MOVES, QUIET, READY, STOP
from streamjobs.worker.process import run_supervised
from streamjobs.worker.supervise import CrashedAtStart, Supervisor
from tests.servers import Server
from tests.worker.groups import PATIENT_S, Barrier, Start
from tests.worker.support import FAST, Queue, pause, within

SHORT = ("--lease", "500ms", "--sweep", "100ms")
AT_ONCE = Exponential(base=0.001, cap=0.01)


def test_children_share_the_work_and_stop_in_peace(
    start: Start, barrier: Barrier, sender: StreamJobs, queue: Queue
) -> None:
    group = start("-w", "2", "-c", "1")
    children = group.await_children(2)
    for _ in children:
        sender.send_sync("waits")
    workers = {int(group.await_line(r"waits started in (\d+)")[1]) for _ in children}

    group.signal(signal.SIGTERM)
    group.await_line("the supervisor is stopping")
    barrier.open()

    assert (group.end(), workers) == (0, set(children))
    assert queue.totals()["done"] == 2
    assert queue.length() == 0


def test_a_child_that_is_killed_is_replaced_and_its_job_runs_again(
    start: Start, barrier: Barrier, sender: StreamJobs
) -> None:
    group = start("-w", "2", *SHORT)
    group.await_children(2)
    sender.send_sync("waits")
    victim = int(group.await_line(r"waits started in (\d+), attempt 1")[1])

    os.kill(victim, signal.SIGKILL)

    group.await_line(rf"child {victim} was killed by SIGKILL; the next starts in")
    group.await_lines("waits started in .*, attempt 2", "serves")
    barrier.open()
    group.signal(signal.SIGTERM)
    assert group.end() == 0


def test_a_child_that_is_stopped_by_hand_is_replaced(start: Start) -> None:
    group = start("-w", "2")
    first, _ = group.await_children(2)

    os.kill(first, signal.SIGTERM)

    group.await_line(f"child {first} ended with exit code 0")
    group.await_children(1)
    group.signal(signal.SIGINT)
    assert group.end() == 0


def test_a_poison_job_is_dead_after_three_starts_and_its_neighbours_are_done(
    start: Start, sender: StreamJobs, queue: Queue
) -> None:
    kinds = ["quick"] * 3 + ["poison"] + ["quick"] * 3
    sender.enqueue_many_sync(sender.job_of(kind, {}, EnqueueOptions()) for kind in kinds)

    group = start("-w", "2", "-c", "3", "--burst", *SHORT)

    assert group.end() == 0, group.said
    assert group.count("poison started") == 3
    [dead] = queue.dead()
    assert (dead["kind"], dead["reason"], dead["attempts"]) == (b"poison", b"crash_limit", b"3")
    assert (queue.totals()["done"], queue.length()) == (6, 0)


def test_a_suspect_runs_alone_while_the_other_children_go_on(
    start: Start, barrier: Barrier, sender: StreamJobs, queue: Queue
) -> None:
    group = start("-w", "2", "-c", "1", *SHORT)
    group.await_children(2)
    sender.send_sync("unlucky")
    alone = int(group.await_line(r"unlucky started in (\d+), attempt 3")[1])

    for _ in range(10):
        sender.send_sync("quick")
        assert int(group.await_line(r"quick started in (\d+)")[1]) != alone

    group.signal(signal.SIGTERM)
    group.await_line("is stopping")
    barrier.open()
    assert group.end() == 0
    assert (queue.totals()["done"], queue.length(), queue.dead()) == (11, 0, [])


def test_case_I3_a_second_signal_ends_all_at_once(start: Start, sender: StreamJobs, queue: Queue) -> None:
    group = start("-w", "2", "--grace", "60s")
    group.await_children(2)
    sender.send_sync("waits")
    group.await_line("waits started")

    group.signal(signal.SIGINT)
    group.await_line("a second signal")
    group.signal(signal.SIGTERM)

    assert group.end() == 143
    assert queue.command("SCARD", queue.keys.released) == 1


def test_one_child_that_ran_out_of_time_is_said_by_the_exit_code(start: Start, sender: StreamJobs) -> None:
    group = start("-w", "2", "--grace", "100ms")
    group.await_children(2)
    sender.send_sync("waits")
    group.await_line("waits started")

    group.signal(signal.SIGTERM)

    assert group.end() == 1


def test_children_end_when_their_supervisor_is_killed(
    start: Start, barrier: Barrier, sender: StreamJobs, queue: Queue
) -> None:
    group = start("-w", "2")
    group.await_children(2)
    sender.send_sync("waits")
    group.await_line("waits started")

    group.signal(signal.SIGKILL)
    group.await_line("its supervisor is gone")
    barrier.open()

    assert group.end() == -signal.SIGKILL
    assert group.count("0 given back") == 2
    assert queue.totals()["done"] == 1


@pytest.mark.parametrize(
    ("app", "words", "said"),
    [
        ("tests.worker.no_such_module:app", [], "there is no module"),
        ("tests.worker.supervised:app", ["-c", "0"], "concurrency=0"),
        ("tests.worker.supervised:app", ["--url", "memory://"], "memory:// is seen by one process alone"),
    ],
    ids=["app", "option", "memory"],
)
def test_what_can_never_start_is_said_once(start: Start, app: str, words: list[str], said: str) -> None:
    group = start("-w", "3", *words, app=app)

    assert group.end() == 2
    assert (group.count("^error: "), group.count(said), len(group.said)) == (1, 1, 1)


def test_case_F10_a_server_that_deletes_jobs_is_refused_once_for_all_children(
    start: Start, server_binary: Path
) -> None:
    with Server(server_binary, args=("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")) as server:
        group = start("-w", "3", "--url", server.url)

        assert group.end() == 5
    assert (group.count("^error: .*allkeys-lru"), len(group.said)) == (1, 1)


async def test_it_gives_up_when_no_child_comes_as_far_as_to_work() -> None:
    supervisor = Supervisor([sys.executable, "-c", "import os; os._exit(9)"], 3, backoff=AT_ONCE)

    with pytest.raises(CrashedAtStart, match="5 starts in a row came to nothing, the last ended with exit code 9"):
        await supervisor.run()


async def test_a_child_that_cannot_even_be_started_counts_as_one_that_died() -> None:
    with pytest.raises(CrashedAtStart, match="could not be started"):
        await asyncio.wait_for(Supervisor(["/no/such/program"], 2, backoff=AT_ONCE).run(), PATIENT_S)


def test_children_that_are_ordered_to_stop_are_not_replaced_and_the_last_ends_the_group(
    start: Start, barrier: Barrier, sender: StreamJobs, queue: Queue
) -> None:
    group = start("-w", "2")
    group.await_children(2)
    sender.send_sync("waits")
    group.await_line("waits started")
    server = sender.connections.sync()
    names: list[str] = []
    while len(names) < 2:
        names = [one.name for one in talk(server, workers.look(sender.namespace)).workers if one.told]

    taken = talk(server, workers.order(sender.namespace, names, "stop"))
    barrier.open()

    assert group.end() == 0
    assert [one.taken for one in taken] == [True, True]
    assert (group.count("the next starts in"), group.count(" serves ")) == (0, 2)
    assert queue.totals()["done"] == 1


CHILD = """
import os, socket, sys
line = socket.socket(fileno=int(sys.argv[sys.argv.index("--line") + 1]))
line.send(b"r")
open(sys.argv[1], "a").write("x")
number = os.path.getsize(sys.argv[1])
"""
"""The begin of a child that is no worker: it knows its number, and speaks over its line."""


async def test_a_quiet_child_that_dies_is_replaced_by_a_quiet_one(tmp_path: Path) -> None:
    program = CHILD + (
        "if number == 1:\n"
        "    line.send(b'q')\n"
        "    os._exit(9)\n"
        "if number == 2:\n"
        "    assert line.recv(1) == b'q'\n"
        "    line.send(b'w')\n"
        "    os._exit(9)\n"
        "line.settimeout(0.5)\n"
        "try: sys.exit(line.recv(1) != b's')\n"
        "except TimeoutError: line.send(b'l')\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "starts")]

    assert await asyncio.wait_for(Supervisor(command, 1, backoff=AT_ONCE).run(), PATIENT_S) == 0

    assert (tmp_path / "starts").read_text() == "xxx"


async def test_the_child_for_suspects_ends_where_no_other_starts_anything(tmp_path: Path) -> None:
    program = CHILD + (
        "if '--quarantine' in sys.argv:\n"
        "    line.recv(1) == b's' and open(sys.argv[1], 'a').write('stopped')\n"
        "    sys.exit(0)\n"
        "line.send(b'u')\n"
        "while open(sys.argv[1]).read() != 'xx': pass\n"
        "line.send(b'q')\n"
        "while 'stopped' not in open(sys.argv[1]).read(): pass\n"
        "line.send(b'l')\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "starts")]

    assert await asyncio.wait_for(Supervisor(command, 1, backoff=AT_ONCE).run(), PATIENT_S) == 0

    assert (tmp_path / "starts").read_text() == "xxstopped"


async def test_an_error_in_the_keeping_of_the_child_for_suspects_ends_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suspects would else wait for a child that nobody starts."""
    program = CHILD + "line.send(b'u')\nsys.exit(line.recv(1) != b's')\n"
    command = [sys.executable, "-c", program, str(tmp_path / "starts")]

    async def fails(supervisor: Supervisor) -> None:
        await supervisor._suspects.wait()
        raise ZeroDivisionError

    monkeypatch.setattr(Supervisor, "_keep_quarantine", fails)

    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(Supervisor(command, 1, backoff=AT_ONCE).run(), PATIENT_S)


async def test_a_child_that_does_not_move_is_told_of_once_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It answers, then lets all questions pass until it was missed, then answers again."""
    monkeypatch.setattr(supervise, "ASK_EVERY_S", 0.02)
    program = CHILD + (
        "for _ in range(20): assert line.recv(1) == b'm' and line.send(b'm')\n"
        "while open(sys.argv[1]).read() != 'x missed': pass\n"
        "assert line.recv(4096) == b'm' and line.send(b'm')\n"
        "for _ in range(20): assert line.recv(1) == b'm' and line.send(b'm')\n"
        "line.send(b'l')\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "starts")]

    with caplog.at_level("INFO", "streamjobs.worker"):
        running = asyncio.create_task(Supervisor(command, 1, backoff=AT_ONCE).run())
        async with asyncio.timeout(PATIENT_S):
            while "has not moved" not in caplog.text:
                await pause(0.01)
            (tmp_path / "starts").write_text("x missed")
            assert await running == 0

    assert len([one for one in caplog.messages if "has not moved for 0 s: it is frozen, or" in one]) == 1


async def test_a_child_says_that_it_moves_and_is_told_no_order_by_that(app: StreamJobs) -> None:
    worker = app.make_worker(["q"], FAST)
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        running = asyncio.create_task(run_supervised(worker, theirs.detach()))
        await within(worker.ready)
        loop = asyncio.get_running_loop()
        heard = await loop.sock_recv(ours, 1)

        for question, state in ((MOVES, "running"), (MOVES + QUIET, "quiet")):
            ours.send(question)
            heard += await loop.sock_recv(ours, 1)
            assert worker.state == state
        ours.send(MOVES + STOP)

        assert await running == 0
    assert heard == READY + MOVES + MOVES
