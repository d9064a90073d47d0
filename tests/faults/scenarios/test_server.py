"""F18, F19, F22 to F27, F36, F38, F49: the server fails, and workers heal by themselves once it is back."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from streamjobs import NotSent, Rejected
from tests.faults import server_faults
from tests.faults.field import HEALED_WITHIN_S, Actor, Field
from tests.faults.proxy import Proxy
from tests.faults.server_faults import DURABLE
from tests.servers import Server

STORM_PER_S = 20
"""So many new connections of one worker in a second are a storm."""

Lasting = Callable[[Server], AbstractContextManager[None]]

own_server = pytest.mark.parametrize("server_args", [("--appendonly", "no")], ids=[""])
durable_server = pytest.mark.parametrize("server_args", [DURABLE], ids=[""])


def healed(field: Field, worker: Actor, n: int) -> None:
    """See new work done by the very process that met the fault, and soon."""
    field.enqueue("nap", n)
    field.until(lambda: field.count("E", n), "I16: work goes on after a fault", within_s=HEALED_WITHIN_S)
    field.until(lambda: field.count("E", pid=worker.pid), "the worker itself has ended a job")
    assert worker.running()


@own_server
def test_F18_a_restart_without_persistence_forgets_and_work_goes_on(field: Field) -> None:
    field.enqueue("nap", *range(20), args=(0.5,))
    worker = field.serving()
    field.until(lambda: field.count("S") >= 10, "some run")
    server_faults.crash(field.server)
    field.jobs.clear()
    healed(field, worker, 100)

    field.drained()
    assert field.totals()["enqueued"] == 1
    assert field.count("S", 100) == 1
    # What ran when it was forgotten came to its end, which nobody could take any more.
    field.until(lambda: field.warnings("came too late"), "its end is refused")


@durable_server
def test_F19_a_restart_with_everything_synced_loses_nothing(field: Field) -> None:
    field.enqueue("nap", *range(100), args=(0.1,))
    field.enqueue("flaky", *range(100, 150))
    field.enqueue("nap", *range(150, 200), delay=0.5)
    worker = field.serving()
    field.until(lambda: field.count("E") >= 20, "some have ended")
    server_faults.crash(field.server)
    healed(field, worker, 1000)

    field.judge()
    assert field.warnings("trying on") >= 1


@pytest.mark.parametrize("server_args", [("--repl-diskless-sync-delay", "0")], ids=[""])
@pytest.mark.parametrize(
    ("fault", "word"),
    [
        (server_faults.demoted, "READONLY"),
        (server_faults.busy, "BUSY"),
        (server_faults.full_disk, "MISCONF"),
        (server_faults.too_few_replicas, "NOREPLICAS"),
    ],
    ids=["F22-readonly", "F23-busy", "F25-misconf", "F26-noreplicas"],
)
def test_a_server_that_refuses_every_write(field: Field, fault: Lasting, word: str) -> None:
    field.enqueue("nap", *range(10), args=(0.3,))
    worker = field.serving()
    field.until(lambda: field.count("S") == 10, "all run")
    app = field.make_app(field.server.url, enqueue_timeout=0.3)
    with fault(field.server):
        [refusal] = field.send(app, field.call("nap", 99))
        field.until(lambda: field.count("E") == 10, "handlers end meanwhile")
        field.until(lambda: field.warnings("trying on"), "the worker says so")
    app.close()
    healed(field, worker, 100)

    field.judge()
    assert isinstance(refusal, NotSent)
    assert word.lower() in str(refusal).lower()
    assert field.count("S", 99) == 0
    assert field.totals()["done"] == 11
    # One line per cause every few seconds, not one per try.
    assert field.warnings("trying on") <= 6


@own_server
def test_F22_a_server_that_still_loads_keeps_workers_waiting(field: Field) -> None:
    with field.server.client() as client:
        client.mset({f"ballast:{n}": "x" * 100 for n in range(3000)})
    running = field.serving()
    field.enqueue("nap", 1)
    field.happens("E", 1)
    loading = server_faults.load_slowly(field.server, 3.0)
    starting = field.worker()
    field.until(lambda: "LOADING" in starting.said() and "LOADING" in running.said(), "both are told to wait")
    loading.join()
    field.jobs.clear()

    healed(field, running, 2)
    field.until(lambda: " serves q " in starting.said(), "the other serves too", within_s=HEALED_WITHIN_S)


def test_F24_with_full_memory_enqueuing_fails_cleanly_and_workers_drain(field: Field) -> None:
    field.enqueue("nap", *range(60), args=(0.05,))
    field.enqueue("flaky", *range(60, 80))
    with server_faults.full_memory(field.server):
        app = field.make_app(field.server.url, enqueue_timeout=0.3)
        [refusal] = field.send(app, field.call("nap", 99))
        app.close()
        worker = field.serving()
        field.judge()
    healed(field, worker, 100)

    assert isinstance(refusal, NotSent)
    assert "OOM" in str(refusal)
    assert field.totals()["retried"] == 20


def test_F24_the_error_of_a_refused_enqueue_has_the_word_of_the_server(field: Field) -> None:
    app = field.make_app(field.server.url, enqueue_timeout=0.2)
    with server_faults.full_memory(field.server), pytest.raises(NotSent) as caught:
        app.kind("nap").enqueue_sync(1)
    app.close()

    assert caught.value.word == "OOM"


def test_F24_a_group_lost_while_memory_is_full_is_made_again(field: Field) -> None:
    field.enqueue("nap", *range(30), args=(0.1,))
    worker = field.serving(concurrency=3)
    field.until(lambda: field.count("S") >= 3, "some run")
    with server_faults.full_memory(field.server):
        server_faults.destroy_group(field.server, field.queue.keys.stream)
        before = sum(field.queue.calls().values())
        field.judge()
        assert sum(field.queue.calls().values()) - before < 2000
    healed(field, worker, 100)


def test_F27_forgotten_scripts_are_told_again(field: Field) -> None:
    """Also case F13."""
    worker = field.serving()
    for round_ in range(20):
        server_faults.flush_scripts(field.server)
        field.enqueue("flaky" if round_ % 2 else "nap", *range(round_ * 10, round_ * 10 + 10))
        server_faults.flush_scripts(field.server)

    field.judge()
    assert (field.totals()["done"], field.count("S")) == (200, 300)
    assert worker.running()
    assert field.warnings("WARNING streamjobs.worker settle") == 0


@pytest.mark.parametrize("fault", ["group", "stream", "everything"])
def test_F36_what_was_deleted_is_made_again_and_work_goes_on(field: Field, fault: str) -> None:
    field.enqueue("nap", *range(20), args=(0.8,))
    worker = field.serving(concurrency=5)
    if fault == "group":
        field.serving()
    field.until(lambda: field.count("S") >= 5, "some run")
    if fault == "group":
        server_faults.destroy_group(field.server, field.queue.keys.stream)
    else:
        field.jobs.clear()
        if fault == "stream":
            server_faults.delete(field.server, field.queue.keys.stream)
        else:
            server_faults.flush_all(field.server)
    healed(field, worker, 100)

    field.drained()
    if fault == "group":
        # Claims are gone, entries are not: all of them are delivered again.
        field.judge()
        assert field.count("S") > 21
    else:
        field.until(lambda: field.warnings("came too late"), "the ends of what ran are refused")
        assert field.count("E", 100) == 1
    assert "Traceback" not in worker.said()


@pytest.mark.parametrize("key", ["stream", "retries", "bell"])
def test_F38_a_key_of_the_wrong_type_ends_the_worker_with_a_clear_word(field: Field, key: str) -> None:
    if key != "stream":
        field.enqueue("flaky", 1)
    name = getattr(field.queue.keys, key)
    server_faults.delete(field.server, name)
    server_faults.wrong_type(field.server, name)
    worker = field.worker()
    code = worker.ended()

    assert code != 0
    assert "WRONGTYPE" in worker.said()
    assert field.queue.command("GET", name) == b"of the wrong type"
    if key == "stream":
        with pytest.raises(Rejected):
            field.app.kind("nap").enqueue_sync(2)


def test_F38_totals_of_the_wrong_type_cost_counts_and_no_job(field: Field) -> None:
    name = field.queue.keys.totals
    field.enqueue("nap", 1)
    server_faults.delete(field.server, name)
    server_faults.wrong_type(field.server, name)
    worker = field.serving()
    healed(field, worker, 2)

    field.happens("E", 1)
    assert field.queue.command("GET", name) == b"of the wrong type"


@durable_server
def test_F49_a_server_that_restarts_again_and_again_meets_no_storm(field: Field, proxy: Proxy) -> None:
    worker = field.serving(proxy.url)
    began, before = time.monotonic(), proxy.connections
    for n in range(5):
        field.enqueue("nap", n)
        server_faults.crash(field.server, away_s=0.4)
    healed(field, worker, 100)

    field.judge()
    connections = proxy.connections - before
    assert 5 <= connections < STORM_PER_S * (time.monotonic() - began)
    assert field.warnings("trying on") >= 1


def test_F49_connections_cut_again_and_again_cost_nothing(field: Field) -> None:
    worker = field.serving()
    cut = 0
    for round_ in range(10):
        field.enqueue("nap", *range(round_ * 10, round_ * 10 + 10))
        cut += server_faults.cut_clients(field.server)
    healed(field, worker, 1000)

    field.judge()
    assert cut >= 10


@pytest.mark.parametrize("fault", ["frozen", "asleep", "paused", "writes-paused"])
def test_F28_a_server_that_stands_still_is_waited_for(field: Field, fault: str) -> None:
    field.enqueue("nap", *range(20), args=(0.1,))
    worker = field.serving(lease=0.3, concurrency=5)
    field.until(lambda: field.count("S") >= 5, "some run")
    began = time.monotonic()
    if fault == "frozen":
        with server_faults.frozen(field.server):
            time.sleep(0.8)
    elif fault == "asleep":
        server_faults.fall_asleep(field.server, 0.8)
    else:
        server_faults.pause_clients(field.server, 0.8, writes_only=fault == "writes-paused")
    healed(field, worker, 100)

    # Not even the test's own job got through before.
    assert time.monotonic() - began > 0.7
    field.judge()
