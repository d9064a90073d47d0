"""reclaim: silent claims go to another worker, each once, and a sweep finds them all."""

from concurrent.futures import ThreadPoolExecutor

from streamjobs.core.job import Claim
from streamjobs.protocol import leases
from tests.store.support import CLOCK, LEASE_MS, Store


def test_a_silent_claim_goes_over_with_one_delivery_more(store: Store) -> None:
    [claim] = store.started(1)
    store.silence([claim])

    [taken] = store.reclaim("b").claims

    assert (taken.entry, taken.kind, taken.body, taken.deliveries) == (claim.entry, b"mail", b'{"n":0}', 2)
    assert store.pending() == {claim.entry: (b"b", 2)}
    assert store.totals()["reclaimed"] == 1


def test_a_sweep_says_that_nothing_at_all_is_pending(store: Store) -> None:
    store.make_group()
    store.add(1)
    assert store.reclaim("b") == leases.Swept("-", [], empty=True)
    store.claim("a")
    assert not store.reclaim("b").empty


def test_a_claim_within_its_lease_stays(store: Store) -> None:
    [claim] = store.started(1)

    swept = store.reclaim("b")

    assert swept == leases.Swept("-", [], empty=False)
    assert store.pending() == {claim.entry: (b"a", 1)}


def test_lease_begins_anew_for_the_new_holder(store: Store) -> None:
    store.silence(store.started(1))
    store.reclaim("b")

    assert store.reclaim("c").claims == []


def test_names_the_former_holder_and_when_it_was_last_heard_of(store: Store) -> None:
    store.silence(store.started(1), ms=60_000)
    call = leases.reclaim(store.keys, "b", LEASE_MS, "-", 10, 0.0, str(CLOCK))

    [taken] = store.run(call).claims

    holder, at, delivery = taken.starts.replace("/", "@").split("@")
    assert (holder, delivery) == ("a", "1")
    assert CLOCK - 61_000 < int(at) <= CLOCK - 60_000


def test_takes_at_most_what_was_asked_for_and_goes_on_there(store: Store) -> None:
    claims = store.started(5)
    store.silence(claims)

    first = store.reclaim("b", 2)
    second = store.reclaim("b", 2, first.cursor)
    third = store.reclaim("b", 2, second.cursor)

    assert [len(step.claims) for step in (first, second, third)] == [2, 2, 1]
    assert first.cursor == claims[2].entry.decode() + " a"
    assert third.cursor == "-"
    assert [one.entry for step in (first, second, third) for one in step.claims] == [c.entry for c in claims]


def test_fault_F47_silent_claims_behind_many_live_ones_are_found_in_one_sweep(store: Store) -> None:
    """M8: the server's own command gives up after ten times COUNT live entries."""
    claims = store.started(leases.RECLAIM_WINDOW + 30)
    store.silence(claims[-5:])

    found = store.sweep(most=1)

    assert [one.entry for one in found] == [claim.entry for claim in claims[-5:]]


def test_an_empty_step_is_not_the_end(store: Store) -> None:
    claims = store.started(leases.RECLAIM_WINDOW + 1)
    store.silence(claims[-1:])

    step = store.reclaim("b")

    assert step.claims == []
    assert step.cursor == "(" + claims[-2].entry.decode() + " a"


def test_among_50_000_healthy_claims_a_step_is_as_short_as_ever_and_one_sweep_finds_the_silent_one(real: Store) -> None:
    """Of a hundred live workers; what a step passes and asks for does not grow with what there is."""
    real.reclaim("b")
    claims: list[Claim] = []
    for n in range(100):
        real.add(500)
        claims = real.claim(f"live-{n:02}")
    last = claims[-1]
    real.silence([last], "live-99")
    before, steps, found, cursor = calls(real), 0, [], leases.SWEEP_BEGIN

    while steps == 0 or cursor != leases.SWEEP_BEGIN:
        swept = real.reclaim("b", leases.RECLAIM_MOST, cursor)
        steps, found, cursor = steps + 1, found + swept.claims, swept.cursor
    spent = {name: count - before.get(name, 0) for name, count in calls(real).items()}

    assert [one.entry for one in found] == [last.entry]
    # The last step finds that its window was the last one.
    assert steps == spent["evalsha"] == 50_000 // leases.RECLAIM_WINDOW + 1
    assert (spent["xclaim"], spent["xack"]) == (1, steps)
    # Who holds what, the rest of one holder's claims, and the first of the next one's.
    assert spent["xpending"] <= 3 * steps


