"""promote: what is due moves to the stream, once, in bounded rounds."""

from concurrent.futures import ThreadPoolExecutor

from streamjobs.protocol import intake, upkeep
from tests.store.support import CLOCK, Store, delayed, job_of, later


def retries_and_delayed(store: Store, retries: int, scheduled: int) -> None:
    """Let so many jobs be due in each of the two sets, at CLOCK + 1000."""
    claims = store.started(retries)
    store.retry(*(later(claim, 1000) for claim in claims), clock=str(CLOCK))
    if scheduled:
        store.schedule(*(delayed(n, delay_ms=1000) for n in range(scheduled)), clock=str(CLOCK))


def test_due_jobs_move_to_the_stream_with_their_id(store: Store) -> None:
    ids = store.schedule(delayed(1, delay_ms=10, traceparent="t"), delayed(2, delay_ms=10), clock=str(CLOCK))

    promoted = store.promote(clock=str(CLOCK + 10))

    claims = store.claim()
    assert promoted.moved == 2
    assert [job_of(claim) for claim in claims] == ids
    assert [claim.body for claim in claims] == [b'{"n":1}', b'{"n":2}']
    assert claims[0].meta == b'{"id":"%s","tp":"t"}' % ids[0].encode()
    assert store.hash(store.keys.moved) == {one: claim.entry.decode() for one, claim in zip(ids, claims, strict=True)}
    assert store.left() == {"stream", "moved"}


def test_case_D2_nothing_moves_before_it_is_due(store: Store) -> None:
    delays = [1000 + n * 4 for n in range(0, 1000, 50)]
    ids = store.schedule(*(delayed(n, delay_ms=delay) for n, delay in enumerate(delays)), clock=str(CLOCK))

    for n, delay in enumerate(delays):
        assert store.promote(clock=str(CLOCK + delay - 1)).moved == 0
        assert store.promote(clock=str(CLOCK + delay)).moved == 1
        assert store.state(ids[n]) == "waiting"


def test_case_D9_a_long_delay_gives_one_entry_at_its_time(store: Store) -> None:
    store.schedule(delayed(1, delay_ms=7_200_000), clock=str(CLOCK))

    moved = [store.promote(clock=str(CLOCK + at)).moved for at in (5000, 7_199_999, 7_200_000, 7_200_001, 9_000_000)]

    assert moved == [0, 0, 1, 0, 0]
    assert store.depth() == 1


def test_says_when_the_next_is_due(store: Store) -> None:
    retries_and_delayed(store, 3, 0)
    store.schedule(delayed(1, delay_ms=5000), clock=str(CLOCK))

    waits = [
        store.promote(clock=str(CLOCK)).next_ms,
        store.promote(clock=str(CLOCK + 1000), most=2).next_ms,
        store.promote(clock=str(CLOCK + 1000)).next_ms,
        store.promote(clock=str(CLOCK + 5000)).next_ms,
    ]

    assert waits == [1000, 0, 4000, -1]


def test_tells_the_servers_time(store: Store) -> None:
    before = store.run(upkeep.server_time())

    assert before <= store.promote().now_ms <= store.run(upkeep.server_time())
    assert store.promote(clock=str(CLOCK)).now_ms == CLOCK


def test_a_flood_in_one_set_does_not_starve_the_other(store: Store) -> None:
    retries_and_delayed(store, 50, 5)

    promoted = store.promote(clock=str(CLOCK + 1000), most=10)

    assert promoted.moved == 10
    assert len(store.due(store.keys.scheduled)) == 0
    assert len(store.due(store.keys.retries)) == 45


def test_a_limit_of_one_moves_on(store: Store) -> None:
    retries_and_delayed(store, 3, 0)

    assert [store.promote(clock=str(CLOCK + 1000), most=1).moved for _ in range(4)] == [1, 1, 1, 0]


