"""complete: the first success wins, whoever brings it."""

from streamjobs.protocol import settle
from tests.store.support import CLOCK, Store, delayed, ending, job, job_of, later


def test_entries_are_gone_and_nothing_is_left(store: Store) -> None:
    claims = store.started(100)

    assert store.complete(*claims) == {}
    assert store.left() == set()
    assert store.pending() == {}


def test_second_success_is_lost(store: Store) -> None:
    """Case B1: the frozen worker wakes up after another one succeeded."""
    claims = store.started(3)
    [taken] = store.retaken(claims[1:2])
    store.complete(taken)

    assert store.complete(*claims) == {1: "LOST"}
    assert store.totals()["done"] == 3


def test_first_success_wins_also_from_a_former_holder(store: Store) -> None:
    claims = store.started(1)
    [taken] = store.retaken(claims)

    assert store.complete(*claims) == {}
    assert store.complete(taken) == {0: "LOST"}
    assert store.pending() == {}


def test_same_entry_twice_in_a_batch_counts_once(store: Store) -> None:
    [claim] = store.started(1)

    assert store.complete(claim, claim) == {1: "LOST"}
    assert store.totals()["done"] == 1


def test_success_after_the_group_was_lost_counts(store: Store) -> None:
    """XACK answers 0 then; XDEL decides."""
    claims = store.started(3)
    store.lose_group()

    assert store.complete(claims[0]) == {}
    assert store.complete_full(ending(claims[1])) == {}
    store.make_group()
    assert store.complete(claims[2], claims[0]) == {1: "LOST"}
    assert store.left() == set()
    assert store.totals()["done"] == 3


def test_success_after_the_stream_was_lost_is_lost(store: Store) -> None:
    claims = store.started(2)
    store.command("DEL", store.keys.stream)

    assert store.complete(*claims) == {0: "LOST", 1: "LOST"}
    assert store.complete_full(*map(ending, claims)) == {0: "LOST", 1: "LOST"}


def test_success_of_a_job_that_is_scheduled_again_is_lost(store: Store) -> None:
    [claim] = store.started(1)
    store.retry(later(claim))

    assert store.complete(claim) == {0: "LOST"}
    assert store.state(claim.entry.decode()) == "scheduled"


def test_released_and_suspect_entries_leave_no_trace(store: Store) -> None:
    claims = store.started(4)
    store.release(claims[0], mark=1)
    marked = store.retaken(claims[1:3])
    store.suspect(*marked, consumer="b")

    store.complete(*claims[:2], claims[3])
    store.complete_full(ending(claims[2]))

    assert store.left() == set()


def test_moved_entry_leaves_no_trace(store: Store) -> None:
    [one] = store.schedule(delayed(1, at_ms=1))
    store.promote()
    [claim] = store.claim()

    assert store.complete_full(ending(claim)) == {}
    assert store.left() == set()
    assert store.state(one) == "finished"


def test_case_E1_dedupe_key_is_free_at_once(store: Store) -> None:
    store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()

    store.complete_full(ending(claim, dedupe_key="k"))

    [second] = store.enqueue(job(2, dedupe_key="k"))
    assert store.state(second) == "waiting"
    assert store.depth() == 1


def test_case_E4_the_one_who_took_over_frees_the_key(store: Store) -> None:
    store.enqueue(job(1, dedupe_key="k"))
    [taken] = store.retaken(store.claim())

    store.complete_full(ending(taken, dedupe_key="k"))

    assert store.left() == set()


def test_dedupe_key_is_freed_only_by_the_job_it_carries(store: Store) -> None:
    store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    store.command("SET", store.keys.dedupe("k"), "other", "PX", 60_000)

    store.complete_full(ending(claim, dedupe_key="k"))

    assert store.command("GET", store.keys.dedupe("k")) == b"other"


