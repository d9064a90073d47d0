"""enqueue: a batch of jobs is on the stream, once however often it is sent."""

import pytest

from streamjobs.core.codec import encode_meta
from streamjobs.core.job import Job, Meta
from streamjobs.protocol import intake
from streamjobs.protocol.intake import Batch, BatchRefused
from tests.store.support import CLOCK, Store, job, job_of


def test_jobs_are_entries_with_kind_body_and_meta_in_this_order(store: Store) -> None:
    ids = store.enqueue(job(1), job(2, result_ttl_ms=9))

    assert store.entries() == [
        [ids[0].encode(), [b"kind", b"mail", b"body", b'{"n":1}', b"meta", b""]],
        [ids[1].encode(), [b"kind", b"mail", b"body", b'{"n":2}', b"meta", b'{"rt":9}']],
    ]


def test_ids_of_a_batch_are_consecutive(store: Store) -> None:
    ids = store.add(500)

    ms, seq = ids[0].split("-")
    assert ids == [f"{ms}-{int(seq) + n}" for n in range(500)]
    assert [entry.decode() for entry, _ in store.entries()] == ids


def test_order_is_kept_over_kinds_and_forms(store: Store) -> None:
    jobs = [job(0, "a"), job(1, "b"), job(2, "b", parks=1), job(3, "a", parks=1), job(4, "a"), job(5, "a")]

    ids = store.enqueue(*jobs)

    assert [(claim.kind, claim.body) for claim in store.claim()] == [(j.kind.encode(), j.body) for j in jobs]
    assert len(set(ids)) == 6


def test_batch_sent_again_answers_alike_and_adds_nothing(store: Store) -> None:
    """Case B7: the reply was lost, the producer sends the same batch again."""
    call = intake.enqueue(store.keys, [job(1), job(2)], Batch("p", 1, "aa"))

    first, again = store.words(call), store.words(call)

    assert first == again
    assert store.depth() == 2
    assert store.totals() == {"enqueued": 2}


def test_late_copy_of_an_earlier_batch_does_nothing(store: Store) -> None:
    early = intake.enqueue(store.keys, [job(1)], Batch("p", 1, "aa"))
    store.run(early)
    store.run(intake.enqueue(store.keys, [job(2)], Batch("p", 2, "aa")))

    with pytest.raises(BatchRefused, match="STALEBATCH"):
        store.run(early)

    assert store.depth() == 2


def test_two_producers_of_one_name_are_told_apart(store: Store) -> None:
    store.run(intake.enqueue(store.keys, [job(1)], Batch("p", 1, "aa")))

    with pytest.raises(BatchRefused, match="TWOPRODUCERS"):
        store.run(intake.enqueue(store.keys, [job(1)], Batch("p", 1, "bb")))

    assert store.depth() == 1


def test_batch_sent_again_renews_the_memory_of_it(store: Store) -> None:
    call = intake.enqueue(store.keys, [job(1)], Batch("p", 1, "aa"))
    store.run(call)
    store.command("PEXPIRE", store.keys.producer("p"), 1000)

    store.run(call)

    assert 599_000 < store.command("PTTL", store.keys.producer("p")) <= 600_000


def test_batch_after_the_memory_is_gone_is_a_new_one(store: Store) -> None:
    store.run(intake.enqueue(store.keys, [job(1)], Batch("p", 7, "aa")))
    store.command("DEL", store.keys.producer("p"))

    store.run(intake.enqueue(store.keys, [job(2)], Batch("p", 1, "bb")))

    assert store.depth() == 2


def test_case_E10_duplicate_answers_the_job_that_is_there(store: Store) -> None:
    [first] = store.enqueue(job(1, dedupe_key="k"))

    ids = store.enqueue(job(2), job(3, dedupe_key="k"), job(4))

    assert ids[1] == first
    assert store.state(first) == "waiting"
    assert [claim.body for claim in store.claim()] == [b'{"n":1}', b'{"n":2}', b'{"n":4}']


