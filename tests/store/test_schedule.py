"""schedule: jobs that run later wait in a sorted set, and their ids come from a stream of their own."""

import pytest

from streamjobs.core.codec import split_envelope
from streamjobs.core.errors import Rejected
from streamjobs.core.job import Job, Meta
from streamjobs.protocol import intake
from streamjobs.protocol.intake import Batch, BatchRefused
from tests.store.support import CLOCK, Store, delayed, job


def test_jobs_wait_for_their_delay_on_the_servers_clock(store: Store) -> None:
    ids = store.schedule(delayed(1, delay_ms=5000), delayed(2, delay_ms=1), clock=str(CLOCK))

    assert store.due(store.keys.scheduled) == {ids[0]: CLOCK + 5000, ids[1]: CLOCK + 1}
    assert store.depth() == 0


def test_an_instant_wins_over_a_delay(store: Store) -> None:
    [one] = store.schedule(delayed(1, delay_ms=5000, at_ms=CLOCK + 77), clock=str(CLOCK))

    assert store.due(store.keys.scheduled) == {one: CLOCK + 77}


def test_ids_are_consecutive_and_begin_with_d(store: Store) -> None:
    ids = store.schedule(*(delayed(n, delay_ms=9) for n in range(500)))

    ms, seq = ids[0].removeprefix("d").split("-")
    assert ids == [f"d{ms}-{int(seq) + n}" for n in range(500)]


def test_the_stream_of_ids_stays_empty(store: Store) -> None:
    for jobs in (1, 10, 1):
        store.schedule(*(delayed(n, delay_ms=9) for n in range(jobs)))

    assert store.command("XLEN", store.keys.ids) == 0


def test_ids_never_repeat_even_when_a_batch_failed_half_way(store: Store) -> None:
    # The clock stands still, as it does within one millisecond.
    store.command("XADD", store.keys.ids, "MAXLEN", 0, "4000000000000-0", "x", "")
    store.command("RPUSH", store.keys.dedupe("bad"), "x")
    with pytest.raises(Rejected):
        store.schedule(delayed(0, delay_ms=9), delayed(1, delay_ms=9), delayed(2, delay_ms=9, dedupe_key="bad"))
    half = set(store.due(store.keys.scheduled))
    store.command("DEL", store.keys.dedupe("bad"))

    ids = store.schedule(delayed(3, delay_ms=9), delayed(4, delay_ms=9))

    assert len(half) == 2
    assert not half & set(ids)


def test_id_is_the_first_member_of_meta_and_the_rest_is_kept(store: Store) -> None:
    [plain, full] = store.schedule(
        delayed(1, delay_ms=9), Job("mail", b"\x00{", "q", delay_ms=9, meta=Meta(headers={"a": 'ü"'}))
    )

    assert split_envelope(store.command("HGET", store.keys.bodies, plain)) == (
        b"mail",
        b'{"n":1}',
        b'{"id":"%s"}' % plain.encode(),
    )
    assert split_envelope(store.command("HGET", store.keys.bodies, full)) == (
        b"mail",
        b"\x00{",
        '{"id":"%s","h":{"a":"ü\\""}}'.encode() % full.encode(),
    )


def test_batch_sent_again_answers_alike_and_adds_nothing(store: Store) -> None:
    call = intake.schedule(store.keys, [delayed(1, delay_ms=9)], Batch("p", 1, "aa"))

    assert store.words(call) == store.words(call)
    assert len(store.due(store.keys.scheduled)) == 1


def test_late_copy_and_a_second_producer_are_refused(store: Store) -> None:
    early = intake.schedule(store.keys, [delayed(1, delay_ms=9)], Batch("p", 1, "aa"))
    store.run(early)
    store.run(intake.schedule(store.keys, [delayed(2, delay_ms=9)], Batch("p", 2, "aa")))

    with pytest.raises(BatchRefused, match="STALEBATCH"):
        store.run(early)
    with pytest.raises(BatchRefused, match="TWOPRODUCERS"):
        store.run(intake.schedule(store.keys, [delayed(2, delay_ms=9)], Batch("p", 2, "bb")))

    assert len(store.due(store.keys.scheduled)) == 2


def test_duplicate_answers_the_holder_wherever_it_waits(store: Store) -> None:
    [waiting] = store.enqueue(job(1, dedupe_key="k"))
    ids = store.schedule(
        delayed(2, delay_ms=9, dedupe_key="k"), delayed(3, delay_ms=9, dedupe_key="l"), delayed(4, delay_ms=9)
    )

    assert ids[0] == waiting
    assert store.enqueue(job(5, dedupe_key="l")) == [ids[1]]
    assert len(store.due(store.keys.scheduled)) == 2


def test_dedupe_key_lives_beyond_the_due_time(store: Store) -> None:
    store.schedule(delayed(1, delay_ms=3_600_000, dedupe_key="k"))

    left = store.command("PTTL", store.keys.dedupe("k"))

    assert left > intake.DEDUPE_TTL_MS + 3_590_000


def test_dedupe_key_of_a_past_instant_has_its_full_time(store: Store) -> None:
    store.schedule(delayed(1, at_ms=1, dedupe_key="k"))

    assert store.command("PTTL", store.keys.dedupe("k")) > intake.DEDUPE_TTL_MS - 10_000


def test_bell_rings_only_for_what_is_due_earlier_than_known(store: Store) -> None:
    def rung(delay_ms: int) -> bool:
        store.command("DEL", store.keys.bell)
        store.schedule(delayed(1, delay_ms=delay_ms), clock=str(CLOCK))
        return store.command("LLEN", store.keys.bell) > 0

    assert [rung(5000), rung(6000), rung(5000), rung(4000)] == [True, False, False, True]


def test_bell_is_never_rung_twice(store: Store) -> None:
    store.schedule(delayed(1, delay_ms=5000))
    store.schedule(delayed(1, delay_ms=50))

    assert store.command("LLEN", store.keys.bell) == 1


def test_counts_per_kind_what_was_added(store: Store) -> None:
    store.schedule(delayed(1, delay_ms=9), delayed(2, delay_ms=9, kind="web"), delayed(3, delay_ms=9), clock=str(CLOCK))

    assert store.totals() == {"enqueued": 3}
    assert store.minute() == {"enqueued:mail": 2, "enqueued:web": 1, "delayed:mail": 2, "delayed:web": 1}
