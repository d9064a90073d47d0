"""trim: the oldest dead jobs go where no more are to be kept, in bounded steps, each counted."""

from typing import Any

import pytest

from streamjobs.protocol import config, letters
from streamjobs.protocol.letters import Trimmed
from tests.store.support import CLOCK, Store, death, job_of

DAY_MS = 86_400_000


def keep(store: Store, value: str) -> None:
    store.run(config.declare(store.keys, config.KEEP_DEAD, value))


def rows(store: Store, *ages_ms: int, kind: str = "mail") -> None:
    """Let jobs be dead that died so long before the clock, the oldest first."""
    for number, age in enumerate(ages_ms):
        entry = f"{CLOCK - age}-{number}"
        store.command("XADD", store.keys.dead, entry, "id", f"{CLOCK - age}-9", "kind", kind, "body", "{}")
        store.command("HSET", store.keys.dead_ids, f"{CLOCK - age}-9", entry)


def trim(store: Store, most: int = 500) -> Trimmed:
    return store.run(letters.trim(store.keys, most, str(CLOCK)))


def left(store: Store) -> list[str]:
    return [row["id"].decode() for row in store.dead_rows()]


def test_all_are_kept_where_nothing_is_said(store: Store) -> None:
    rows(store, 900 * DAY_MS, 1)

    assert trim(store) == Trimmed(0, False, "")
    assert len(left(store)) == 2


@pytest.mark.parametrize("value", ["off", "", "many", "5 m", "-1", "1.5"])
def test_all_are_kept_where_what_is_said_is_no_number(store: Store, value: str) -> None:
    rows(store, 900 * DAY_MS, 1)
    keep(store, value)

    assert trim(store).deleted == 0


def test_the_newest_are_kept_by_count(store: Store) -> None:
    rows(store, 5, 4, 3, 2, 1)
    keep(store, "2")

    assert trim(store) == Trimmed(3, False, "2")

    assert left(store) == [f"{CLOCK - 2}-9", f"{CLOCK - 1}-9"]
    assert set(store.hash(store.keys.dead_ids)) == set(left(store))
    assert trim(store) == Trimmed(0, False, "2")


def test_the_newest_are_kept_by_age(store: Store) -> None:
    rows(store, 2 * DAY_MS, DAY_MS + 1, DAY_MS, 1)
    keep(store, f"{DAY_MS}ms")

    assert trim(store) == Trimmed(2, False, f"{DAY_MS}ms")

    assert left(store) == [f"{CLOCK - DAY_MS}-9", f"{CLOCK - 1}-9"]


def test_what_an_operator_set_goes_first(store: Store) -> None:
    rows(store, 3, 2, 1)
    keep(store, "1")
    store.run(config.override(store.keys, config.KEEP_DEAD, config.OFF))
    assert trim(store).deleted == 0

    store.run(config.override(store.keys, config.KEEP_DEAD, "2"))
    assert trim(store).deleted == 1

    store.run(config.override(store.keys, config.KEEP_DEAD, None))
    assert trim(store).deleted == 1
    assert len(left(store)) == 1


def test_steps_are_bounded_by_number_and_by_bytes(store: Store) -> None:
    rows(store, *range(100, 0, -1))
    keep(store, "1")

    assert [trim(store, 45) for _ in range(3)] == [
        Trimmed(45, True, "1"), Trimmed(45, True, "1"), Trimmed(9, False, "1"),
    ]  # fmt: skip
    for number in range(60):
        store.command("XADD", store.keys.dead, f"{CLOCK + number}-0", "id", f"1-{number}", "body", "x" * 100_000)
    assert trim(store) == Trimmed(20, True, "1")


def test_all_of_them_can_be_too_old(store: Store) -> None:
    rows(store, *[2 * DAY_MS] * 30)
    keep(store, f"{DAY_MS}ms")

    assert trim(store) == Trimmed(30, False, f"{DAY_MS}ms")
    assert store.left() == set()
    assert trim(store).deleted == 0


def test_what_goes_is_counted_by_kind(store: Store) -> None:
    rows(store, 9, 8, kind="mail")
    rows(store, 7, 6, kind="web")
    keep(store, "1")

    trim(store)

    assert store.totals() == {"trimmed": 3}
    assert store.minute() == {"trimmed:mail": 2, "trimmed:web": 1}


def test_rows_of_others_go_too(store: Store) -> None:
    store.command("XADD", store.keys.dead, "1-0", "note", "hello")
    store.command("XADD", store.keys.dead, "2-0", "id", "moved-on")
    store.command("HSET", store.keys.dead_ids, "moved-on", "3-0")
    rows(store, 1)
    keep(store, "1")

    assert trim(store).deleted == 2
    assert store.hash(store.keys.dead_ids)["moved-on"] == "3-0"
    store.command("HDEL", store.keys.dead_ids, "moved-on")


def test_a_trimmed_job_is_finished_and_can_be_neither_replayed_nor_purged(store: Store) -> None:
    first, second = store.started(2)
    store.bury(death(first), death(second))
    entry, one = store.dead_entry(job_of(first)), job_of(first)
    keep(store, "1")

    assert store.run(letters.trim(store.keys)).deleted == 1

    assert (store.state(one), store.state(job_of(second))) == ("finished", "dead")
    replay: Any = letters.replay(store.keys, [letters.Replay(entry, one, b"")])
    assert store.run(replay) == store.run(letters.purge(store.keys, [letters.Purge(entry, one)])) == ["GONE"]
    assert store.depth() == 0


def test_a_job_that_began_anew_is_handed_over_though_its_row_was_trimmed(store: Store) -> None:
    [claim] = store.started(1)
    store.bury(death(claim))
    rows(store, -DAY_MS)
    entry, one = store.dead_entry(job_of(claim)), job_of(claim)
    [word] = store.run(letters.promise(store.keys, "q", [(entry, one)], str(CLOCK)))
    promised = letters.promised(word)
    assert promised is not None
    keep(store, "1")
    trim(store)

    adoption = letters.Adoption(f"q:{one}", entry, promised, b"mail", b"{}", b"")
    [became] = store.run(letters.adopt(store.keys, [adoption], str(CLOCK)))

    assert store.run(letters.handover(store.keys, [letters.Handover(entry, one, promised, f"q:{became}")])) == ["GONE"]
    assert store.state(became) == "waiting"


def test_rows_to_which_no_job_leads_go_uncounted(store: Store) -> None:
    store.command("XADD", store.keys.dead, f"{CLOCK - DAY_MS}-0", "id", "1-0", "kind", "mail")
    rows(store, 5)
    store.command("XADD", store.keys.dead, f"{CLOCK}-0", "note", "hello")
    keep(store, "0")

    assert trim(store).deleted == 3
    assert store.totals() == {"trimmed": 1}