def test_duplicate_within_a_batch_answers_the_first_of_them(store: Store) -> None:
    ids = store.enqueue(job(0), job(1, dedupe_key="k"), job(2, dedupe_key="k"), job(3, dedupe_key="l"))

    assert ids[2] == ids[1]
    assert len(set(ids)) == 3
    assert store.depth() == 3


def test_batch_of_duplicates_alone_adds_nothing(store: Store) -> None:
    [first] = store.enqueue(job(1, dedupe_key="k"))

    assert store.enqueue(job(2, dedupe_key="k"), job(3, dedupe_key="k")) == [first, first]
    assert store.depth() == 1
    assert store.totals() == {"enqueued": 1}


def test_every_key_of_a_batch_names_a_job_that_is_there(store: Store) -> None:
    """The ids of all but the first are given before their jobs are there, and keys with them."""
    [held] = store.enqueue(job(0, dedupe_key="3"))

    ids = store.enqueue(*(job(n, dedupe_key=str(n % 7)) for n in range(20)), job(20))

    holders = {n: store.command("GET", store.keys.dedupe(str(n))).decode() for n in range(7)}
    assert ids[:-1] == [holders[n % 7] for n in range(20)]
    assert holders[3] == held
    assert {entry.decode() for entry, _ in store.entries()} == {*holders.values(), ids[-1]}
    assert [claim.body for claim in store.claim()] == [b'{"n":%d}' % n for n in (0, 0, 1, 2, 4, 5, 6, 20)]


def test_keys_go_to_the_jobs_that_named_them(store: Store) -> None:
    ids = store.enqueue(job(0, dedupe_key="a"), job(1, parks=1), job(2), job(3, dedupe_key="b"))

    assert store.command("GET", store.keys.dedupe("a")).decode() == ids[0]
    assert store.command("GET", store.keys.dedupe("b")).decode() == ids[3]


def test_dedupe_key_always_expires(store: Store) -> None:
    store.enqueue(job(0, dedupe_key="a"))

    left = store.command("PTTL", store.keys.dedupe("a"))

    assert intake.DEDUPE_TTL_MS - 10_000 < left <= intake.DEDUPE_TTL_MS


def test_counts_per_kind_what_was_added(store: Store) -> None:
    store.enqueue(job(0, dedupe_key="k"), clock=str(CLOCK))

    store.enqueue(job(1), job(2, "web"), job(3), job(4, dedupe_key="k"), clock=str(CLOCK))

    assert store.totals() == {"enqueued": 4}
    assert store.minute() == {"enqueued:mail": 3, "enqueued:web": 1}


def test_counters_of_a_minute_go_after_26_hours(store: Store) -> None:
    store.enqueue(job(0), clock=str(CLOCK))

    assert 93_500_000 < store.command("PTTL", f"{store.keys.metrics}{CLOCK // 60_000}") <= 93_600_000


@pytest.mark.parametrize(
    "body",
    [b"", b"\x00\xff\r\n$3\r\n", b"{" * 1000, b"x" * 262_144, '{"s":"ümlaut \u202e"}'.encode()],
    ids=["empty", "binary", "open braces", "256 KiB", "text"],
)
def test_body_is_kept_byte_by_byte(store: Store, body: bytes) -> None:
    store.enqueue(Job("mail", body, "q"))

    assert [claim.body for claim in store.claim()] == [body]


def test_meta_is_kept_byte_by_byte(store: Store) -> None:
    meta = Meta(headers={"a": 'ü\\"\n', "b": ""}, traceparent="00-ab", result_ttl_ms=2**53)

    store.enqueue(Job("mail", b"{}", "q", meta=meta))

    assert [claim.meta for claim in store.claim()] == [encode_meta(meta)]


def test_needs_no_worker_to_have_been_there(bare: Store) -> None:
    """Case G2: what is enqueued before the first worker starts is seen by its group, made at 0."""
    ids = bare.add(100)
    bare.make_group()

    assert [job_of(claim) for claim in bare.claim()] == ids
