"""The producer for many threads in trouble: lost replies, servers that stay away, forks, Ctrl-C, a forgotten close."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from streamjobs import NotSent, OutcomeUnknown, UsageError
from tests.faults.proxy import Act, Proxy, Rule
from tests.producer.support import SOON_S, Gate, MakeApp, Queue, body

ROOT = Path(__file__).parents[2]


@pytest.fixture
def proxy(server_url: str) -> Iterator[Proxy]:
    with Proxy(server_url) as proxy:
        yield proxy


def test_cancelled_futures_make_room_while_the_server_is_away(apps: MakeApp, proxy: Proxy, queue: Queue) -> None:
    app = apps(proxy.url)
    with app.producer(max_waiting=3) as producer:
        producer.submit(app.kind("note").call(0)).result(SOON_S)
        proxy.go_away()
        proxy.cut()
        tried = producer.submit(app.kind("note").call(1))
        while not tried.running():
            assert not wait([tried], 0.01).done
        waiting = [producer.submit(app.kind("note").call(n)) for n in (2, 3)]

        assert [future.cancel() for future in waiting] == [True, True]
        assert wait(waiting, SOON_S).not_done == set()
        late = producer.submit(app.kind("note").call(4), timeout=SOON_S)
        proxy.heal()

    assert [tried.result(0).id, late.result(0).id] == [f"q:{one}" for one in queue.waiting()[1:]]


def test_case_B7_a_batch_whose_reply_was_lost_is_there_once(apps: MakeApp, proxy: Proxy, queue: Queue) -> None:
    app = apps(proxy.url)
    with app.producer() as producer:
        producer.submit(app.kind("note").call(0)).result(SOON_S)
        cuts = proxy.add(Rule(Act.DROP, "enqueue", times=2))
        futures = [producer.submit(app.kind("note").call(n)) for n in range(1, 700)]

    assert cuts.hits == 2
    assert [future.result(0).id for future in futures] == [f"q:{one}" for one in queue.waiting()[1:]]


def test_an_unknown_outcome_is_found_out_by_its_retry(apps: MakeApp, proxy: Proxy, queue: Queue) -> None:
    app = apps(proxy.url)
    with app.producer(enqueue_timeout=0.3) as producer:
        producer.submit(app.kind("note").call(0)).result(SOON_S)
        proxy.add(Rule(Act.DROP, "enqueue", times=1, then=proxy.go_away))
        unknown = [producer.submit(app.kind("note").call(n)) for n in (1, 2)]
        errors = [future.exception(SOON_S) for future in unknown]
        late = producer.submit(app.kind("note").call(3)).exception(SOON_S)
        proxy.away = False
        # The first may have gone alone; the second was then surely not sent.
        assert isinstance(errors[0], OutcomeUnknown)
        handles = [one.retry() for one in errors if isinstance(one, OutcomeUnknown)]

    assert isinstance(late, NotSent)
    assert [handle.id for handle in handles] == [f"q:{one}" for one in queue.waiting()[1:]]


def test_a_server_that_stays_away_means_not_sent_at_each_jobs_own_deadline(apps: MakeApp, proxy: Proxy) -> None:
    app = apps(proxy.url)
    proxy.go_away()
    with app.producer(enqueue_timeout=0.3) as producer:
        futures = [producer.submit(app.kind("note").call(n)) for n in range(1000)]

    assert all(isinstance(future.exception(0), NotSent) for future in futures)


def test_a_jobs_time_counts_from_its_submit(apps: MakeApp, server_url: str, queue: Queue, gate: Gate) -> None:
    with apps(server_url).producer(enqueue_timeout=1) as producer:
        first = producer.submit(apps(server_url).kind("note").call(1))
        assert gate.reached.wait(SOON_S)
        second = producer.submit(apps(server_url).kind("note").call(2))
        assert not wait([second], 1.1).done
        gate.open()

    assert first.result(0).id == f"q:{queue.waiting()[0]}"
    assert isinstance(second.exception(0), NotSent)
    assert queue.bodies() == [body(1)]


def test_close_is_bounded_and_tells_what_became_of_the_rest(
    apps: MakeApp, proxy: Proxy, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    app = apps(proxy.url)
    producer = app.producer(enqueue_timeout=600)
    producer.submit(app.kind("note").call(0)).result(SOON_S)
    lost = threading.Event()

    def go_away() -> None:
        proxy.go_away()
        lost.set()

    proxy.add(Rule(Act.DROP, "enqueue", times=1, then=go_away))
    sent = producer.submit(app.kind("note").call(1))
    assert lost.wait(SOON_S)
    waiting = [producer.submit(app.kind("note").options(queue="other").call(n)) for n in range(2, 1000)]

    producer.close(timeout=0.2)

    assert isinstance(sent.exception(0), OutcomeUnknown)
    assert {type(future.exception(0)) for future in waiting} == {NotSent}
    assert "of 999 jobs it is not known that they were enqueued" in caplog.text
    proxy.away = False
    assert sent.exception(0).retry().id == f"q:{queue.waiting()[1]}"  # type: ignore[union-attr]


def test_a_closed_producer_takes_no_more(apps: MakeApp, url: str, gate: Gate) -> None:
    note = apps(url).kind("note")
    producer = apps(url).producer(max_waiting=1)
    producer.submit(note.call(1))
    with ThreadPoolExecutor(2) as pool:
        waits = pool.submit(producer.submit, note.call(2))
        assert not wait([waits], 0.05).done
        closing = pool.submit(producer.close)
        with pytest.raises(UsageError, match="this producer is closed, nothing was enqueued"):
            waits.result(SOON_S)
        gate.open()
        closing.result(SOON_S)
    producer.close()

    with pytest.raises(UsageError, match="closed"):
        producer.submit(note.call(3))


def test_an_odd_error_while_sending_leaves_nobody_waiting(
    apps: MakeApp, url: str, failpoint: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def raise_once() -> None:
        failpoint("producer.before_send", None)
        raise MemoryError

    failpoint("producer.before_send", raise_once)
    with apps(url).producer() as producer:
        future = producer.submit(apps(url).kind("note").call(1))
        assert isinstance(future.exception(SOON_S), OutcomeUnknown)
        assert producer.submit(apps(url).kind("note").call(2)).result(SOON_S).status_sync().state == "waiting"

    assert "sending to q failed" in caplog.text


def test_a_child_begins_with_an_empty_buffer(apps: MakeApp, url: str, gate: Gate) -> None:
    """Seen from within: what `os.fork` would call in the child."""
    producer = apps(url).producer()
    producer.submit(apps(url).kind("note").call(1))
    before = producer._couriers
    assert gate.reached.wait(SOON_S)

    producer.after_fork()

    assert producer.flush(0)
    assert producer._couriers == {}
    gate.open()
    for courier in before.values():
        courier.stop()
        courier.thread.join()
    producer.close()


FORKS = """
import os, sys
from tests.producer.support import make_app
app = make_app(sys.argv[1], sys.argv[2])
note, producer = app.kind("note"), app.producer()
futures = [producer.submit(note.call(n)) for n in range(300)]
if pid := os.fork():
    ids = [future.result(60).id for future in futures]
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
else:
    with producer:
        futures = [producer.submit(note.call(n)) for n in range(1000, 1300)]
    ids = [future.result(0).id for future in futures]