def test_room_for_one_lets_both_sets_in(store: Store) -> None:
    retries_and_delayed(store, 3, 2)

    store.promote(clock=str(CLOCK + 1000), room=1)

    assert (len(store.due(store.keys.retries)), len(store.due(store.keys.scheduled))) == (2, 1)


def test_large_bodies_bound_a_round_and_neither_set_starves(store: Store) -> None:
    big = [delayed(n, delay_ms=9, headers={"h": "x" * 200_000}) for n in range(8)]
    store.schedule(*big[:4], clock=str(CLOCK))
    store.schedule(*big[4:], clock=str(CLOCK))
    claims = store.started(1)
    store.retry(later(claims[0], 9), clock=str(CLOCK))

    first = store.promote(clock=str(CLOCK + 9))

    assert first.moved == 4
    assert first.next_ms == 0
    assert not store.due(store.keys.retries)


def flood(store: Store, jobs: int) -> None:
    """Let so many jobs be due at CLOCK."""
    for first in range(0, jobs, 500):
        store.schedule(*(delayed(n, at_ms=1) for n in range(first, min(jobs, first + 500))), clock=str(CLOCK))


def test_case_D10_a_flood_is_promoted_in_bounded_calls(real: Store) -> None:
    flood(real, 20_000)

    calls: list[upkeep.Promoted] = []
    while not calls or calls[-1].next_ms == 0:
        calls.append(real.promote(clock=str(CLOCK)))

    assert max(call.moved for call in calls) <= upkeep.PROMOTE_MOST
    assert sum(call.moved for call in calls) == real.depth() == 20_000


def test_case_D10_a_flood_is_let_in_only_as_the_stream_is_worked_off(store: Store) -> None:
    flood(store, 1000)

    def promoted() -> int:
        return sum(store.promote(room=300, clock=str(CLOCK)).moved for _ in range(10))

    assert promoted() == 300
    assert store.promote(room=300, clock=str(CLOCK)).next_ms == 0, "there is more, and the caller may ask again"
    claims = store.claim(count=120)
    assert promoted() == 120, "what runs takes no room"
    store.complete(*claims)
    assert promoted() == 0


def test_case_D10_fresh_jobs_wait_behind_no_more_than_the_room(store: Store) -> None:
    flood(store, 1000)
    for _ in range(10):
        store.promote(room=50, clock=str(CLOCK))
    [fresh] = store.add(1)

    assert [claim.entry.decode() for claim in store.claim(count=51)][-1] == fresh


def test_due_jobs_have_their_share_beside_a_backlog_of_fresh_ones(store: Store) -> None:
    """Up to as many as are there by other ways: a backlog must not keep retries waiting for its end."""
    store.add(500)
    flood(store, 1000)

    assert sum(store.promote(room=10, clock=str(CLOCK)).moved for _ in range(20)) == 500

    store.claim(count=500)
    assert store.promote(room=10, clock=str(CLOCK)).moved == 0
    store.add(7)
    assert sum(store.promote(room=10, clock=str(CLOCK)).moved for _ in range(20)) == 7


def test_what_is_due_and_has_no_room_counts_as_undone(store: Store) -> None:
    """A burst must not end while due jobs wait outside of the stream."""
    store.schedule(delayed(1, delay_ms=9), delayed(2, delay_ms=10), clock=str(CLOCK))

    assert store.executor.run_all(upkeep.undone(store.keys, CLOCK + 8)) == [0, 0, 0, 0, 0]
    assert store.executor.run_all(upkeep.undone(store.keys, CLOCK + 9)) == [0, 0, 1, 0, 0]


def test_the_first_caller_leads_until_its_key_expires(store: Store) -> None:
    assert store.promote("a").leads
    assert not store.promote("b").leads
    assert store.promote("a").leads
    assert 6000 < store.command("PTTL", store.keys.promoter) <= 7000

    store.command("DEL", store.keys.promoter)

    assert store.promote("b").leads


