"""F39 to F42, F45 to F48: strange jobs, strange numbers of them, and servers and machines short of something."""

import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest

from streamjobs.client.talk import talk
from streamjobs.operate.batches import Done
from streamjobs.operate.dead import purge_these
from streamjobs.operate.replay import Replaying
from streamjobs.operate.scan import Scan, collect
from streamjobs.operate.selection import Selection
from tests.faults import server_faults
from tests.faults.field import FAST, HEALED_WITHIN_S, NAMESPACE, Field
from tests.faults.recorder import watch_calls

WRECKS = [
    (b"not json", b""),
    (b"[" * 100_000, b""),
    (b'{"n":"seven"}', b""),
    (b'{"m":7}', b""),
    (b"\x80\x04\x95", b""),
    (b"\xff\xfe", b""),
    (b"", b""),
    (b'{"n":1}', b"not json"),
    (b'{"n":1}', b'{"v":999}'),
    (b'{"n":1}', b"[" * 100_000),
]
"""Body and meta of entries that no handler can be started with."""


def test_F40_a_job_of_an_unknown_kind_is_parked_and_others_go_on(field: Field) -> None:
    field.queue.make_group()
    field.queue.add("kind", "nobody", "body", "{}")
    worker = field.serving()
    field.enqueue("nap", *range(10))
    field.until(lambda: field.count("E") == 10, "others run")
    parked = {"waiting": 0, "scheduled": 1, "retries": 0, "dead": 0}
    field.until(lambda: field.queue.counts() == parked, "it is parked, and nothing else is left")

    assert worker.running()


def test_F39_F41_what_cannot_be_decoded_is_dead_at_first_sight_with_its_bytes(field: Field) -> None:
    field.queue.make_group()
    for body, meta in WRECKS:
        field.queue.add("kind", "nap", "body", body, "meta", meta)
    field.queue.add("body", "{}")
    worker = field.serving()
    field.enqueue("nap", *range(10))
    field.until(lambda: field.count("E") == 10, "others run")
    field.drained()
    rows = field.queue.dead()

    assert {row["reason"] for row in rows} == {b"undecodable"}
    assert sorted(row["body"] for row in rows) == sorted([*(body for body, _ in WRECKS), b"{}"])
    assert field.count("S") == 10
    assert worker.running()
    assert "Traceback" not in worker.said()


def test_F42_two_operators_who_replay_at_once_put_one_copy_back(field: Field) -> None:
    field.enqueue("ends", *range(30), args=("bury",))
    worker = field.serving()
    field.until(lambda: field.queue.counts()["dead"] == 30, "all are dead")
    worker.kill9()
    executor, both = field.app.connections.sync(), Barrier(2)
    found = talk(executor, collect(Scan([field.queue.keys], Selection())))

    def replay() -> Done:
        both.wait()
        talk(executor, Replaying(NAMESPACE).put_back(found, whole := Done()))
        return whole

    with watch_calls(field.recorder), ThreadPoolExecutor(2) as pool:
        parts = [one.result() for one in [pool.submit(replay) for _ in range(2)]]
    field.serving()

    field.judge()
    assert (sum(part.done for part in parts), sum(part.gone for part in parts)) == (30, 30)
    assert (field.totals()["replayed"], field.count("E")) == (30, 30)


def test_F42_a_purge_beside_a_replay_takes_each_job_once(field: Field) -> None:
    field.enqueue("ends", *range(600), args=("bury",))
    worker = field.serving(concurrency=100)
    field.until(lambda: field.queue.counts()["dead"] == 600, "all are dead")
    worker.kill9()
    executor, both = field.app.connections.sync(), Barrier(2)
    found = talk(executor, collect(Scan([field.queue.keys], Selection())))

    def operate(backwards: bool) -> int:
        both.wait()
        whole = Done()
        for at in range(0, 600, 20):
            some = (found[::-1] if backwards else found)[at : at + 20]
            purge = purge_these(NAMESPACE, some, whole)
            talk(executor, purge if backwards else Replaying(NAMESPACE).put_back(some, whole))
        return whole.done

    with watch_calls(field.recorder), ThreadPoolExecutor(2) as pool:
        replayed, purged = pool.map(operate, (False, True))
    field.serving(concurrency=100)

    field.drained()
    field.until(lambda: field.totals()["done"] == replayed, "what was replayed is done")
    assert replayed + purged == 600
    assert min(replayed, purged) > 0
    assert (field.totals()["replayed"], field.totals()["purged"], field.count("E")) == (replayed, purged, replayed)


