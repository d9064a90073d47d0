"""F28 to F30, and every single reply that can be lost: the way between a worker and its server fails."""

import signal
import time

import pytest

from streamjobs import Handle
from tests.faults.field import FAST, HEALED_WITHIN_S, Field
from tests.faults.proxy import Act, Proxy, Rule

LEASE_S: float = FAST["lease"]


def test_F28_a_worker_cut_off_gives_its_jobs_up_and_changes_nothing_later(field: Field, proxy: Proxy) -> None:
    field.enqueue("nap", *range(5), args=(1.5,))
    cut_off = field.serving(proxy.url)
    field.until(lambda: field.count("S") == 5, "all run")
    proxy.hold()
    field.until(lambda: field.count("C", pid=cut_off.pid) == 5, "its handlers are told", within_s=LEASE_S + 2)
    field.serving()
    field.until(lambda: field.count("E") == 5, "all end elsewhere")
    before = field.totals()
    proxy.release()
    field.until(lambda: "trying on" in cut_off.said(), "it says that it was cut off")

    field.judge()
    assert field.warnings("could not be renewed in time") == 5
    assert (before["reclaimed"], field.totals()["done"], field.totals()["dead"]) == (5, 5, 0)
    assert [entry.detail for entry in field.journal() if entry.word == "C"] == ["lost"] * 5
    assert cut_off.running()


def test_F28_a_success_from_behind_the_cut_that_comes_too_late_is_refused(field: Field, proxy: Proxy) -> None:
    field.enqueue("plain", *range(3), args=(1.0,))
    cut_off = field.serving(proxy.url)
    field.until(lambda: field.count("S") == 3, "all run")
    proxy.hold()
    field.serving()
    field.until(lambda: field.count("E") == 6, "all end twice, once on each side")
    proxy.release()
    field.until(lambda: "came too late" in cut_off.said() or field.totals()["lost"], "it is refused")

    field.judge()
    # Some may have learned of it before their end; and a refusal whose reply comes too late is asked for once more.
    assert (field.totals()["done"], field.totals()["lost"] >= 1) == (3, True)


def test_F28_a_short_cut_is_not_noticed(field: Field, proxy: Proxy) -> None:
    field.enqueue("nap", *range(20), args=(0.3,))
    worker = field.serving(proxy.url, lease=1.5)
    field.until(lambda: field.count("S") >= 10, "some run")
    proxy.hold()
    time.sleep(0.4)
    assert field.totals()["done"] == 0
    proxy.release()

    field.judge()
    assert (field.count("S"), field.totals()["reclaimed"]) == (20, 0)
    assert worker.running()


@pytest.mark.parametrize("name", ["xreadgroup", "complete", "promote", "blpop"])
def test_F29_a_silent_connection_is_found_out_and_replaced(field: Field, proxy: Proxy, name: str) -> None:
    hole = proxy.add(Rule(Act.HOLE, name, times=1, skip=1))
    field.enqueue("nap", *range(10), args=(0.8,))
    field.enqueue("nap", *range(10, 20), delay=0.3)
    worker = field.serving(proxy.url, lease=0.6)
    field.until(lambda: hole.hits, "a reply is swallowed")

    field.judge()
    assert worker.running()
    assert field.count("S") == 20
    # What was delivered into a hole comes back by a sweep.
    assert (field.totals()["reclaimed"] > 0) == (name == "xreadgroup")


def test_F29_a_swallowed_renewal_is_repeated_before_the_lease_ends(field: Field, proxy: Proxy) -> None:
    hole = proxy.add(Rule(Act.HOLE, "renew", times=1))
    field.enqueue("nap", *range(10), args=(2.5,))
    field.serving(proxy.url, lease=1.5, reply_s=10.0)
    field.until(lambda: hole.hits, "a reply is swallowed")
    field.serving(lease=1.5)

    field.judge()
    assert field.count("S") == 10
    assert field.warnings("could not be renewed in time") == 0


def test_F28_a_worker_cut_off_learns_it_by_its_own_clock_at_the_end_of_the_lease(field: Field, proxy: Proxy) -> None:
    field.enqueue("nap", 1, args=(20.0,))
    field.serving(proxy.url, reply_s=10.0)
    field.happens("S", 1)
    proxy.hold()
    field.happens("C", 1, within_s=LEASE_S + 2)


def test_F29_with_two_workers_a_silent_connection_delays_nothing_by_more_than_a_lease(
    field: Field, proxy: Proxy
) -> None:
    hole = proxy.add(Rule(Act.HOLE, "xreadgroup", skip=2))
    deaf = field.serving(proxy.url, reply_s=5.0)
    field.until(lambda: hole.hits, "it waits behind a hole")
    field.enqueue("nap", *range(10))
    field.until(lambda: len(field.queue.pending()) == 10, "all are delivered into the hole")
    field.serving()
    took = field.until(lambda: field.count("E") == 10, "all run elsewhere", within_s=HEALED_WITHIN_S)

    field.judge()
    assert took < LEASE_S + FAST["sweep"] + 2
    assert (field.totals()["reclaimed"], field.count("S", pid=deaf.pid)) == (10, 0)


