"""bury: a job goes dead with its reason, its history and every byte it came with."""

import pytest

from streamjobs.protocol import settle
from tests.store.support import CLOCK, Store, death, delayed, ending, job, job_of


def test_dead_row_holds_all_that_an_operator_needs(store: Store) -> None:
    [one] = store.enqueue(job(1, parks=2))
    [claim] = store.claim()
    fatal = settle.Death(ending(claim), "exhausted", "ValueError: nö", 8, b'[{"n":8}]')

    assert store.run(settle.bury(store.keys, "a", [("mail", {}, [fatal])], str(CLOCK))) == {}

    assert store.dead_rows() == [
        {
            "id": one.encode(),
            "kind": b"mail",
            "body": b'{"n":1}',
            "meta": b'{"p":2}',
            "reason": b"exhausted",
            "error": "ValueError: nö".encode(),
            "attempts": b"8",
            "history": b'[{"n":8}]',
            "died_at": str(CLOCK).encode(),
        }
    ]
    assert store.left() == {"dead", "dead:ids"}
    assert store.state(one) == "dead"


def test_job_that_had_moved_is_dead_under_its_id(store: Store) -> None:
    [one] = store.schedule(delayed(1, at_ms=1))
    store.promote()
    [claim] = store.claim()

    store.bury(death(claim))

    assert store.left() == {"dead", "dead:ids"}
    assert store.lookup(one)["id"].decode() == one


def test_former_holder_buries_nothing(store: Store) -> None:
    claims = store.started(1)
    [taken] = store.retaken(claims)

    assert store.bury(death(claims[0])) == {0: "LOST"}
    assert store.pending() == {taken.entry: (b"b", 2)}
    assert store.left() == {"stream"}


def test_settled_claim_is_not_buried(store: Store) -> None:
    [claim] = store.started(1)
    store.complete(claim)

    assert store.bury(death(claim)) == {0: "LOST"}
    assert store.left() == set()


def test_second_copy_buries_nothing_more(store: Store) -> None:
    [claim] = store.started(1)

    assert store.bury(death(claim)) == {}
    assert store.bury(death(claim)) == {0: "LOST"}
    assert len(store.dead_rows()) == 1


def test_case_E3_dedupe_key_is_free_at_once(store: Store) -> None:
    store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()

    store.bury(death(claim, dedupe_key="k"))

    [second] = store.enqueue(job(2, dedupe_key="k"))
    assert store.state(second) == "waiting"


def test_dedupe_key_of_another_job_is_left_alone(store: Store) -> None:
    store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    store.command("SET", store.keys.dedupe("k"), "other", "PX", 60_000)

    store.bury(death(claim, dedupe_key="k"))

    assert store.command("GET", store.keys.dedupe("k")) == b"other"


def test_how_it_ended_is_kept_and_announced_for_those_who_wait(store: Store) -> None:
    [one] = store.enqueue(job(1, result_ttl_ms=60_000))
    [claim] = store.claim()

    with store.executor.listen(store.keys.done, 5) as messages:
        store.bury(death(claim, result_ttl_ms=60_000, result=b"failed"))
        assert next(iter(messages)).decode() == one

    assert store.command("GET", store.keys.result(one)) == b"failed"
    assert store.state(one) == "dead"


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({b"kind": b"mail"}, {"kind": b"mail", "body": b"", "meta": b""}),
        ({b"body": b"\xff\x00"}, {"kind": b"", "body": b"\xff\x00"}),
        ({b"x": b"\xfe", b"kind": b"k"}, {"kind": b"k", "x:x": b"\xfe"}),
        ({b"meta": b"{", b"kind": b"k", b"body": b"b", b"": b""}, {"meta": b"{", "x:": b""}),
        ({b"id": b"1", b"reason": b"r"}, {"reason": b"undecodable", "x:id": b"1", "x:reason": b"r"}),
    ],
    ids=["kind alone", "body alone", "foreign", "all and more", "names of ours"],
)
def test_case_C7_odd_entries_keep_every_byte(store: Store, fields: dict[bytes, bytes], kept: dict[str, bytes]) -> None:
    flat = [word for pair in fields.items() for word in pair]
    store.command("XADD", store.keys.stream, "*", *flat)
    [claim] = store.claim()
    one = claim.entry.decode()
    undecodable = settle.Death(settle.Ending(claim.entry, 1, one), "undecodable", "body: ...", 0, b"[]")

    store.bury(undecodable)

    [row] = store.dead_rows()
    assert {name: row[name] for name in kept} == kept
    assert row["id"].decode() == one


def test_an_entry_of_thousands_of_fields_is_buried(store: Store) -> None:
    flat = [word for n in range(5000) for word in (f"f{n}", "v")]
    store.command("XADD", store.keys.stream, "*", *flat)
    [claim] = store.claim()

    assert store.bury(death(claim)) == {}
    assert store.left() == {"dead", "dead:ids"}


def test_counts_what_changed_and_scales_the_sums(store: Store) -> None:
    claims = store.started(4)
    store.complete(claims[3])
    store.command("DEL", store.keys.totals)
    groups = [("mail", {"ms": 10}, [death(claims[0])]), ("web", {"bug": 3}, [death(c) for c in claims[1:]])]

    assert store.run(settle.bury(store.keys, "a", groups, str(CLOCK))) == {3: "LOST"}

    assert store.totals() == {"dead": 3, "lost": 1}
    assert store.minute() == {"dead:mail": 1, "ms:mail": 10, "dead:web": 2, "bug:web": 2, "lost:": 1}


def test_five_hundred_at_once(store: Store) -> None:
    claims = store.started(500)

    assert store.bury(*(death(claim) for claim in claims)) == {}
    assert {row["id"].decode() for row in store.dead_rows()} == {job_of(claim) for claim in claims}