def test_who_heard_the_bell_leads(store: Store) -> None:
    store.promote("a")

    assert store.promote("b", rung=True).leads
    assert not store.promote("a").leads


def test_the_leaders_key_lasts_until_after_the_next_due_time(store: Store) -> None:
    store.schedule(delayed(1, delay_ms=1500), clock=str(CLOCK))

    store.promote("a", clock=str(CLOCK))

    assert 3000 < store.command("PTTL", store.keys.promoter) <= 3500


def test_any_caller_promotes_whoever_leads(store: Store) -> None:
    store.schedule(delayed(1, delay_ms=10), clock=str(CLOCK))
    store.promote("a", clock=str(CLOCK))

    assert store.promote("b", clock=str(CLOCK + 10)).moved == 1


def test_notes_when_the_worker_was_seen(store: Store) -> None:
    store.run(upkeep.promote(store.keys, "a", rung=False, note='{"pid":1}', room=1000, clock=str(CLOCK)))

    assert store.hash(store.keys.workers) == {"a": f'{CLOCK} {{"pid":1}}'}


def test_counts_what_moved(store: Store) -> None:
    retries_and_delayed(store, 3, 2)

    store.promote(clock=str(CLOCK + 1000))

    assert store.totals()["promoted"] == 5


def test_a_member_without_body_is_dropped_and_counted(store: Store) -> None:
    store.command("ZADD", store.keys.scheduled, 5, "d1-1")

    promoted = store.promote()

    assert promoted.moved == 0
    assert promoted.next_ms == -1
    assert store.totals() == {"vanished": 1}
    assert store.depth() == 0


def test_an_envelope_of_others_does_not_stop_promotion(store: Store) -> None:
    store.command("ZADD", store.keys.scheduled, 5, "d1-1")
    store.command("HSET", store.keys.bodies, "d1-1", b"\x00rubbish")
    store.schedule(delayed(1, at_ms=10))

    assert store.promote().moved == 2
    assert [(claim.kind, claim.body) for claim in store.claim()] == [
        (b"", b"\x00rubbish"),
        (b"mail", b'{"n":1}'),
    ]


def test_works_without_stream_and_group(bare: Store) -> None:
    bare.schedule(delayed(1, delay_ms=10), clock=str(CLOCK))

    assert bare.promote(clock=str(CLOCK + 10)).moved == 1


def test_case_B9_sixteen_promoters_at_once_move_each_job_once(real: Store) -> None:
    ids: list[str] = []
    for n in range(0, 10_000, 500):
        ids += real.schedule(*(delayed(n + i, at_ms=1) for i in range(500)))

    def promote_all(consumer: str) -> int:
        total = 0
        while (moved := real.promote(consumer).moved) > 0:
            total += moved
        return total

    with ThreadPoolExecutor(16) as pool:
        moved = list(pool.map(promote_all, (f"w{n}" for n in range(16))))

    assert sum(moved) == 10_000
    assert sorted(job_of(claim) for claim in real.claim(count=20_000)) == sorted(ids)
    assert real.left() == {"stream", "moved"}


def test_dedupe_key_of_a_job_that_was_due_long_ago_does_not_end_while_it_waits(store: Store) -> None:
    store.schedule(delayed(1, at_ms=1, dedupe_key="k"), delayed(2, at_ms=1, dedupe_key="l"))
    store.command("PEXPIRE", store.keys.dedupe("k"), 1000)
    store.command("SET", store.keys.dedupe("l"), "other", "PX", 1000)

    store.promote()

    assert store.command("PTTL", store.keys.dedupe("k")) > intake.DEDUPE_TTL_MS - 10_000
    assert store.command("PTTL", store.keys.dedupe("l")) <= 1000


def test_a_window_ends_in_its_time_all_the_same(store: Store) -> None:
    store.schedule(delayed(1, at_ms=1, dedupe_key="k", dedupe_window_ms=5000))

    store.promote()

    assert 0 < store.command("PTTL", store.keys.dedupe("k")) <= 5000
