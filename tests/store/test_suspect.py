"""suspect: starts that never ended are counted per entry; release takes back, settling forgets.

A first start is not marked: that it was one follows from the second delivery. So the number of
crashes is 1 + marks, and a first delivery that was given back stands as -1.
"""

from streamjobs.core.job import Claim
from tests.store.support import Store, death, later


def crashes(claim: Claim) -> int:
    """Return how many starts of this entry never ended, as a worker reckons."""
    return claim.marks + (claim.deliveries > 1)


def suspects(store: Store) -> list[str]:
    return list(store.hash(store.keys.suspects).values())


def test_three_crashes_are_three(store: Store) -> None:
    """The first presumed, the second in company, the third alone."""
    [first] = store.started(1)
    [second] = store.retaken([first], "a", "b")
    store.suspect(second, consumer="b", clock="200")
    [third] = store.retaken([second], "b", "c")
    store.suspect(third, consumer="c", clock="300")
    [fourth] = store.retaken([third], "c", "d")

    assert [crashes(claim) for claim in (first, second, third, fourth)] == [0, 1, 2, 3]
    presumed, *marked = fourth.starts.split(" ")
    assert presumed.startswith("a@")
    assert marked == ["b@200/2", "c@300/3"]


def test_one_that_lost_its_claim_is_not_marked(store: Store) -> None:
    [first] = store.started(1)
    [second] = store.retaken([first], "a", "b")
    [third] = store.retaken([second], "b", "c")

    assert store.suspect(second, third, consumer="b") == {0: "LOST", 1: "LOST"}
    assert suspects(store) == []


def test_call_sent_again_marks_a_start_once(store: Store) -> None:
    [claim] = store.retaken(store.started(1))

    assert store.suspect(claim, consumer="b") == {}
    assert store.suspect(claim, consumer="b") == {}

    [again] = store.retaken([claim], "b", "c")
    assert crashes(again) == 2


def test_release_takes_a_mark_back_with_its_start(store: Store) -> None:
    """A deploy is not a crash: neither does it add, nor does it reset."""
    [first] = store.started(1)
    [second] = store.retaken([first], "a", "b")
    store.suspect(second, consumer="b", clock="200")

    store.release(second, consumer="b", mark=1)

    [third] = store.take("c")
    assert crashes(third) == 1
    assert third.starts.startswith("a@")
    assert "b@" not in third.starts


def test_release_of_a_first_delivery_counts_minus_one(store: Store) -> None:
    """Else its start, which ended well, would be presumed a crash."""
    [first] = store.started(1)
    store.release(first, mark=1)
    [second] = store.take("b")

    assert suspects(store) == ["-1 0"]
    assert crashes(second) == 0

    store.suspect(second, consumer="b", clock="200")
    [third] = store.retaken([second], "b", "c")

    assert crashes(third) == 1
    assert third.starts == "b@200/2"


def test_release_again_and_again_charges_nothing(store: Store) -> None:
    [claim] = store.started(1)
    store.release(claim, mark=1)
    for n in range(5):
        [claim] = store.take(f"w{n}")
        store.suspect(claim, consumer=f"w{n}")
        store.release(claim, consumer=f"w{n}", mark=1)

    [last] = store.take("b")

    assert crashes(last) == 0
    assert (last.marks, last.starts) == (-1, "")


def test_release_of_an_unstarted_claim_takes_no_mark_back(store: Store) -> None:
    [first] = store.started(1)
    [second] = store.retaken([first], "a", "b")
    store.suspect(second, consumer="b")
    [third] = store.retaken([second], "b", "c")

    store.release(third, consumer="c")

    [fourth] = store.take("d")
    assert crashes(fourth) == 2


def test_unmarked_later_deliveries_do_not_charge(store: Store) -> None:
    """Claims that were read ahead and never started, by workers that then died."""
    claims = store.started(1)
    for holder, consumer in ("ab", "bc", "cd"):
        claims = store.retaken(claims, holder, consumer)

    assert crashes(claims[0]) == 1


def test_waits_for_a_process_of_its_own_are_counted(store: Store) -> None:
    [claim] = store.retaken(store.started(1))
    for n in range(3):
        store.release(claim, consumer="b" if n == 0 else f"w{n}", alone=True)
        [claim] = store.take(f"w{n + 1}")

    assert (claim.releases, crashes(claim)) == (3, 1)


def test_start_of_another_is_not_taken_back(store: Store) -> None:
    """Given back by one that recorded no start: those on record stay."""
    [first] = store.started(1)
    [second] = store.retaken([first], "a", "b")
    store.suspect(second, consumer="b", clock="200")
    [third] = store.retaken([second], "b", "c")

    store.release(third, consumer="c", mark=1)

    [fourth] = store.take("d")
    assert fourth.starts.endswith(" b@200/2")


def test_complete_bury_cancel_retry_and_snooze_forget(store: Store) -> None:
    claims = store.retaken(store.started(5))
    store.suspect(*claims, consumer="b")
    assert len(suspects(store)) == 5

    store.complete(claims[0])
    store.bury(death(claims[1]), consumer="b")
    store.cancel(claims[2].entry.decode())
    store.retry(later(claims[3]), consumer="b")
    store.snooze(later(claims[4]), consumer="b")

    assert suspects(store) == []


def test_fresh_jobs_leave_no_trace(store: Store) -> None:
    store.complete(*store.started(5))

    assert suspects(store) == []


def test_a_new_entry_of_the_same_job_starts_anew(store: Store) -> None:
    """The worker carries what was counted in the meta."""
    [claim] = store.retaken(store.started(1))
    store.suspect(claim, consumer="b")
    store.retry(later(claim, 1, crashes=1), consumer="b")
    store.promote(clock="9000000000000")

    [again] = store.claim("c")

    assert (again.deliveries, again.marks) == (1, 0)
    assert b'"c":1' in again.meta
