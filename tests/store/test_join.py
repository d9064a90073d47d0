"""join: a worker finds a group that begins at 0, and the lease that the queue has."""

from streamjobs.protocol import leases
from tests.store.support import Store, job


def test_case_G2_what_waited_before_the_first_worker_is_read(bare: Store) -> None:
    ids = bare.enqueue(*(job(n) for n in range(100)))

    bare.run(leases.join(bare.keys, 15_000))

    assert [claim.entry.decode() for claim in bare.claim("a", 200)] == ids


def test_the_first_workers_lease_is_the_queues(bare: Store) -> None:
    first = bare.run(leases.join(bare.keys, 15_000))
    second = bare.run(leases.join(bare.keys, 1000))

    assert (first.lease_ms, second.lease_ms) == (15_000, 15_000)
    assert abs(second.now_ms - first.now_ms) < 60_000


def test_who_finds_the_group_gone_counts_that_once(bare: Store) -> None:
    bare.run(leases.join(bare.keys, 15_000, again=False))
    bare.run(leases.join(bare.keys, 15_000, again=True))
    bare.command("XGROUP", "DESTROY", bare.keys.stream, "workers")

    bare.run(leases.join(bare.keys, 15_000, again=True))
    bare.run(leases.join(bare.keys, 15_000, again=True))

    assert bare.totals() == {"regrouped": 1}


def test_joining_again_moves_nothing(bare: Store) -> None:
    bare.run(leases.join(bare.keys, 15_000))
    bare.enqueue(job(0))
    [claim] = bare.claim("a")

    bare.run(leases.join(bare.keys, 15_000))

    assert bare.pending() == {claim.entry: (b"a", 1)}
    assert bare.claim("a") == []