def test_F30_replies_in_slices_and_spikes_break_and_double_nothing(field: Field, proxy: Proxy) -> None:
    spikes = proxy.add(Rule(Act.DELAY, every=12, seconds=0.5))
    slices = [proxy.add(Rule(Act.SLICE, side="reply", every=2)), proxy.add(Rule(Act.SLICE, side="request"))]
    app = field.make_app(proxy.url)
    for n in range(20):
        field.send(app, field.call("nap", n, 0.2))
    field.send(app, field.call("nap", 20, delay=0.2))
    app.close()
    field.serving(proxy.url, lease=2.0)

    field.judge()
    assert (field.count("S"), field.totals()["reclaimed"]) == (21, 0)
    assert spikes.hits >= 3
    assert all(rule.hits > 10 for rule in slices)
    assert field.warnings("Traceback") == 0


@pytest.mark.parametrize("name", "join xreadgroup complete retry snooze bury renew promote".split())
def test_each_lost_reply_loses_and_doubles_nothing(field: Field, proxy: Proxy, name: str) -> None:
    lost = proxy.add(Rule(Act.DROP, name, times=3))
    field.enqueue("nap", *range(10), args=(0.4,))
    field.enqueue("flaky", *range(10, 20))
    field.enqueue("ends", *range(20, 30), args=("snooze",))
    field.enqueue("ends", *range(30, 35), args=("bury",))
    field.enqueue("nap", *range(35, 40), delay=0.3)
    worker = field.serving(proxy.url)

    field.judge(dead=range(30, 35))
    assert lost.hits >= 1
    assert worker.running()
    assert field.totals()["done"] == 35
    assert field.count("S") == 60


def test_F29_claims_lost_with_their_reply_are_charged_nothing(field: Field, proxy: Proxy) -> None:
    lost = proxy.add(Rule(Act.DROP, "xreadgroup", times=1))
    field.enqueue("nap", *range(10))
    field.serving(proxy.url)

    field.judge()
    assert (lost.hits, field.totals()["reclaimed"], field.count("S")) == (1, 10, 10)
    assert field.attempts() == {1}


def test_a_lost_reply_to_a_release_gives_back_once(field: Field, proxy: Proxy) -> None:
    lost = proxy.add(Rule(Act.DROP, "release", times=2))
    field.enqueue("nap", *range(10), args=(1.0,))
    worker = field.serving(proxy.url, lease=60, grace=0)
    field.until(lambda: field.count("S") == 10, "all run")
    worker.send(signal.SIGTERM)
    assert worker.ended() == 1
    field.serving(lease=60, sweep=60)

    field.judge()
    assert (lost.hits, field.totals()["released"], field.count("S"), field.attempts()) == (2, 10, 20, {1})


def test_a_late_copy_of_a_release_frees_nothing(field: Field, proxy: Proxy) -> None:
    late = proxy.add(Rule(Act.DELAY, "release", side="request", seconds=0.8, times=1, then=proxy.cut))
    field.enqueue("nap", 1, args=(1.6,))
    worker = field.worker(proxy.url, armed="worker.after_claim=stop@1", sweep=60)
    field.until(worker.stopped, "it freezes")
    field.until(lambda: field.queue.pending()[0][2] > FAST["lease"] * 1000, "its claim expires")
    worker.send(signal.SIGCONT)
    # It gives the claim back in a second call and takes it again; the first call comes while it runs the job.
    field.happens("E", 1)

    assert late.hits == 1
    assert field.totals()["released"] == 1, "I5: a late release counted, and freed what its sender runs again"
    field.judge()
    assert field.count("S") == 1


def test_a_lost_reply_to_a_take_costs_a_lease(field: Field, proxy: Proxy) -> None:
    lost = proxy.add(Rule(Act.DROP, "take", times=2))
    field.enqueue("nap", *range(10), args=(3.0,))
    first = field.serving(grace=0)
    field.until(lambda: field.count("S") == 10, "all run")
    field.serving(proxy.url, sweep=2.0)
    first.send(signal.SIGTERM)
    assert first.ended() == 1

    field.judge()
    assert lost.hits >= 1
    assert (field.totals()["released"], field.count("S")) == (10, 20)


def test_every_seventh_reply_lost_loses_and_doubles_nothing(field: Field, proxy: Proxy) -> None:
    lost = proxy.add(Rule(Act.DROP, every=7))
    app = field.make_app(proxy.url, enqueue_timeout=10)
    kinds = ("nap", "flaky", "plain")
    sent = [field.send(app, field.call(kinds[n % 3], n))[0] for n in range(60)]
    app.close()
    worker = field.serving(proxy.url)

    field.judge()
    assert len({handle.id for handle in sent if isinstance(handle, Handle)}) == field.totals()["enqueued"] == 60
    assert lost.hits >= 10
    assert worker.running()
