"""F11 to F15: a process, or a handler, stands still for longer than its lease, and goes on."""

import signal

import pytest

from tests.faults.field import FAST, Actor, Field

LEASE_S: float = FAST["lease"]


def wake(zombie: Actor) -> None:
    zombie.send(signal.SIGCONT)


def freezes(field: Field, zombie: Actor) -> None:
    field.until(zombie.stopped, "it freezes")


@pytest.mark.parametrize("how", ["retry", "snooze", "bury"])
def test_F11_a_zombie_can_write_nothing_but_a_success(field: Field, how: str) -> None:
    field.enqueue("ends", 1, args=(how,))
    zombie = field.worker(armed="settle.before=stop@1")
    freezes(field, zombie)
    field.serving()
    field.happens("E", 1)
    field.drained()
    before = field.totals()
    wake(zombie)
    field.until(lambda: "came too late" in zombie.said(), "the zombie is refused")

    field.judge()
    assert f"{how} of job" in zombie.said()
    after = field.totals()
    assert (after.pop("lost"), before["reclaimed"], field.count("S")) == (1, 1, 2)
    assert after == before


def test_F11_nor_while_the_other_still_runs_the_job(field: Field) -> None:
    field.enqueue("ends", 1, args=("retry", 1.0))
    zombie = field.worker(armed="settle.before=stop@1")
    freezes(field, zombie)
    field.serving()
    field.happens("S", 1, times=2)
    wake(zombie)
    field.until(lambda: "came too late" in zombie.said() or field.totals()["retried"], "the zombie has its answer")

    field.judge()
    assert (field.count("S"), field.totals()["done"], field.totals()["retried"]) == (2, 1, 0)


def test_F11_a_zombies_success_counts_if_it_comes_first_and_the_other_is_told(field: Field) -> None:
    field.enqueue("ends", 1, args=("return", 30.0))
    zombie = field.worker(armed="settle.before=stop@1")
    freezes(field, zombie)
    other = field.serving()
    field.happens("S", 1, times=2)
    wake(zombie)
    field.drained(within_s=3)
    field.until(
        lambda: "cancelled, or ended elsewhere" in other.said() or "taken it over" in other.said(), "it is told"
    )

    field.judge()
    assert (field.totals()["done"], field.totals()["reclaimed"]) == (1, 1)
    assert (field.count("E", 1, zombie.pid), field.count("C", 1, other.pid)) == (1, 1)


@pytest.mark.parametrize("kind", ["nap", "plain"])
def test_F11_a_zombies_handler_is_told_that_its_run_is_lost(field: Field, kind: str) -> None:
    """Also case B2: the other, which still runs, stays the holder."""
    field.enqueue(kind, 1, args=(2.0,))
    zombie = field.serving()
    field.happens("S", 1)
    zombie.send(signal.SIGSTOP)
    other = field.serving()
    field.happens("S", 1, times=2)
    wake(zombie)
    word = "C" if kind == "nap" else "E"
    field.until(lambda: field.count(word, 1, zombie.pid), "the zombie's handler ends", within_s=6)

    field.judge()
    told = [entry.detail for entry in field.journal() if (entry.word, entry.pid) == (word, zombie.pid)]
    assert told == ["lost"]
    assert (field.totals()["reclaimed"], field.totals()["done"]) == (1, 1)
    # A plain function goes on all the same, and its success counts if it comes first.
    assert field.count("E", 1, other.pid) == 1 or kind == "plain"


def test_F12_claims_that_expired_before_their_start_do_not_start(field: Field) -> None:
    field.enqueue("nap", *range(30))
    zombie = field.worker(armed="worker.after_claim=stop@1", concurrency=30)
    freezes(field, zombie)
    field.serving(concurrency=30)
    field.drained()
    wake(zombie)
    field.enqueue("nap", *range(100, 130))

    field.judge()
    assert [entry.n for entry in field.journal() if entry.pid == zombie.pid and entry.n < 30] == []
    assert field.totals()["reclaimed"] == 30


def test_F13_a_handler_that_blocks_the_loop_keeps_all_leases(field: Field) -> None:
    """Also case A10."""
    field.enqueue("nap", *range(5), args=(0.3,))
    field.enqueue("blocks", 10, args=(LEASE_S * 4,))
    field.serving()
    field.happens("S", 10)
    rival = field.serving()

    field.judge()
    assert (field.count("S"), field.totals()["reclaimed"]) == (6, 0)
    assert field.count("S", pid=rival.pid) == 0
    assert field.warnings("event loop") >= 1


def test_F13_a_handler_that_holds_the_interpreter_loses_its_lease_and_nothing_else(field: Field) -> None:
    # Long enough for the other to start meanwhile, also on a busy machine.
    field.enqueue("holds_gil", 1, args=(LEASE_S * 6,))
    field.enqueue("nap", 2, args=(LEASE_S,))
    field.serving()
    field.happens("S", 1)
    field.serving()

    field.judge()
    assert field.totals()["reclaimed"] >= 1
    assert field.count("S", 1) == 2
    field.until(lambda: field.totals()["lost"], "the second of the two successes is refused")
    assert field.totals()["done"] == 2


def test_F14_a_job_far_longer_than_its_lease_starts_once(field: Field) -> None:
    """Ten times longer."""
    field.enqueue("nap", 1, args=(3.0,))
    field.enqueue("plain", 2, args=(3.0,))
    field.serving(lease=0.3)
    field.until(lambda: field.count("S") == 2, "both run")
    field.serving(lease=0.3)

    field.judge()
    assert (field.count("S"), field.totals()["reclaimed"]) == (2, 0)


def test_F15_a_handler_over_its_time_is_cancelled_and_charged(field: Field) -> None:
    field.enqueue("overdue", 1)
    field.serving()

    field.judge()
    assert field.count("S", 1) == 2
    assert (field.totals()["retried"], field.warnings("fails, again in")) == (1, 1)
