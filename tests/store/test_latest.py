"""The mode Latest: the newest arguments replace those of what waits, and follow what runs, once."""

from typing import Any

import pytest

from streamjobs.core.codec import encode_meta
from streamjobs.core.job import LATEST, Claim, Job, Meta
from streamjobs.protocol import intake, letters, settle
from streamjobs.protocol.leases import Begun
from tests.store.support import CLOCK, Store, death, delayed, ending, job, job_of, later

NEWEST: dict[str, Any] = {"dedupe_key": "k", "dedupe_mode": LATEST}
OWNED: dict[str, Any] = {"dedupe_key": "k"}


def newest(store: Store, *numbers: int, **meta: Any) -> list[str]:
    return store.enqueue(*(job(n, **NEWEST, **meta) for n in numbers))


def running(store: Store, n: int = 1) -> Claim:
    """Let a job with these arguments run at consumer a."""
    newest(store, n)
    return begin(store)


def begin(store: Store) -> Claim:
    [claim] = store.claim()
    [begun] = store.start(claim)
    assert begun is not None
    return claim


def end(store: Store, claim: Claim, how: str, newer: int = 0) -> None:
    match how:
        case "done":
            assert store.complete_full(ending(claim, **OWNED, newer=newer)) == {}
        case "dead":
            assert store.bury(death(claim, **OWNED)) == {}
        case "cancelled by its handler":
            assert store.run(settle.cancel(store.keys, "a", [ending(claim, **OWNED)])) == ["RUNNING"]


def holder(store: Store) -> str:
    found = store.command("GET", store.keys.dedupe("k"))
    assert found is None or store.command("PTTL", store.keys.dedupe("k")) > 0
    return found.decode() if found else ""


def waiting(store: Store) -> list[bytes]:
    return [store.lookup(job_of(claim))["body"] for claim in store.claim("reader")]


ENDS = ["done", "dead", "cancelled by its handler"]


def test_newest_arguments_replace_those_of_a_waiting_job_which_keeps_its_place(store: Store) -> None:
    [first] = newest(store, 1)
    store.add(1)
    assert newest(store, 2, 3) == [first, first]

    claims = store.claim()

    assert job_of(claims[0]) == first
    assert store.lookup(first)["body"] == b'{"n":1}'
    assert store.start(claims[0]) == [Begun(1, b'{"n":3}')]
    assert store.lookup(first)["body"] == b'{"n":3}'


def test_lookup_of_a_waiting_job_has_the_newest_arguments(store: Store) -> None:
    [first] = newest(store, 1)
    assert store.lookup(first)["body"] == b'{"n":1}'

    newest(store, 2)

    assert store.lookup(first)["body"] == b'{"n":2}'


def test_a_scheduled_job_keeps_its_time(store: Store) -> None:
    [first] = store.schedule(delayed(1, delay_ms=5000, **NEWEST), clock=str(CLOCK))
    assert store.schedule(delayed(2, delay_ms=9000, **NEWEST), clock=str(CLOCK)) == [first]
    assert newest(store, 3) == [first]

    assert store.due(store.keys.scheduled) == {first: CLOCK + 5000}
    assert store.lookup(first)["body"] == b'{"n":3}'
    store.promote(clock=str(CLOCK + 5000))
    assert store.start(*store.claim()) == [Begun(1, b'{"n":3}')]


@pytest.mark.parametrize("how", ENDS)
def test_case_E7_behind_one_that_runs_one_job_with_the_newest_follows(store: Store, how: str) -> None:
    claim = running(store)
    assert newest(store, 2, 3) == [job_of(claim)] * 2
    assert store.lookup(job_of(claim))["follows"] == b"1"
    assert store.depth() == 1

    end(store, claim, how)

    [follower] = store.claim()
    assert (follower.body, job_of(follower) != job_of(claim)) == (b'{"n":3}', True)
    assert holder(store) == job_of(follower)
    assert store.totals()["enqueued"] == 2
    end(store, follower, "done")
    assert (store.depth(), holder(store)) == (0, "")
    assert store.command("EXISTS", store.keys.latest) == 0