def calls(store: Store) -> dict[str, int]:
    """Return how often the server has run each command, those in scripts included."""
    lines = store.command("INFO", "commandstats").decode().splitlines()
    rows = [line.removeprefix("cmdstat_").split(":calls=") for line in lines if ":calls=" in line]
    return {name: int(rest.partition(",")[0]) for name, rest in rows}


def test_a_window_that_just_fits_costs_one_empty_step(store: Store) -> None:
    store.started(leases.RECLAIM_WINDOW)

    step = store.reclaim("b")

    assert step.cursor != "-"
    assert store.reclaim("b", cursor=step.cursor) == leases.Swept("-", [], empty=False)


def test_case_A5_eight_sweeps_at_once_claim_each_entry_once(store: Store) -> None:
    claims = store.started(100)
    store.silence(claims)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: store.sweep(f"w{n}", 7), range(8)))

    taken = [one.entry for claims in found for one in claims]
    assert sorted(taken) == sorted(claim.entry for claim in claims)
    assert {count for _, count in store.pending().values()} == {2}


def test_entry_deleted_by_hand_is_acknowledged_away(store: Store) -> None:
    claims = store.started(2)
    store.command("HSET", store.keys.suspects, claims[0].entry, "1 0")
    store.silence(claims)
    store.command("XDEL", store.keys.stream, claims[0].entry)

    assert [one.entry for one in store.sweep()] == [claims[1].entry]
    assert set(store.pending()) == {claims[1].entry}
    assert store.left() == {"stream"}


def test_a_released_claim_is_found_too_and_no_start_is_presumed(store: Store) -> None:
    [claim] = store.started(1)
    store.release(claim, mark=1)

    [taken] = store.reclaim("b").claims

    assert (taken.deliveries, taken.marks, taken.starts) == (2, -1, "")
    assert store.command("SCARD", store.keys.released) == 0
    assert store.take("c") == []


def test_suspect_value_comes_along(store: Store) -> None:
    [claim] = store.retaken(store.started(1))
    store.suspect(claim, consumer="b", clock="77")

    [again] = store.retaken([claim], "b", "c")

    assert (again.deliveries, again.marks, again.releases) == (3, 1, 0)
    assert again.starts.split(" ")[1] == "b@77/2"


def test_case_A12_needs_no_registry_of_workers(store: Store) -> None:
    store.promote("a")
    claims = store.started(3)
    store.command("DEL", store.keys.workers, store.keys.promoter)
    store.silence(claims)

    assert len(store.sweep()) == 3


def test_own_silent_claims_are_found_too(store: Store) -> None:
    """A claim whose reply was lost belongs to a worker that knows nothing of it."""
    store.silence(store.started(1))

    [taken] = store.sweep("a")

    assert taken.deliveries == 2
    assert store.pending() == {taken.entry: (b"a", 2)}


def test_asked_for_none_it_claims_none_and_keeps_its_place(store: Store) -> None:
    claims = store.started(2)
    store.silence(claims)

    assert store.reclaim("b", 0) == leases.Swept(claims[0].entry.decode() + " a", [], empty=False)


def test_a_sweep_goes_from_holder_to_holder(store: Store) -> None:
    store.add(6)
    claims = [store.claim(consumer, 2) for consumer in "cab"]
    for consumer, held in zip("cab", claims, strict=True):
        store.silence(held, consumer)

    steps = [store.reclaim("d", 3)]
    while steps[-1].cursor != "-":
        steps.append(store.reclaim("d", 3, steps[-1].cursor))

    taken = [one.entry for step in steps for one in step.claims]
    assert [len(step.claims) for step in steps] == [3, 3]
    assert sorted(taken) == sorted(one.entry for held in claims for one in held)
    assert {one.starts[0] for step in steps for one in step.claims} == {"a", "b", "c"}


def test_jobs_that_wait_in_lanes_are_passed_over(real: Store) -> None:
    """However many there are: a sweep of a queue in which 2,000 wait looks at none of them."""
    for _ in range(4):
        real.admit(*real.started(500))
    parked = [entry for entry, (holder, _) in real.pending().items() if holder == b"parked"]
    real.command("XCLAIM", real.keys.stream, "workers", "parked", 0, *parked, "IDLE", 60_000, "JUSTID")

    assert real.reclaim("b", cursor="-") == leases.Swept("-", [], empty=False)
