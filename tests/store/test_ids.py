"""Ids: a job's id is where it is; ids never repeat, and giving one wakes nobody."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from streamjobs.protocol import intake, leases
from streamjobs.protocol.calls import Command
from tests.store.support import Store, delayed, ending, job, job_of

AHEAD = "4000000000000-7"
"""An id far in the future, as a stream's last one is after the clock was set back."""


@contextmanager
def blocked_readers(store: Store, readers: int) -> Iterator[list[list[bytes]]]:
    """Let so many readers block on the stream; on leaving, fills the list with what each was told."""
    told: list[list[bytes]] = []
    request = [leases.read([store.keys.stream], f"r{n}", 100, 8000) for n in range(readers)]
    with ThreadPoolExecutor(readers) as pool:
        replies = [pool.submit(store.run, one) for one in request]
        while blocked(store) < readers:
            pass
        yield told
        told += [[entry for entry, _ in reply[0][1]] if (reply := one.result()) else [] for one in replies]


def blocked(store: Store) -> int:
    text: bytes = store.run(Command(["INFO", "clients"], lambda reply: reply))
    [line] = [line for line in text.splitlines() if line.startswith(b"blocked_clients:")]
    return int(line.partition(b":")[2])


def test_delayed_jobs_wake_no_blocked_reader(real: Store) -> None:
    """A reader woken for nothing answers empty; all of them here answer with a job, once there are some."""
    with blocked_readers(real, 3) as told:
        for _ in range(20):
            real.schedule(delayed(1, delay_ms=3_600_000), delayed(2, delay_ms=3_600_000))
        assert blocked(real) == 3
        ids = [real.add(1)[0] for _ in range(3)]

    assert sorted(entry.decode() for [entry] in told) == ids


def test_promotion_wakes_a_blocked_reader(real: Store) -> None:
    with blocked_readers(real, 1) as told:
        real.schedule(delayed(1, at_ms=1))
        real.promote()

    assert len(told[0]) == 1


def test_ids_are_consecutive_when_the_last_id_is_ahead_of_the_clock(store: Store) -> None:
    for stream in (store.keys.stream, store.keys.ids):
        store.command("XADD", stream, "MAXLEN", 0, AHEAD, "x", "")

    first, second = store.add(3), store.add(2)
    later = store.schedule(delayed(1, delay_ms=9), delayed(2, delay_ms=9))

    assert first + second == [f"4000000000000-{n}" for n in range(8, 13)]
    assert later == ["d4000000000000-8", "d4000000000000-9"]


def test_ids_of_many_producers_are_all_different(store: Store) -> None:
    def produce(producer: str) -> list[str]:
        now = intake.enqueue(store.keys, [job(n) for n in range(50)], intake.Batch(producer, 1, "aa"))
        later = intake.schedule(
            store.keys, [delayed(n, delay_ms=9) for n in range(50)], intake.Batch(producer, 2, "aa")
        )
        return store.run(now).ids(50) + store.run(later).ids(50)

    with ThreadPoolExecutor(8) as pool:
        ids = [one for batch in pool.map(produce, (f"p{n}" for n in range(20))) for one in batch]

    assert len(set(ids)) == len(ids) == 2000


def test_id_is_not_given_again_after_its_job_ended(store: Store) -> None:
    seen: set[str] = set()
    for _ in range(30):
        ids = store.add(2)
        assert not seen & set(ids)
        seen |= set(ids)
        store.complete(*store.claim())


def test_case_G4_a_stream_is_as_long_as_it_says(real: Store) -> None:
    """What gives ids is trimmed to nothing each time, exactly; what holds jobs is never trimmed."""
    for n in range(0, 10_000, 500):
        real.schedule(*(delayed(n + i, delay_ms=3_600_000) for i in range(499)))
        real.schedule(delayed(n + 499, delay_ms=3_600_000))
        real.add(500)
    claims = real.claim(count=10_000)
    for at in range(0, 10_000, 500):
        real.complete(*claims[at : min(at + 500, 9_999)])

    for key, jobs in ((real.keys.ids, 0), (real.keys.stream, 1)):
        assert real.command("XLEN", key) == len(real.command("XRANGE", key, "-", "+")) == jobs
    assert real.command("ZCARD", real.keys.scheduled) == 10_000


def test_delayed_and_direct_ids_of_one_number_are_two_jobs(store: Store) -> None:
    for stream in (store.keys.stream, store.keys.ids):
        store.command("XADD", stream, "MAXLEN", 0, AHEAD, "x", "")
    [direct] = store.add(1)
    [late] = store.schedule(delayed(9, at_ms=1))
    assert late == "d" + direct

    store.promote()
    first, second = store.claim()

    assert (job_of(first), job_of(second)) == (direct, late)
    store.complete_full(ending(second))
    assert (store.state(direct), store.state(late)) == ("running", "finished")