os.write(1, "".join(f"{one}\\n" for one in ids).encode())
if not pid:
    os._exit(0)
"""

FORGETS = """
import sys
from tests.producer.support import make_app
app = make_app(sys.argv[1], sys.argv[2])
producer = app.producer()
for n in range(3000):
    producer.submit(app.kind("note").call(n))
"""


def run(program: str, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", program, *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONDEVMODE": ""},
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_fork_enqueues_each_job_once(server_url: str, namespace: str, queue: Queue) -> None:
    told = run(FORKS, server_url, namespace).split()

    assert len(told) == 600
    assert sorted(told) == sorted(f"q:{one}" for one in queue.waiting())
    assert len(set(queue.bodies())) == 600
    assert len(queue.producers()) == 2


def test_a_program_that_forgets_to_close_still_sends_all(server_url: str, namespace: str, queue: Queue) -> None:
    run(FORGETS, server_url, namespace)

    assert queue.bodies() == [body(n) for n in range(3000)]


def test_ctrl_c_in_the_block_still_sends_what_was_handed_over(apps: MakeApp, url: str, queue: Queue) -> None:
    futures = []

    def work() -> None:
        with apps(url).producer() as producer:
            futures.append(producer.submit(apps(url).kind("note").call(1)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()

    assert futures[0].result(0).id == f"q:{queue.waiting()[0]}"


def test_ctrl_c_while_waiting_for_room_hands_over_nothing(
    apps: MakeApp, url: str, queue: Queue, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: Any) -> bool:
        raise KeyboardInterrupt

    with apps(url).producer(max_waiting=1) as producer:
        producer.submit(apps(url).kind("note").call(1))
        with monkeypatch.context() as patch:
            patch.setattr(producer._room, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                producer.submit(apps(url).kind("note").call(2))
        gate.open()

    assert queue.bodies() == [body(1)]