@pytest.mark.parametrize("how", ENDS)
def test_without_newer_arguments_nothing_follows(store: Store, how: str) -> None:
    end(store, running(store), how)

    assert (store.depth(), holder(store)) == (0, "")
    assert store.command("EXISTS", store.keys.latest) == 0


def test_a_follower_can_be_followed_and_replaced_in_turn(store: Store) -> None:
    first = running(store)
    newest(store, 2)
    end(store, first, "done")
    [follower] = newest(store, 3)

    [claim] = store.claim()
    assert (job_of(claim), store.start(claim)) == (follower, [Begun(1, b'{"n":3}')])
    newest(store, 4)
    end(store, claim, "done", newer=1)

    assert waiting(store) == [b'{"n":4}']


def test_a_follower_is_a_job_of_its_own_with_its_own_options(store: Store) -> None:
    claim = running(store)
    newest(store, 2, headers={"a": "b"}, result_ttl_ms=5000)

    end(store, claim, "done")

    [follower] = store.claim()
    assert follower.meta == encode_meta(Meta(**NEWEST, headers={"a": "b"}, result_ttl_ms=5000))


def test_a_follower_runs_no_sooner_than_its_own_delay(store: Store) -> None:
    claim = running(store)
    store.schedule(delayed(2, delay_ms=60_000, **NEWEST), clock=str(CLOCK))
    store.command("DEL", store.keys.bell)

    call = settle.complete(
        store.keys, [settle.Finished("mail", full=[ending(claim, **OWNED, newer=0)])], str(CLOCK + 1)
    )
    store.run(call)

    [follower] = store.due(store.keys.scheduled)
    assert store.due(store.keys.scheduled) == {follower: CLOCK + 60_000}
    assert (follower[0], holder(store), store.state(follower)) == ("d", follower, "scheduled")
    assert store.command("PTTL", store.keys.dedupe("k")) > intake.DEDUPE_TTL_MS + 50_000
    assert store.command("LLEN", store.keys.bell) == 1
    store.promote(clock=str(CLOCK + 60_000))
    [again] = store.claim()
    assert (job_of(again), again.body) == (follower, b'{"n":2}')


@pytest.mark.parametrize("move", ["retry", "snooze", "release", "takeover"])
def test_a_job_that_runs_again_takes_what_came_and_nothing_follows(store: Store, move: str) -> None:
    claim = running(store)
    newest(store, 2)

    match move:
        case "retry":
            store.retry(later(claim, 1, "k", dedupe_mode=LATEST))
        case "snooze":
            store.snooze(later(claim, 1, "k", dedupe_mode=LATEST))
        case "release":
            store.release(claim, mark=1)
    if move in ("retry", "snooze"):
        assert newest(store, 3) == [job_of(claim)]
        store.promote(clock="9000000000000")
    again = {"release": store.take, "takeover": lambda: store.retaken([claim])}.get(move, store.claim)()
    consumer = "b" if move in ("release", "takeover") else "a"

    [begun] = store.start(*again, consumer=consumer)

    assert begun == Begun(1, b'{"n":3}' if move in ("retry", "snooze") else b'{"n":2}')
    store.complete_full(ending(again[0], **OWNED, newer=1))
    assert (store.depth(), holder(store)) == (0, "")
    assert store.command("EXISTS", store.keys.latest) == 0


def test_a_success_with_older_arguments_than_a_later_start_took_is_followed(store: Store) -> None:
    """A worker taken for dead ends the job while another runs it with newer arguments: these must not be lost."""
    old = running(store)
    newest(store, 2)
    [taken] = store.retaken([old])
    assert store.start(taken, consumer="b") == [Begun(1, b'{"n":2}')]

    end(store, old, "done", newer=0)

    assert store.complete_full(ending(taken, **OWNED, newer=1)) == {0: "LOST"}
    assert waiting(store) == [b'{"n":2}']
    assert len(store.hash(store.keys.latest)) == 1


