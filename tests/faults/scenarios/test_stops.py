"""F43, F44: signals, in each phase of a worker's work."""

import signal
import time

import pytest

from tests.faults.field import Actor, Field
from tests.faults.proxy import Act, Proxy, Rule

TERM, INT = signal.SIGTERM, signal.SIGINT
AT_ONCE_S = 2.5
"""What takes a moment may take this long on a busy machine; the grace of these workers is longer."""
GRACE_S = 30


def stopping(field: Field, worker: Actor, number: signal.Signals = TERM) -> float:
    """Send the first signal, and wait until the worker has taken it in; return when it was sent."""
    at = time.monotonic()
    worker.send(number)
    field.until(lambda: "stopping" in worker.said(), "it has taken the signal in")
    return at


def test_F43_idle_it_ends_at_once(field: Field) -> None:
    worker = field.serving(block=5.0, grace=GRACE_S)
    at = stopping(field, worker)

    assert worker.ended() == 0
    assert time.monotonic() - at < AT_ONCE_S


def test_F43_with_its_hands_full_what_has_not_started_goes_back_uncharged_and_at_once(field: Field) -> None:
    """Also case I1: nothing starts after the signal was taken in."""
    field.enqueue("nap", *range(200), args=(0.02,))
    field.enqueue("nap", *range(200, 220), args=(1.0,))
    worker = field.serving(concurrency=2, lease=60, sweep=60, read_ahead=5)
    field.until(lambda: field.count("S") >= 40, "some have run")
    held = len(field.queue.pending())
    stopping(field, worker)
    started = field.count("S")
    assert worker.ended() == 0
    assert field.count("S") == started
    assert field.count("E") == started
    # Only a release can give these to another worker: their lease is a minute.
    field.serving(concurrency=30, lease=60, sweep=60)

    field.judge()
    assert held > 2
    assert (field.count("S"), field.attempts()) == (220, {1})
    assert field.totals()["released"] > 0


def test_F43_a_handler_gets_its_grace_time(field: Field) -> None:
    field.enqueue("nap", 1, args=(0.8,))
    field.enqueue("plain", 2, args=(0.8,))
    worker = field.serving(grace=GRACE_S)
    field.until(lambda: field.count("S") == 2, "both run")
    stopping(field, worker)

    assert worker.ended() == 0
    field.judge()
    assert (field.count("S"), field.totals()["done"]) == (2, 2)


def test_F43_what_outlasts_the_grace_time_starts_elsewhere_at_once_and_uncharged(field: Field) -> None:
    """Also case I2."""
    field.enqueue("nap", 1, args=(3.0,))
    worker = field.serving(grace=0.3, lease=60)
    field.happens("S", 1)
    stopping(field, worker)
    assert worker.ended() == 1
    field.serving(lease=60, sweep=60)
    took = field.happens("S", 1, times=2)

    field.judge()
    assert took < AT_ONCE_S
    assert (field.count("C", 1), field.totals()["released"], field.attempts()) == (1, 1, {1})


def test_F43_in_the_middle_of_a_commit_the_commit_counts(field: Field, proxy: Proxy) -> None:
    late = proxy.add(Rule(Act.DELAY, "complete", seconds=0.5, times=1))
    field.enqueue("nap", 1)
    worker = field.serving(proxy.url, grace=GRACE_S)
    field.until(lambda: late.hits, "the commit is under way")
    stopping(field, worker)

    assert worker.ended() == 0
    field.judge()
    assert (field.count("S"), field.totals()["done"], field.totals()["released"]) == (1, 1, 0)


@pytest.mark.parametrize(("first", "second", "code"), [(TERM, TERM, 143), (INT, TERM, 143), (TERM, INT, 130)])
def test_F44_a_second_signal_ends_it_at_once_and_gives_back_all(
    field: Field, first: signal.Signals, second: signal.Signals, code: int
) -> None:
    field.enqueue("nap", *range(5), args=(1.5,))
    field.enqueue("plain", *range(5, 8), args=(1.5,))
    worker = field.serving(lease=60, grace=GRACE_S)
    field.until(lambda: field.count("S") == 8, "all run")
    stopping(field, worker, first)
    at = time.monotonic()
    worker.send(second)
    assert worker.ended() == code
    assert time.monotonic() - at < AT_ONCE_S
    field.serving(lease=60, sweep=60)

    field.judge()
    # Given back, not acknowledged: each was started once more, and charged nothing.
    assert (field.count("S"), field.totals()["released"], field.totals()["done"]) == (16, 8, 8)
    assert field.attempts() == {1}


def test_F44_a_second_signal_in_a_commit_leaves_no_half_of_it(field: Field, proxy: Proxy) -> None:
    hole = proxy.add(Rule(Act.HOLE, "complete", side="request"))
    field.enqueue("nap", *range(4))
    worker = field.serving(proxy.url, grace=GRACE_S, concurrency=4)
    field.until(lambda: hole.hits and field.count("E") == 4, "the commit is under way")
    stopping(field, worker)
    worker.send(TERM)
    assert worker.ended() == 143
    assert field.totals()["done"] == 0
    field.serving()

    field.judge()
    assert (field.totals()["done"], field.count("S")) == (4, 8)


@pytest.mark.parametrize("times", [1, 2])
def test_F44_a_signal_while_it_starts_is_obeyed(field: Field, proxy: Proxy, times: int) -> None:
    proxy.hold()
    worker = field.worker(proxy.url, grace=GRACE_S)
    field.until(lambda: proxy.connections, "it tries to reach the server")
    at = stopping(field, worker)
    if times == 2:
        worker.send(TERM)
    code = worker.ended()

    # The second one may find it on its way out, with no handler for signals any more.
    assert code in ((0,) if times == 1 else (0, 143, -TERM))
    assert time.monotonic() - at < AT_ONCE_S
    assert "Traceback" not in worker.said()
