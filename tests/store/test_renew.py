"""renew: leases begin anew for those who hold them, and only for those."""

from streamjobs.protocol import intake, leases
from tests.store.support import Store, job, later


def idle_ms(store: Store) -> list[int]:
    return [row[2] for row in store.command("XPENDING", store.keys.stream, "workers", "-", "+", 100)]


def test_lease_begins_anew_and_the_delivery_count_stays(store: Store) -> None:
    claims = store.started(3)
    store.silence(claims)

    assert store.renew(*claims) == {}
    assert max(idle_ms(store)) < 30_000
    assert {count for _, count in store.pending().values()} == {1}
    assert store.sweep("b") == []


def test_order_of_the_batch_does_not_matter(store: Store) -> None:
    claims = store.started(20)
    store.silence(claims)

    assert store.renew(*reversed(claims)) == {}
    assert max(idle_ms(store)) < 30_000


def test_who_lost_its_claim_does_not_get_it_back(store: Store) -> None:
    """Case B2: a plain XCLAIM by the former holder would steal."""
    claims = store.started(3)
    store.silence(claims[1:2])
    [taken] = store.sweep("b")

    assert store.renew(*claims) == {1: "LOST"}
    assert store.pending()[taken.entry] == (b"b", 2)


def test_an_earlier_claim_of_the_same_holder_is_lost(store: Store) -> None:
    [claim] = store.started(1)
    [again] = store.retaken([claim], "a", "a")

    assert store.renew(claim) == {0: "LOST"}
    assert store.renew(again) == {}


def test_a_claim_that_was_given_back_is_lost(store: Store) -> None:
    """A renewal that was under way when the claim was released must not hide it for a lease."""
    [claim] = store.started(1)
    store.release(claim, mark=1)

    assert store.renew(claim) == {0: "LOST"}
    assert [one.deliveries for one in store.take("b")] == [2]


def test_an_entry_that_is_gone_is_cancelled(store: Store) -> None:
    claims = store.started(3)
    store.cancel(claims[0].entry.decode())
    store.complete(claims[2])

    assert store.renew(*claims) == {0: "CANCELLED", 2: "CANCELLED"}


def test_one_that_was_postponed_is_cancelled(store: Store) -> None:
    [claim] = store.started(1)
    store.retry(later(claim))

    assert store.renew(claim) == {0: "CANCELLED"}


def test_after_a_lost_group_nobody_holds_anything(store: Store) -> None:
    [claim] = store.started(1)
    store.lose_group()
    store.make_group()

    assert store.renew(claim) == {0: "LOST"}
    assert store.state(claim.entry.decode()) == "waiting"


def test_dedupe_key_does_not_expire_under_a_long_job(store: Store) -> None:
    """Case E5."""
    [one] = store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    store.command("PEXPIRE", store.keys.dedupe("k"), 60_000)

    store.run(leases.renew(store.keys, "a", [leases.Renewal(claim.entry, 1, one, "k")]))

    assert store.command("PTTL", store.keys.dedupe("k")) > intake.DEDUPE_TTL_MS - 10_000


def test_dedupe_key_of_another_job_is_left_alone(store: Store) -> None:
    [one] = store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    store.command("SET", store.keys.dedupe("k"), "other", "PX", 60_000)

    store.run(leases.renew(store.keys, "a", [leases.Renewal(claim.entry, 1, one, "k")]))

    assert store.command("PTTL", store.keys.dedupe("k")) <= 60_000


def test_dedupe_key_that_is_gone_is_not_made_again(store: Store) -> None:
    [claim] = store.started(1)

    store.run(leases.renew(store.keys, "a", [leases.Renewal(claim.entry, 1, claim.entry.decode(), "k")]))

    assert store.command("EXISTS", store.keys.dedupe("k")) == 0


def test_five_hundred_at_once(store: Store) -> None:
    claims = store.started(500)
    store.silence(claims)

    assert store.renew(*claims) == {}
    assert store.sweep("b") == []
