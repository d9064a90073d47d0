"""admit: claims start as far as their lanes have room; the others are parked where they stand, uncharged."""

from streamjobs.protocol import lanes as flow
from tests.store.support import CLOCK, LEASE_MS, Store, job_of

KEY = 'c:k:mail account "x"'


def slots(store: Store) -> list[str]:
    return [slot.decode() for slot in store.command("ZRANGE", store.keys.slots, 0, -1)]


def line(store: Store) -> list[str]:
    return [one.decode() for one in store.command("ZRANGE", store.keys.line, 0, -1)]


def test_as_many_start_as_there_are_places(store: Store) -> None:
    claims = store.started(5)

    assert store.admit(*claims, limits={"c:q": "2"}) == ["GO", "GO", "PARKED", "PARKED", "PARKED"]
    assert [store.state(job_of(one)) for one in claims] == ["running"] * 2 + ["waiting"] * 3
    assert slots(store) == [f"c:q\n{one.entry.decode()}/1" for one in claims[:2]]
    assert [one.rpartition("\n")[2] for one in line(store)] == [one.entry.decode() for one in claims[2:]]


def test_one_that_another_holds_is_lost(store: Store) -> None:
    claims = store.started(2)
    store.complete(claims[0])

    assert store.admit(claims[0]) == ["LOST"]
    assert store.admit(claims[1], consumer="b") == ["LOST"]
    assert slots(store) == []


def test_the_same_call_again_changes_nothing(store: Store) -> None:
    claims = store.started(2)

    assert store.admit(*claims) == ["GO", "PARKED"]
    # What was parked is not its any longer.
    assert store.admit(*claims) == ["GO", "LOST"]
    assert len(slots(store)) == 1
    assert len(line(store)) == 1


def test_parked_jobs_keep_their_delivery_count_and_no_start_is_presumed(store: Store) -> None:
    first, second = store.started(2)
    store.admit(first, second, mark=-1)
    store.vacate(first)

    [taken] = store.take("b")

    assert (taken.entry, taken.deliveries, taken.marks, taken.starts) == (second.entry, 2, -1, "")


def test_a_start_after_another_delivery_is_marked(store: Store) -> None:
    [claim] = store.retaken(store.started(1))

    assert store.admit(claim, consumer="b", mark=1, clock=str(CLOCK)) == ["GO"]

    marks, _, *starts = store.hash(store.keys.suspects)[claim.entry.decode()].split(" ")
    assert (marks, starts[-1]) == ("1", f"b@{CLOCK}/2")


def test_the_first_of_the_line_goes_on_with_a_place_kept_for_it(store: Store) -> None:
    first, second, third = store.started(3)
    store.admit(first, second, third)
    store.complete(first)

    assert store.vacate(first) == 1

    assert slots(store) == [f"c:q\n{second.entry.decode()}/0"]
    assert store.command("LLEN", store.keys.bell) == 1
    [taken] = store.take("b")
    assert taken.entry == second.entry
    store.add(1)
    [fresh] = store.claim("c")
    assert store.admit(fresh, consumer="c") == ["PARKED"]
    assert store.admit(taken, consumer="b") == ["GO"]
    assert len(line(store)) == 2


def test_older_jobs_go_first(store: Store) -> None:
    claims = store.started(3)
    assert store.admit(claims[2]) == ["GO"]
    assert store.admit(claims[1]) == ["PARKED"]
    assert store.admit(claims[0]) == ["PARKED"]

    store.vacate(claims[2])

    assert [one.entry for one in store.take("b")] == [claims[0].entry]


def test_a_job_does_not_overtake_the_line(store: Store) -> None:
    """Even where a limit was raised, and nobody has looked at the lane yet."""
    claims = store.started(3)
    store.admit(claims[0], claims[1])
    store.command("HSET", store.keys.config, "limit:c:q", "2")

    assert store.admit(claims[2]) == ["PARKED"]
    assert [one.entry for one in store.take("b")] == [claims[1].entry]


def test_keys_have_lanes_of_their_own(store: Store) -> None:
    claims = store.started(4)
    other = 'c:k:mail account "y"'

    assert store.admit(claims[0], claims[1], lanes=[KEY]) == ["GO", "PARKED"]
    assert store.admit(claims[2], claims[3], lanes=[other]) == ["GO", "PARKED"]
    assert store.vacate(claims[2], lanes=[other]) == 1
    assert [one.entry for one in store.take("b")] == [claims[3].entry]


