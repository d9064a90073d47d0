"""retry and snooze: the same move to two sets, so that both counts are O(1)."""

from collections.abc import Callable

import pytest

from streamjobs.protocol import intake, leases, settle
from tests.store.support import CLOCK, Store, delayed, job, job_of, later

Postpone = Callable[..., leases.Words]


@pytest.fixture(params=["retry", "snooze"])
def script(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def postpone(store: Store, script: str) -> Postpone:
    return store.retry if script == "retry" else store.snooze


@pytest.fixture
def zset(store: Store, script: str) -> str:
    """The set that this move puts jobs into."""
    return store.keys.retries if script == "retry" else store.keys.scheduled


def test_job_waits_under_its_id_for_its_delay(store: Store, postpone: Postpone, zset: str) -> None:
    [claim] = store.started(1)

    assert postpone(later(claim, 5000), clock=str(CLOCK)) == {}

    assert store.due(zset) == {claim.entry.decode(): CLOCK + 5000}
    assert store.depth() == 0
    assert store.pending() == {}


def test_body_is_copied_from_the_entry_and_meta_is_the_new_one(store: Store, postpone: Postpone) -> None:
    store.command("XADD", store.keys.stream, "*", "kind", "käse", "body", b"\x00\xff{1:2:", "meta", "")
    [claim] = store.claim()
    one = job_of(claim)

    postpone(later(claim))

    found = store.lookup(one)
    assert (found["kind"].decode(), found["body"]) == ("käse", b"\x00\xff{1:2:")
    assert found["meta"] == b'{"id":"%s","f":1}' % one.encode()


def test_runs_again_with_the_id_it_had(store: Store, postpone: Postpone) -> None:
    [first] = store.schedule(delayed(1, at_ms=1))
    store.promote()
    for n in range(3):
        [claim] = store.claim(f"w{n}")
        assert (job_of(claim), claim.body) == (first, b'{"n":1}')
        postpone(later(claim, 1), consumer=f"w{n}")
        assert store.hash(store.keys.moved) == {}
        store.promote(clock="9000000000000")

    assert store.state(first) == "waiting"


def test_former_holder_changes_nothing(store: Store, postpone: Postpone, zset: str) -> None:
    """A zombie's failure must not take the job from the one who runs it."""
    claims = store.started(1)
    [taken] = store.retaken(claims)

    assert postpone(later(claims[0])) == {0: "LOST"}
    assert store.pending() == {taken.entry: (b"b", 2)}
    assert store.due(zset) == {}


def test_earlier_claim_of_the_same_holder_changes_nothing(store: Store, postpone: Postpone) -> None:
    claims = store.started(1)
    [taken] = store.retaken(claims, "a", "a")

    assert postpone(later(claims[0])) == {0: "LOST"}
    assert postpone(later(taken)) == {}


def test_settled_claim_changes_nothing(store: Store, postpone: Postpone, zset: str) -> None:
    """An ended job is not resurrected."""
    [claim] = store.started(1)
    store.complete(claim)

    assert postpone(later(claim)) == {0: "LOST"}
    assert store.left() == set()


def test_late_copy_after_the_job_moved_on_changes_nothing(store: Store, postpone: Postpone, script: str) -> None:
    [claim] = store.started(1)
    build = settle.retry if script == "retry" else settle.snooze
    call = build(store.keys, "a", [("mail", {}, [later(claim, 1)])])
    assert store.run(call) == {}
    store.promote(clock="9000000000000")
    [again] = store.claim("a")

    assert store.run(call) == {0: "LOST"}
    assert store.pending() == {again.entry: (b"a", 1)}
    assert store.left() == {"stream", "moved"}


def test_case_B4_of_a_timeout_and_a_reclaim_one_wins(store: Store, postpone: Postpone) -> None:
    first, second = store.started(2)
    store.silence([first, second])

    assert postpone(later(first)) == {}
    [taken] = store.sweep("b")
    assert taken.entry == second.entry
    assert postpone(later(second)) == {0: "LOST"}

    assert store.depth() == 1
    assert store.state(first.entry.decode()) == "scheduled"
    assert store.state(second.entry.decode()) == "running"


def test_after_a_lost_group_nothing_is_lost(store: Store, postpone: Postpone) -> None:
    [claim] = store.started(1)
    store.lose_group()
    store.make_group()

    assert postpone(later(claim)) == {0: "LOST"}
    assert [again.entry for again in store.claim("b")] == [claim.entry]


def test_batch_says_by_index_over_all_groups_which_were_lost(store: Store, script: str, zset: str) -> None:
    claims = store.started(5)
    store.complete(claims[1], claims[4])
    build = settle.retry if script == "retry" else settle.snooze
    groups = [("mail", {}, [later(c) for c in claims[:2]]), ("web", {}, [later(c) for c in claims[2:]])]

    words = store.run(build(store.keys, "a", groups))

    assert words == {1: "LOST", 4: "LOST"}
    assert set(store.due(zset)) == {claims[n].entry.decode() for n in (0, 2, 3)}


def test_counts_what_changed_and_scales_the_sums(store: Store, script: str) -> None:
    claims = store.started(5)
    store.complete(claims[0])
    store.command("DEL", store.keys.totals)
    build = settle.retry if script == "retry" else settle.snooze
    groups = [
        ("mail", {"ms": 90, "timeout": 3}, [later(c) for c in claims[:3]]),
        ("web", {"ms": 11}, [later(c) for c in claims[3:]]),
    ]

    store.run(build(store.keys, "a", groups, str(CLOCK)))

    word = "retried" if script == "retry" else "snoozed"
    assert store.totals() == {word: 4, "lost": 1}
    assert store.minute() == {
        f"{word}:mail": 2,
        "ms:mail": 60,
        "timeout:mail": 2,
        f"{word}:web": 2,
        "ms:web": 11,
        "lost:": 1,
    }


def test_bell_rings_only_for_what_is_due_earlier_than_known(store: Store, postpone: Postpone) -> None:
    claims = store.started(4)

    def rung(delay_ms: int) -> bool:
        store.command("DEL", store.keys.bell)
        postpone(later(claims.pop(), delay_ms), clock=str(CLOCK))
        return store.command("LLEN", store.keys.bell) > 0

    assert [rung(5000), rung(6000), rung(5000), rung(4000)] == [True, False, False, True]


def test_bell_knows_what_is_due_in_the_other_set(store: Store) -> None:
    claims = store.started(2)
    store.retry(later(claims[0], 1000), clock=str(CLOCK))
    store.command("DEL", store.keys.bell)

    store.snooze(later(claims[1], 2000), clock=str(CLOCK))
    store.schedule(delayed(1, delay_ms=3000), clock=str(CLOCK))

    assert store.command("LLEN", store.keys.bell) == 0


def test_dedupe_key_lives_beyond_the_delay(store: Store, postpone: Postpone) -> None:
    store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    store.command("PEXPIRE", store.keys.dedupe("k"), 1000)

    postpone(later(claim, 3_600_000, key="k"))

    assert store.command("PTTL", store.keys.dedupe("k")) > intake.DEDUPE_TTL_MS + 3_590_000


def test_dedupe_key_of_another_job_is_left_alone(store: Store, postpone: Postpone) -> None:
    store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    store.command("SET", store.keys.dedupe("k"), "other", "PX", 1000)

    postpone(later(claim, 3_600_000, key="k"))

    assert store.command("PTTL", store.keys.dedupe("k")) <= 1000


def test_five_hundred_at_once(store: Store, postpone: Postpone, zset: str) -> None:
    claims = store.started(500)

    assert postpone(*(later(claim) for claim in claims)) == {}
    assert store.command("ZCARD", zset) == 500
    assert store.depth() == 0
