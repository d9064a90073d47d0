"""Dead jobs become lines of text and dead jobs again, byte by byte; whatever is damaged is named."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs.client.talk import talk
from streamjobs.core.errors import UsageError
from streamjobs.operate import batches
from streamjobs.operate.carry import Restored, line, parse, restore
from streamjobs.operate.dead import purge
from streamjobs.operate.jobs import read_meta
from streamjobs.operate.replay import How, replay
from streamjobs.operate.scan import Named, Scan
from streamjobs.operate.selection import Selection
from streamjobs.protocol import intake, letters
from streamjobs.protocol.keys import QueueKeys
from tests.operate.test_scan import all_of, sibling
from tests.store.support import Store, death

NOW_MS = 2_000_000_000_000
KEYS = QueueKeys("ns", "mail")
ROW = {
    "kind": b"mail", "body": b'{"n":1e400}', "meta": b"", "reason": b"permanent", "error": b"ValueError: no",
    "attempts": b"1", "history": b"[]", "died_at": b"1",
}  # fmt: skip


def exported(store: Store) -> list[bytes]:
    """Return the lines of all dead jobs."""
    source = Scan([store.keys], Selection(), first=2)
    lines: list[bytes] = []
    while rows := talk(store.executor, source.rows()):
        lines += filter(None, (line(*row) for row in rows))
    return lines


def raw(store: Store) -> list[Any]:
    """Return the rows of the dead stream as they are, the newest first, without their entries."""
    return [fields for _, fields in store.command("XREVRANGE", store.keys.dead, "+", "-")]


def test_rows_come_back_byte_by_byte_in_their_order(store: Store) -> None:
    """Case H1: what no JSON can hold included."""
    store.make_group()
    store.add(2)
    for body in (b'{"a":393087288629462191,"b":9223372036854775807,"c":1e400, "d":"\xff"}', b"\x00\xff", b""):
        store.command("XADD", store.keys.stream, "*", "kind", b"k\xfe", "body", body, b"\xfd", b"\xfc", "x", "é\x1b")
    for claim in store.claim():
        store.bury(death(claim, error="Zoë\u2028'\"\\"))
    before, lines = raw(store), exported(store)
    for one in all_of(store):
        store.purge(one.id.partition(":")[2])

    parsed = [parse(text, NOW_MS) for text in reversed(lines)]
    talk(store.executor, restore(store.keys.namespace, parsed, whole := Restored()))

    assert (whole.done, raw(store)) == (5, before)
    assert exported(store)[0].partition(b'"row"')[2] == lines[0].partition(b'"row"')[2]
    talk(store.executor, restore(store.keys.namespace, parsed, again := Restored()))
    assert (again.done, again.dead, again.alive, len(raw(store))) == (0, 5, {}, 5)


def test_case_H1_a_body_is_the_same_byte_by_byte_over_all_ways_of_a_dead_job(store: Store) -> None:
    body = b'{"a":393087288629462191,"b":9223372036854775807,"c":1e400,"d":[],"e":1.0, "f":"\xff\x00"}'
    namespace = store.keys.namespace
    store.make_group()
    store.run(intake.announce(namespace, ["q", "other"]))
    other = sibling(store, "other")
    store.command("XADD", store.keys.stream, "*", "kind", "mail", "body", body)
    store.bury(death(store.claim()[0]))
    talk(store.executor, replay(namespace, Scan([store.keys], Selection()), How(to="other")))
    other.bury(death(other.claim()[0]))
    lines = exported(other)
    talk(store.executor, purge(namespace, Scan([other.keys], Selection())))
    talk(store.executor, restore(namespace, [parse(text, NOW_MS) for text in lines], Restored()))
    talk(store.executor, replay(namespace, Scan([other.keys], Selection()), How(new_key=True)))

    [claim] = other.claim()

    assert claim.body == body
    assert read_meta(claim.meta).generation == 2


def test_what_is_alive_by_then_is_left_alone_and_named(store: Store) -> None:
    store.make_group()
    [one] = store.add(1)
    store.bury(death(store.claim()[0]))
    lines = exported(store)
    store.replay(one)

    talk(store.executor, restore(store.keys.namespace, [parse(text, NOW_MS) for text in lines], whole := Restored()))

    assert (whole.done, whole.dead, list(whole.alive)) == (0, 0, [f"q:{one}"])


def test_several_queues_in_bounded_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH_JOBS", 2)
    store.make_group()
    other = sibling(store, "other")
    lines = []
    for one in (store, other):
        one.add(5)
        for claim in one.claim():
            one.bury(death(claim))
        lines += exported(one)
        for job in all_of(one):
            one.purge(job.id.partition(":")[2])

    talk(store.executor, restore(store.keys.namespace, [parse(text, NOW_MS) for text in lines], whole := Restored()))

    assert whole.done == 10
    assert sorted(store.command("SMEMBERS", f"{store.keys.namespace}:queues")) == [b"other", b"q"]


def test_a_promised_job_is_exported_without_its_promise(store: Store) -> None:
    store.make_group()
    [one] = store.add(1)
    store.bury(death(store.claim()[0]))
    store.run(letters.promise(store.keys, "web", [(store.dead_entry(one), one)]))

    [row] = talk(store.executor, Named(store.keys.namespace, [f"q:{one}"], Selection()).rows())

    assert [line(*row)] == exported(store)
    assert b"promise" not in exported(store)[0]


def test_a_row_that_is_not_ours_is_no_line() -> None:
    assert line(KEYS, "1-0", {"kind": b"mail"}) is None
    assert line(KEYS, "1-0", {"id": b"\xff", **ROW}) is None


@given(st.dictionaries(st.binary(max_size=9), st.binary(max_size=30), max_size=9))
def test_whatever_the_bytes_are_they_come_back(strange: dict[bytes, bytes]) -> None:
    fields = ROW | {f"x:{name.decode('utf-8', 'surrogateescape')}": value for name, value in strange.items()}

    text = line(KEYS, "5-0", {"id": b"1-0", **fields})

    assert text is not None
    assert b"\n" not in text
    item = parse(text, NOW_MS).item
    assert item.job == "1-0"
    assert item.fields == {name.encode("utf-8", "surrogateescape"): value for name, value in fields.items()}


GOOD: dict[str, Any] = json.loads(line(KEYS, "5-0", {"id": b"1-0", **ROW}) or b"")


def without(name: str) -> dict[str, Any]:
    return GOOD | {"row": {key: value for key, value in GOOD["row"].items() if key != name}}


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        (b"", "this is no exported dead job"),
        (b"{", "this is no exported dead job"),
        (b"[1]", "Expected `object`"),
        (b"null", "Expected `object`"),
        (b"[" * 100_000, "this is no exported dead job"),
        (b"\xef\xbb\xbf{}", "this is no exported dead job"),
        (b'{"kind":"mail","args":{}}', "this is no exported dead job"),
        (json.dumps(GOOD).encode()[:-5], "this is no exported dead job"),
        (json.dumps(GOOD).encode() + b"x", "trailing characters"),
        (GOOD | {"more": 1}, "unknown field `more`"),
        (GOOD | {"schema": "streamjobs.job"}, "expected 'streamjobs.dead.row' 1"),
        (GOOD | {"version": 2}, "expected 'streamjobs.dead.row' 1"),
        (GOOD | {"version": "1"}, "Expected `int`"),
        (GOOD | {"id": "mail"}, "job id 'mail'"),
        (GOOD | {"id": "{a}b:1-0"}, "job id"),
        (GOOD | {"id": "mail:\u0661-0"}, "job id"),
        (GOOD | {"id": f"mail:{NOW_MS + 1}-0"}, "was enqueued later than it is here"),
        (GOOD | {"id": f"mail:{'9' * 20}-0"}, "was enqueued later than it is here"),
        (without("body"), "job mail:1-0: its row has no body"),
        (without("reason"), "its row has no reason"),
        (GOOD | {"row": GOOD["row"] | {"id": "2-0"}}, "its row has an id"),
        (GOOD | {"row": GOOD["row"] | {f"x:{n}": "" for n in range(1000)}}, "too many fields"),
        (GOOD | {"row": GOOD["row"] | {"body": 5}}, "Expected `str | object`"),
        (GOOD | {"row": GOOD["row"] | {"body": {"base64": "!"}}}, "no base64"),
        (GOOD | {"row": GOOD["row"] | {"body": {"base64": "QQ"}}}, "no base64"),
        (GOOD | {"row": GOOD["row"] | {"body": {"base64": "QQ==", "x": 1}}}, "unknown field"),
        (GOOD | {"row": GOOD["row"] | {"base64:!": ""}}, "no base64"),
        (GOOD | {"row": []}, "Expected `object`"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_damaged_is_said(damaged: bytes | dict[str, Any], said: str) -> None:
    text = damaged if isinstance(damaged, bytes) else json.dumps(damaged).encode()

    with pytest.raises(UsageError) as caught:
        parse(text, NOW_MS)
    assert said in str(caught.value)


def test_the_undamaged_one_is_read() -> None:
    assert parse(json.dumps(GOOD).encode(), NOW_MS).id == "mail:1-0"