def test_who_waits_in_a_wide_lane_keeps_its_narrow_one(store: Store) -> None:
    busy, waiting, next_one = store.started(3)
    store.admit(busy, lanes=["c:q"])

    assert store.admit(waiting, lanes=[KEY, "c:q"]) == ["PARKED"]
    assert store.admit(next_one, lanes=[KEY]) == ["PARKED"]

    assert store.vacate(busy) == 1
    [taken] = store.take("b")
    assert taken.entry == waiting.entry
    assert store.admit(taken, consumer="b", lanes=[KEY, "c:q"]) == ["GO"]
    assert slots(store) == sorted(f"{lane}\n{waiting.entry.decode()}/2" for lane in (KEY, "c:q"))


def test_who_waits_in_a_narrow_lane_keeps_nothing_of_the_wide_one(store: Store) -> None:
    """Its place in the wide lane goes to the next at once."""
    busy, hot, other = store.started(3)
    lanes = [KEY, "c:q"]
    store.admit(busy, lanes=lanes)
    # The hot one waits for the queue first, and its key is taken before it comes back.
    store.admit(hot, other, lanes=["c:q"])
    store.command("HSET", store.keys.config, "limit:c:q", "2")
    store.promote(clock=str(CLOCK * 2))
    [taken] = store.take("b")
    assert taken.entry == hot.entry

    assert store.admit(taken, consumer="b", lanes=lanes) == ["PARKED"]

    assert [one.entry for one in store.take("b")] == [other.entry]
    assert slots(store) == sorted(
        [f"{KEY}\n{busy.entry.decode()}/1", f"c:q\n{busy.entry.decode()}/1", f"c:q\n{other.entry.decode()}/0"]
    )


def test_a_takeover_takes_the_slot_along(store: Store) -> None:
    first, second = store.started(2)
    store.admit(first, second)
    [again] = store.retaken([first])

    assert store.admit(again, consumer="b") == ["GO"]
    assert slots(store) == [f"c:q\n{first.entry.decode()}/2"]


def test_inv_I5_a_zombie_frees_nothing(store: Store) -> None:
    first, second = store.started(2)
    store.admit(first, second)
    [again] = store.retaken([first])
    store.admit(again, consumer="b")

    assert store.vacate(first) == 0
    assert store.take("c") == []
    assert store.vacate(again) == 1


def test_a_released_start_keeps_its_place_for_who_takes_it(store: Store) -> None:
    first, second = store.started(2)
    store.admit(first, second)
    store.release(first)

    [taken] = store.take("b")

    assert store.admit(taken, consumer="b") == ["GO"]
    assert store.state(job_of(second)) == "waiting"


def test_a_rate_lets_a_burst_start_and_then_one_per_interval(store: Store) -> None:
    claims = store.started(10)
    rate = {"r:q": "3 100000"}

    def admit(n: int, at: int) -> list[str]:
        return store.admit(claims[n], lanes=["r:q"], limits=rate, clock=str(CLOCK + at))

    assert [admit(n, 0) for n in range(4)] == [["GO"]] * 3 + [["PARKED"]]
    # The parked one is older than whoever comes next.
    assert admit(4, 100) == ["PARKED"]


def test_parked_for_a_rate_goes_on_when_its_token_comes(store: Store) -> None:
    claims = store.started(3)
    rate = {"r:q": "1 100000"}
    words = store.admit(*claims, lanes=["r:q"], limits=rate, clock=str(CLOCK))
    assert words == ["GO", "PARKED", "PARKED"]

    early = store.promote(clock=str(CLOCK + 99))
    assert (early.woken, early.next_ms) == (0, 1)
    woken = store.promote(clock=str(CLOCK + 100))
    assert woken.woken == 1

    [taken] = store.take("b")
    assert taken.entry == claims[1].entry
    # The token is kept for it, whoever comes first.
    store.add(1)
    [fresh] = store.claim("c")
    at = str(CLOCK + 101)
    assert store.admit(fresh, consumer="c", lanes=["r:q"], limits=rate, clock=at) == ["PARKED"]
    assert store.admit(taken, consumer="b", lanes=["r:q"], limits=rate, clock=at) == ["GO"]
    # It is paid from its start on; a lane is looked at every 25 ms at the soonest.
    assert store.promote(clock=str(CLOCK + 200)).next_ms == 25
    assert store.promote(clock=str(CLOCK + 225)).woken == 1