def test_lost_success_frees_nothing_and_keeps_no_result(store: Store) -> None:
    """A zombie must not free the key of a job that runs, nor overwrite its result."""
    [first] = store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    [taken] = store.retaken([claim])
    store.retry(later(taken, key="k"), consumer="b")

    lost = store.complete_full(ending(claim, dedupe_key="k", result_ttl_ms=1000, result=b"1"))

    assert lost == {0: "LOST"}
    assert store.command("GET", store.keys.dedupe("k")).decode() == first
    assert store.command("EXISTS", store.keys.result(first)) == 0


def test_result_is_kept_for_its_time_and_announced(store: Store) -> None:
    [one] = store.enqueue(job(1, result_ttl_ms=60_000))
    [claim] = store.claim()

    with store.executor.listen(store.keys.done, 5) as messages:
        store.complete_full(ending(claim, result_ttl_ms=60_000, result=b'{"ok":\x00}'))
        heard = next(iter(messages))

    assert heard.decode() == one
    assert store.lookup(one) == {"state": b"ended", "result": b'{"ok":\x00}'}
    assert 50_000 < store.command("PTTL", store.keys.result(one)) <= 60_000


def test_case_B1_the_first_result_stays(store: Store) -> None:
    [one] = store.enqueue(job(1, result_ttl_ms=60_000))
    [claim] = store.claim()
    [taken] = store.retaken([claim])

    store.complete_full(ending(taken, result_ttl_ms=60_000, result=b"2"))
    lost = store.complete_full(ending(claim, result_ttl_ms=60_000, result=b"1"))

    assert lost == {0: "LOST"}
    assert store.lookup(one)["result"] == b"2"


def test_indexes_run_over_all_groups_and_forms(store: Store) -> None:
    claims = store.started(8)
    store.complete(claims[1], claims[3], claims[6])
    groups = [
        settle.Finished("mail", plain=[c.entry for c in claims[:3]], full=[ending(c) for c in claims[3:5]]),
        settle.Finished("web", full=[ending(claims[5])]),
        settle.Finished("web", plain=[c.entry for c in claims[6:]]),
    ]

    words = store.run(settle.complete(store.keys, groups))

    assert words == {1: "LOST", 3: "LOST", 6: "LOST"}
    assert store.left() == set()


def test_counts_what_changed_and_scales_the_sums(store: Store) -> None:
    claims = store.started(8)
    store.complete(claims[0])
    store.command("DEL", store.keys.totals)
    plain = settle.Finished("mail", plain=[c.entry for c in claims[:4]], sums={"ms": 100, "b3": 4})
    full = settle.Finished("web", full=[ending(c) for c in claims[4:6]], sums={"ms": 7})
    both = settle.Finished("log", [claims[6].entry], [ending(claims[7])], {"ms": 9})

    store.run(settle.complete(store.keys, [plain, full, both], str(CLOCK)))

    assert store.totals() == {"done": 7, "lost": 1}
    assert store.minute() == {
        "done:mail": 3,
        "ms:mail": 75,
        "b3:mail": 3,
        "done:web": 2,
        "ms:web": 7,
        "done:log": 2,
        "ms:log": 9,
        "lost:": 1,
    }


def test_nothing_changed_counts_nothing(store: Store) -> None:
    claims = store.started(2)
    store.complete(*claims)
    gone = settle.Finished("mail", plain=[c.entry for c in claims], sums={"ms": 100})

    store.run(settle.complete(store.keys, [gone], str(CLOCK)))

    assert store.minute() == {"lost:": 2}
    assert store.totals()["done"] == 2


def test_case_G1_a_drained_queue_holds_no_key_of_a_job(store: Store) -> None:
    for _ in range(4):
        store.complete(*store.started(500))

    assert store.left() == set()
    lasting = [
        key for key in ("stream", "totals", "config", "ids") if store.command("PTTL", store.keys.base + key) == -1
    ]
    assert lasting == ["stream", "totals", "config"]


def test_moved_job_is_found_by_its_id_until_it_ends(store: Store) -> None:
    store.schedule(*(delayed(n, at_ms=1) for n in range(5)))
    store.promote()
    claims = store.claim()

    store.complete_full(*map(ending, claims[:4]))

    assert store.state(job_of(claims[4])) == "running"
    assert set(store.hash(store.keys.moved)) == {job_of(claims[4])}
