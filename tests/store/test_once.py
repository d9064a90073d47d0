"""once, record: who may have an effect, and what those are told who come later."""

from typing import Any

import pytest

from streamjobs.core.errors import Unavailable
from streamjobs.core.job import Claim
from streamjobs.protocol import effects
from streamjobs.protocol.effects import Begun
from tests.store.support import CLOCK, LEASE_MS, Store, job_of, later

KEY = "email:42:welcome"
KEEP_MS = 60_000


class Runs:
    """Runs of one queue that guard an effect."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._tokens = 0

    def begin(
        self, claim: Claim, consumer: str = "a", *, take_over: bool = True, token: str = "", clock: str = ""
    ) -> Begun:
        self._tokens += 1
        run = effects.Run(consumer, claim.entry, job_of(claim), token or f"{self._tokens:x}")
        call = effects.once(
            self.store.keys, KEY, run, lease_ms=LEASE_MS, keep_ms=KEEP_MS, take_over=take_over, clock=clock
        )
        return self.store.run(call)

    def record(self, claim: Claim, value: bytes = b"null") -> str:
        return self.store.run(effects.record(self.store.keys, KEY, job_of(claim), value, KEEP_MS))

    def mark(self) -> Any:
        return self.store.command("GET", self.store.keys.once(KEY))


@pytest.fixture
def runs(store: Store) -> Runs:
    return Runs(store)


def test_recorded_effect_is_told_to_all_with_its_value(store: Store, runs: Runs) -> None:
    first, other = store.started(2)

    assert runs.begin(first) == Begun("BEGUN")
    assert runs.record(first, b'{"id": "m-1"}') == "OK"

    assert runs.begin(first) == runs.begin(other) == Begun("DONE", b'{"id": "m-1"}')
    assert KEEP_MS - 10_000 < store.command("PTTL", store.keys.once(KEY)) <= KEEP_MS


def test_first_record_stays(store: Store, runs: Runs) -> None:
    first, other = store.started(2)
    runs.begin(first)
    runs.record(first, b"1")

    assert runs.record(other, b"2") == "DONE"
    assert runs.begin(other) == Begun("DONE", b"1")


def test_same_token_again_gets_the_same_answer(store: Store, runs: Runs) -> None:
    """A begin whose reply was lost is sent again."""
    first, other = store.started(2)

    assert runs.begin(first, token="aa") == runs.begin(first, token="aa") == Begun("BEGUN")
    store.retry(later(first))
    assert runs.begin(other, token="bb").word == runs.begin(other, token="bb").word == "UNSURE"
    assert runs.begin(other, token="bb", take_over=False).word == "UNSURE"


def test_while_one_run_is_at_it_no_other_begins(store: Store, runs: Runs) -> None:
    first, other = store.started(2)
    runs.begin(first)
    mark = runs.mark()

    assert runs.begin(other) == Begun("UNDERWAY", job=job_of(first))
    assert runs.mark() == mark


def test_run_that_has_ended_without_a_record_leaves_it_unsure(store: Store, runs: Runs) -> None:
    first, other = store.started(2)
    runs.begin(first, clock=str(CLOCK))
    store.retry(later(first))
    unsure = Begun("UNSURE", job=job_of(first), at_ms=CLOCK)

    assert runs.begin(other, take_over=False) == unsure
    assert runs.begin(other, take_over=False) == unsure
    assert runs.begin(other, take_over=True) == unsure
    assert runs.begin(other, take_over=False).job == job_of(other), "now it is this one's"


def test_silent_holder_counts_as_dead_after_a_lease(store: Store, runs: Runs) -> None:
    first, other = store.started(2)
    runs.begin(first)
    store.silence([first], ms=LEASE_MS - 5000)
    assert runs.begin(other).word == "UNDERWAY"

    store.silence([first], ms=LEASE_MS)

    assert runs.begin(other).word == "UNSURE"


def test_taken_over_run_is_unsure_of_its_past(store: Store, runs: Runs) -> None:
    [claim] = store.started(1)
    runs.begin(claim)
    [taken] = store.retaken([claim])

    begun = runs.begin(taken, "b")

    assert (begun.word, begun.job) == ("UNSURE", job_of(claim))


def test_claim_that_its_own_worker_swept_is_still_under_way(store: Store, runs: Runs) -> None:
    """The worker's running execution adopts the new delivery count."""
    first, other = store.started(2)
    runs.begin(first)
    store.silence([first])
    [swept] = store.sweep("a")
    assert swept.deliveries == 2

    assert runs.begin(other).word == "UNDERWAY"


def test_run_that_begins_again_is_unsure_of_its_own_first_try(store: Store, runs: Runs) -> None:
    """Its block raised, and the handler caught that."""
    [claim] = store.started(1)
    runs.begin(claim)

    assert runs.begin(claim, take_over=False).word == "UNSURE"


def test_who_lost_the_job_begins_nothing(store: Store, runs: Runs) -> None:
    taken, ended, fresh = store.started(3)
    store.retaken([taken])
    store.complete(ended)

    assert [runs.begin(one).word for one in (taken, ended)] == ["LOST", "LOST"]
    assert runs.begin(fresh, "b").word == "LOST"
    assert runs.mark() is None


def test_without_a_group_nothing_is_begun(store: Store, runs: Runs) -> None:
    """Who holds what is not known before it is there again."""
    [claim] = store.started(1)
    store.lose_group()

    with pytest.raises(Unavailable) as caught:
        runs.begin(claim)

    assert caught.value.word == "NOGROUP"
    assert runs.mark() is None
    assert runs.record(claim) == "OK", "what has happened is recorded all the same"


def test_unrecorded_mark_ends_with_its_time(store: Store, runs: Runs) -> None:
    [claim] = store.started(1)
    runs.begin(claim)
    assert KEEP_MS - 10_000 < store.command("PTTL", store.keys.once(KEY)) <= KEEP_MS

    store.command("DEL", store.keys.once(KEY))

    assert runs.record(claim) == "OK"


def test_values_are_kept_byte_by_byte(store: Store, runs: Runs) -> None:
    [claim] = store.started(1)
    value = '{"a": "line\\nbreak", "ö": " done 1 x  ", "n": 12345678901234567890}\n'.encode()
    runs.begin(claim)
    runs.record(claim, value)

    assert runs.begin(claim).value == value
