"""Counts that operators trust: exact at rest, O(1), and never off after any move."""

from tests.store.support import Store, death, delayed, ending, job_of, later


def counts(store: Store) -> dict[str, int]:
    """Return the counts as stats take them: each one O(1)."""
    pending = store.command("XPENDING", store.keys.stream, "workers")[0]
    released = store.command("SCARD", store.keys.released)
    return {
        "waiting": store.depth() - pending + released,
        "running": pending - released,
        "scheduled": store.command("ZCARD", store.keys.scheduled),
        "retrying": store.command("ZCARD", store.keys.retries),
        "dead": store.command("XLEN", store.keys.dead),
    }


def test_case_G7_counts_equal_the_truth_after_every_move(store: Store) -> None:
    def expect(waiting: int, running: int, scheduled: int = 0, retrying: int = 0, dead: int = 0) -> None:
        found = counts(store)
        assert list(found.values()) == [waiting, running, scheduled, retrying, dead], found

    store.add(20)
    expect(20, 0)
    a, b, c, d, e, f, g, h = store.claim(count=8)
    expect(12, 8)
    store.complete(a)
    expect(12, 7)
    store.retry(later(b))
    store.snooze(later(c))
    expect(12, 5, 1, 1)
    store.bury(death(d))
    expect(12, 4, 1, 1, 1)
    store.release(e, f, mark=1)
    expect(14, 2, 1, 1, 1)
    store.complete(e)
    expect(13, 2, 1, 1, 1)
    [f] = store.take("b")
    expect(12, 3, 1, 1, 1)
    store.release(f, consumer="b")
    store.sweep("c")
    expect(12, 3, 1, 1, 1)
    store.release(g, mark=1)
    store.cancel(g.entry.decode())
    expect(12, 2, 1, 1, 1)
    store.silence([h])
    store.sweep("b")
    expect(12, 2, 1, 1, 1)
    store.promote(clock="9000000000000")
    expect(14, 2, 0, 0, 1)
    store.replay(job_of(d))
    expect(15, 2, 0, 0, 0)


def test_counts_of_states_add_up_to_what_went_in(store: Store) -> None:
    """Invariant I19: enqueued + replayed = done + dead + cancelled + live, all from what operators see."""
    store.add(10)
    store.schedule(*(delayed(n, at_ms=1) for n in range(5)))
    store.promote()
    claims = store.claim()
    store.complete_full(*map(ending, claims[:6]))
    store.bury(*map(death, claims[6:9]))
    store.replay(job_of(claims[6]))
    store.cancel(*map(job_of, claims[9:11]))
    store.retry(later(claims[11]))
    store.release(claims[12], mark=1)

    totals, live = store.totals(), counts(store)
    in_ = totals["enqueued"] + totals["replayed"]
    out = totals["done"] + totals["dead"] + totals["cancelled"]
    assert in_ == out + sum(live.values()) - live["dead"]
    assert live["dead"] == totals["dead"] - totals["replayed"]


def test_after_a_lost_group_counts_are_exact_once_the_released_were_taken(store: Store) -> None:
    claims = store.started(4)
    store.release(*claims[:2], mark=1)
    store.lose_group()
    store.make_group()

    store.take("b")

    assert counts(store)["waiting"] == 4
    assert counts(store)["running"] == 0


def test_age_of_the_oldest_is_in_its_id(store: Store) -> None:
    """Smallest pending entry first: what waits longest is found in O(1)."""
    ids = store.add(3)
    store.complete(*store.claim(count=1))

    [[oldest, _]] = store.command("XRANGE", store.keys.stream, "-", "+", "COUNT", 1)

    assert oldest.decode() == ids[1]