def test_completing_again_adds_no_second_follower(store: Store) -> None:
    claim = running(store)
    newest(store, 2)
    call = settle.complete(store.keys, [settle.Finished("mail", full=[ending(claim, **OWNED, newer=0)])])
    store.run(call)

    assert store.run(call) == {0: "LOST"}
    assert store.depth() == 1


def test_what_ran_is_what_is_dead_and_replayed(store: Store) -> None:
    newest(store, 1, 2)
    claim = begin(store)
    newest(store, 3)

    end(store, claim, "dead")

    [row] = store.dead_rows()
    assert (row["body"], row["newer"]) == (b'{"n":2}', b"1")
    [follower] = store.claim()
    end(store, follower, "done")
    one = job_of(claim)
    meta = Meta(id=one, generation=1, **NEWEST)
    item = letters.Replay(store.dead_entry(one), one, encode_meta(meta), "k", newer=1)
    assert store.run(letters.replay(store.keys, [item])) == ["OK"]
    assert newest(store, 4) == [one]
    assert store.start(*store.claim()) == [Begun(2, b'{"n":4}')]


def test_replay_is_refused_while_a_follower_holds_the_key(store: Store) -> None:
    claim = running(store)
    newest(store, 2)
    end(store, claim, "dead")

    assert store.replay(job_of(claim), key="k") == [holder(store)]
    assert store.state(job_of(claim)) == "dead"


@pytest.mark.parametrize("place", ["waiting", "scheduled", "running"])
def test_an_operators_cancel_ends_the_newest_too(store: Store, place: str) -> None:
    if place == "scheduled":
        [one] = store.schedule(delayed(1, delay_ms=5000, **NEWEST))
    else:
        [one] = newest(store, 1)
    if place == "running":
        begin(store)
    newest(store, 2)

    store.cancel_owned(one, "k")

    assert (store.left(), holder(store)) == (set(), "")
    assert store.command("EXISTS", store.keys.latest) == 0


def test_a_job_of_another_kind_or_mode_is_not_replaced(store: Store) -> None:
    [until_done, other] = store.enqueue(job(1, dedupe_key="k"), job(2, "web", dedupe_key="l", dedupe_mode=LATEST))

    assert newest(store, 3) == [until_done]
    assert store.enqueue(job(4, dedupe_key="l", dedupe_mode=LATEST)) == [other]
    assert store.enqueue(job(5, "web", dedupe_key="l")) == [other]

    assert store.start(*store.claim()) == [Begun(), Begun()]
    assert set(store.hash(store.keys.latest)) == {other}


def test_case_E8_a_follower_leaves_the_key_that_lapsed_to_its_new_holder(store: Store) -> None:
    claim = running(store)
    newest(store, 2)
    store.command("DEL", store.keys.dedupe("k"))
    [other] = newest(store, 3)

    end(store, claim, "done")

    assert holder(store) == other
    assert sorted(waiting(store)) == [b'{"n":2}', b'{"n":3}']


def test_key_lives_on_when_newer_arguments_come(store: Store) -> None:
    newest(store, 1)
    store.command("PEXPIRE", store.keys.dedupe("k"), 1000)
    newest(store, 2)
    assert store.command("PTTL", store.keys.dedupe("k")) > intake.DEDUPE_TTL_MS - 10_000

    store.schedule(delayed(3, delay_ms=60_000, **NEWEST))
    newest(store, 4)
    assert store.command("PTTL", store.keys.dedupe("k")) > intake.DEDUPE_TTL_MS + 50_000


def test_bytes_of_any_kind_go_round(store: Store) -> None:
    claim = running(store)
    bodies = [b"\x00\xff 7:7:{}", b'{"a":393087288629462191}']
    meta = Meta(**NEWEST, headers={"x": "1 2:3:"})
    store.enqueue(*(Job("mail", body, "q", meta=meta) for body in bodies))
    [begun] = store.start(claim)
    assert begun == Begun(1, bodies[-1])

    store.enqueue(Job("mail", bodies[0], "q", meta=meta))
    end(store, claim, "done", newer=1)

    [follower] = store.claim()
    assert (follower.kind, follower.body) == (b"mail", bodies[0])