def test_a_lost_place_is_free_a_lease_after_it_was_seen(store: Store) -> None:
    """Its holder settled and died before it could vacate: until then it might still run."""
    first, second = store.started(2)
    store.admit(first, second, clock=str(CLOCK))
    store.complete(first)

    assert store.promote(clock=str(CLOCK + 1)).woken == 0
    assert store.promote(clock=str(CLOCK + LEASE_MS)).woken == 0
    assert store.promote(clock=str(CLOCK + 1 + LEASE_MS)).woken == 1


def test_a_cancelled_job_leaves_the_line_when_its_turn_comes(store: Store) -> None:
    first, second, third = store.started(3)
    store.admit(first, second, third)

    assert store.cancel(job_of(second)) == ["WAITING"]
    assert store.vacate(first) == 1
    assert [one.entry for one in store.take("b")] == [third.entry]


def test_a_place_kept_for_a_job_that_was_cancelled_is_free_at_once(store: Store) -> None:
    first, second, third = store.started(3)
    store.admit(first, second, third)
    store.vacate(first)
    store.cancel(job_of(second))

    assert store.promote().woken == 1
    assert [one.entry for one in store.take("b")] == [third.entry]


def test_a_lost_line_is_found_by_a_sweep(store: Store) -> None:
    first, second, third = store.started(3)
    store.admit(first, second, third)
    store.silence([second, third], "parked")
    assert store.sweep("b") == []

    store.command("DEL", store.keys.line)

    assert [one.entry for one in store.sweep("b")] == [second.entry, third.entry]
    assert [one.starts for one in store.sweep("b")] == []


def test_lost_times_are_found_by_chance(store: Store) -> None:
    claims = store.started(2)
    rate = {"r:q": "1 100000"}
    store.admit(*claims, lanes=["r:q"], limits=rate, clock=str(CLOCK))
    store.command("DEL", store.keys.wake)

    store.promote(clock=str(CLOCK + 100))

    assert store.promote(clock=str(CLOCK + 100)).woken == 1


def test_a_limit_of_an_operator_goes_before_the_codes(store: Store) -> None:
    claims = store.started(6)
    store.limit("c:q", "2")
    assert store.admit(*claims[:3]) == ["GO", "GO", "PARKED"]

    store.limit("c:q", "off")
    assert store.promote().woken == 1
    assert store.admit(claims[3]) == ["GO"]

    store.limit("c:q", None)
    assert store.admit(claims[4]) == ["PARKED"]
    assert store.hash(store.keys.config)["limited"] == "3"


def test_a_limit_per_key_reaches_every_key_that_has_somebody_waiting(store: Store) -> None:
    lanes = [f"c:k:mail account {n}" for n in range(450)]
    claims = store.started(900)
    for n, lane in enumerate(lanes):
        store.admit(claims[2 * n], claims[2 * n + 1], lanes=[lane])

    store.limit("c:k:mail account", "2")

    woken = 0
    while (promoted := store.promote()).next_ms == 0:
        woken += promoted.woken
    assert woken + promoted.woken == 450


def test_the_crowd_of_the_whole_queue_is_told(store: Store) -> None:
    claims = store.started(3)
    store.admit(*claims[:2])
    entrant = flow.Entrant(claims[2].entry, 1, flow.order(job_of(claims[2])), ["c:q"])

    assert store.run(flow.admit(store.keys, "a", {"c:q": "1"}, [entrant])).crowd == 2


def test_a_waiting_job_costs_nothing(real: Store) -> None:
    """Between two looks, which are a lease apart, a promotion passes a full lane by."""
    claims = real.started(300)
    real.admit(*claims)

    assert real.promote().next_ms > LEASE_MS - 5000


def test_what_is_not_ours_stops_nobody(store: Store) -> None:
    first, second = store.started(2)
    store.admit(first, second)
    for key in (store.keys.slots, store.keys.line):
        store.command("ZADD", key, 0, "rubbish", 0, "c:q\nrubbish")
    store.command("ZADD", store.keys.wake, 0, "rubbish")
    store.complete(first)

    for _ in range(10):
        store.promote()

    assert store.vacate(first) == 1
    assert [one.entry for one in store.take("b")] == [second.entry]
    assert store.command("ZRANGE", store.keys.line, 0, -1) == []