def test_F45_a_process_without_free_files_waits_until_it_has_some(field: Field) -> None:
    worker = field.serving()
    field.enqueue("nap", 1)
    field.happens("E", 1)
    soft, hard = resource.prlimit(worker.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (3, hard))
    server_faults.cut_clients(field.server)
    field.until(lambda: "Too many open files" in worker.said(), "it says so")
    field.enqueue("nap", 2)
    resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (soft, hard))
    field.happens("E", 2, within_s=HEALED_WITHIN_S)

    field.judge()
    assert worker.running()
    assert worker.said().count("\n") < 20


def test_F46_ten_thousand_jobs_due_at_one_instant_all_run(field: Field) -> None:
    due = datetime.now(UTC) + timedelta(seconds=1.5)
    field.enqueue("nap", *range(10_000), args=(0,), at=due)
    scheduled = field.queue.counts()["scheduled"]
    field.serving(concurrency=200)
    field.until(lambda: field.totals()["done"] == 10_000, "all have ended")

    field.judge()
    assert scheduled == 10_000
    assert (field.totals()["promoted"], field.count("S")) == (10_000, 10_000)


def test_F47_dead_claims_behind_hundreds_of_live_ones_are_found_within_two_sweeps(field: Field) -> None:
    field.enqueue("nap", *range(700), args=(60,))
    field.jobs.clear()
    healthy = field.serving(concurrency=700)
    field.until(lambda: field.count("S") == 700, "the healthy ones run")
    field.enqueue("nap", *range(1000, 1005), args=(0.2,))
    # Only entries behind the 700: a step of a sweep passes 500.
    doomed = field.worker(armed="worker.after_claim=kill9@1", concurrency=5)
    doomed.ended()
    assert len(field.queue.pending()) == 705
    field.serving(concurrency=5)
    within_s = FAST["lease"] + 2 * FAST["sweep"] + 2
    field.until(lambda: field.totals()["reclaimed"] == 5, "I15: dead claims are found within two sweeps", within_s)
    field.until(lambda: all(field.count("E", n) for n in range(1000, 1005)), "and run")

    assert field.count("S", pid=healthy.pid) == 700


@contextmanager
def user(field: Field, *rights: str) -> Iterator[str]:
    """A user with all rights but for these; yields the URL with which its processes find the server."""
    server_faults.command(field.server, "ACL", "SETUSER", "w", "on", ">secret", "~*", "&*", "+@all", *rights)
    yield field.server.url.replace("unix://", "unix://w:secret@")
    server_faults.command(field.server, "ACL", "DELUSER", "w")


@pytest.mark.parametrize("missing", ["xreadgroup", "xpending", "evalsha"])
def test_F48_a_user_without_a_right_is_told_which(field: Field, missing: str) -> None:
    with user(field, f"-{missing}") as url:
        worker = field.worker(url)
        assert worker.ended() != 0

    assert "permission" in worker.said() or "a worker may not use" in worker.said()
    assert missing in worker.said().lower()
    assert "secret" not in worker.said()


@pytest.mark.parametrize(("move", "missing"), [("retry", "zadd"), ("bury", "xadd"), ("promote", "xadd")])
def test_F48_a_move_that_ends_half_way_loses_nothing(field: Field, move: str, missing: str) -> None:
    kind, args = {"retry": ("flaky", (2,)), "bury": ("ends", ("bury",)), "promote": ("nap", ())}[move]
    with user(field) as url:
        worker = field.serving(url)
        # Taken away at the start, it would not even start.
        server_faults.command(field.server, "ACL", "SETUSER", "w", f"-{missing}")
        field.enqueue(kind, 1, args=args, delay=0.1 if move == "promote" else None)
        assert worker.ended() != 0
    field.serving()

    field.judge()
    assert field.totals()["done"] == 1
