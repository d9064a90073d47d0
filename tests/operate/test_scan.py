"""Dead jobs are read page by page, the newest of all queues first, and only those that are meant."""

from typing import Any

import pytest

from streamjobs.client.talk import talk
from streamjobs.core.errors import InvalidOption, NotFound, Refused
from streamjobs.operate import scan
from streamjobs.operate.jobs import JobStatus
from streamjobs.operate.scan import Named, Scan, collect
from streamjobs.operate.selection import Selection
from streamjobs.protocol import settle
from streamjobs.protocol.keys import QueueKeys
from tests.store.support import Store, death, ending

ALL = Selection()


@pytest.fixture
def died(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A queue with 7 dead of kind mail and 3 of kind web, read in pages of 3."""
    monkeypatch.setattr(scan, "PAGE", 3)
    store.make_group()
    for kind, count, reason, error in (
        ("mail", 7, "exhausted", "TimeoutError: slow"),
        ("web", 3, "permanent", "ValueError: no"),
    ):
        for claim in store.started(count, kind):
            store.bury(death(claim, reason, error))
    return store


def sibling(store: Store, name: str) -> Store:
    """Return another queue beside one, on the same connections."""
    other = Store("memory://", "unused")
    other.connections, other.executor = store.connections, store.executor
    other.keys = QueueKeys(store.keys.namespace, name)
    other.make_group()
    return other


def all_of(store: Store, selection: Selection = ALL, limit: int = 0) -> list[JobStatus]:
    return talk(store.executor, collect(Scan([store.keys], selection, limit=limit, first=3)))


def test_newest_first_over_all_pages(died: Store) -> None:
    found = all_of(died)

    assert [job.dead_entry for job in found] == [
        entry.decode() for entry, _ in died.command("XREVRANGE", died.keys.dead, "+", "-")
    ]
    assert [job.kind for job in found] == ["web"] * 3 + ["mail"] * 7


def test_limit_ends_the_reading(died: Store) -> None:
    assert len(all_of(died, limit=4)) == 4


def test_skipped_are_counted_by_why(died: Store) -> None:
    source = Scan([died.keys], Selection(kinds=("mail",), error="slow"))
    assert len(talk(died.executor, collect(source))) == 7
    assert source.skipped == {"other kind": 3}
    assert (source.read, source.found) == (10, 7)


def test_time_bounds_are_included(died: Store) -> None:
    times = [int(job.dead_entry.partition("-")[0]) for job in all_of(died)]

    assert len(all_of(died, Selection(since_ms=min(times), until_ms=max(times)))) == 10
    assert all_of(died, Selection(since_ms=max(times) + 1)) == []
    assert all_of(died, Selection(until_ms=min(times) - 1)) == []


def test_cursors_lead_through_several_queues_without_a_gap(died: Store) -> None:
    """Rows of two queues that died in the same instant, under the same entry, included."""
    other = sibling(died, "other")
    for claim in other.started(2, "late"):
        other.bury(death(claim))
    for entry, _ in died.command("XRANGE", died.keys.dead, "-", "+")[-2:]:
        for at, store in enumerate((died, other)):
            store.command("XADD", store.keys.dead, f"9{entry.decode()}", "id", f"1-{at}")
    queues = [died.keys, other.keys]
    whole = [one.id for one in talk(died.executor, collect(Scan(queues, ALL)))]

    for limit in (1, 2, 5):
        found: list[str] = []
        cursor = ""
        for _ in range(len(whole)):
            source = Scan(queues, ALL, after=cursor, limit=limit, first=2)
            found += [one.id for one in talk(died.executor, collect(source))]
            cursor = source.cursor
            if not cursor:
                break
        assert found == whole
    assert len(whole) == 16
    for store in (died, other):
        store.command("DEL", store.keys.dead)


def test_a_cursor_holds_when_its_row_is_gone_and_new_ones_have_come(died: Store) -> None:
    source = Scan([died.keys], ALL, limit=4)
    first = talk(died.executor, collect(source))
    died.command("XDEL", died.keys.dead, first[-1].dead_entry)
    for claim in died.started(2):
        died.bury(death(claim))

    rest = talk(died.executor, collect(Scan([died.keys], ALL, after=source.cursor)))

    assert [one.kind for one in rest] == ["mail"] * 6
    assert not {one.id for one in rest} & {one.id for one in first}
    assert talk(died.executor, collect(Scan([died.keys], Selection(until_ms=1), after=source.cursor))) == []


@pytest.mark.parametrize("cursor", ["x", "1-1", "@q", "1@q", "1-1@", "-1-1@q", "1-٣@q", f"{1 << 64}-0@q", "(1-1@q"])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidOption, match="no place in a list"):
        Scan([], ALL, after=cursor)


def test_queues_are_merged_by_time(died: Store) -> None:
    other = sibling(died, "other")
    for store, entry in ((died, "9-0"), (other, "9-1"), (other, "9-2"), (died, "9-3")):
        store.command("XADD", store.keys.dead, f"999999999999{entry}", "kind", "late")

    found = talk(died.executor, collect(Scan([died.keys, other.keys], ALL, first=1)))

    assert [one.queue for one in found] == ["q", "other", "other"] + ["q"] * 11
    for store in (died, other):
        store.command("DEL", store.keys.dead)


@pytest.mark.parametrize(
    ("selection", "count"),
    [
        ({"classes": ("timeout",)}, 1),
        ({"classes": ("bug", "timeout")}, 2),
        ({"classes": ("",)}, 3),
        ({"error": "user 7"}, 1),
        ({"error": "user N is gone"}, 2),
        ({"error": "ValueError"}, 1),
        ({"where": (("n", "7"),)}, 1),
        ({"where": (("n", "8"),)}, 0),
        ({"where": (("n", "7"), ("s", "text"))}, 1),
        ({"where": (("n", "7"), ("s", "other"))}, 0),
        ({"where": (("s", "8"),)}, 1),
        ({"where": (("s", '"text"'),)}, 1),
        ({"where": (("big", "393087288629462191123456789"),)}, 1),
        ({"where": (("big", "393087288629462191123456788"),)}, 0),
        ({"where": (("o", '{"a": [1]}'),)}, 1),
        ({"where": (("yes", "true"),)}, 1),
        ({"where": (("yes", "1"),)}, 0),
        ({"where": (("none", "null"),)}, 1),
        ({"where": (("missing", "null"),)}, 0),
        ({"where": (("f", "1e400"),)}, 1),
        ({"where": (("s", "\udcff"),)}, 0),
    ],
    ids=str,
)
def test_what_selections_mean(store: Store, selection: dict[str, Any], count: int) -> None:
    store.make_group()
    bodies = [
        b'{"n":7,"s":"text","big":393087288629462191123456789,"o":{ "a":[1] },"yes":true,"none":null,"f":1e400}',
        b'{"s":"8","n":"9"}',
        b"[7]",
        b"\xff",
        b"[" * 10_000,
    ]
    errors = [("ValueError: user 7 is gone", "bug"), ("KeyError: user 12345 is gone", "timeout"), ("", ""), ("", "")]
    for body in bodies:
        store.command("XADD", store.keys.stream, "*", "kind", "mail", "body", body)
    for claim, (error, word) in zip(store.claim(), [*errors, ("", "")], strict=True):
        history = b'[{"e":"x","k":"%s"}]' % word.encode() if word else b"no history"
        store.bury(settle.Death(ending(claim), "permanent", error, 1, history))

    assert len(all_of(store, Selection(**selection))) == count


def test_large_rows_come_in_small_pages(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "PAGE_BYTES", 500_000)
    store.make_group()
    for _ in range(40):
        store.command("XADD", store.keys.stream, "*", "kind", "mail", "body", b"x" * 49_500)
    for claim in store.claim():
        store.bury(death(claim))
    source = Scan([store.keys], ALL, first=15)

    pages = []
    while page := talk(store.executor, source.page()):
        pages.append(len(page))

    assert pages == [15, 10, 10, 5]


def test_row_of_somebody_else_is_shown(died: Store) -> None:
    died.command("XADD", died.keys.dead, "*", "note", "hello", "attempts", "9" * 30, "history", "[" * 9999)

    first = all_of(died)[0]

    assert (first.kind, first.reason, first.body, first.attempt) == ("", "", b"", 0)
    died.command("XDEL", died.keys.dead, first.dead_entry)


def test_find_by_id(died: Store) -> None:
    first, second, *_ = all_of(died)
    namespace = died.keys.namespace
    found = talk(died.executor, collect(Named(namespace, [second.id, first.id, second.id], Selection(kinds=("web",)))))

    assert found == [second, first]
    with pytest.raises(NotFound):
        talk(died.executor, collect(Named(namespace, ["q:99999999999999-0"], ALL)))
    [waiting] = died.add(1)
    with pytest.raises(Refused, match="is not dead but waiting"):
        talk(died.executor, collect(Named(namespace, [first.id, f"q:{waiting}"], ALL)))


def test_case_J5_a_filter_costs_the_same_however_many_jobs_are_done(store: Store) -> None:
    """What is dead is read, in one request, and nothing else."""
    store.make_group()
    for claim in store.started(12, "mail"):
        store.bury(death(claim, "exhausted", "TimeoutError: slow"))
    for _ in range(20):
        store.complete(*store.started(500))
    source = Scan([store.keys], Selection(kinds=("mail",), error="slow", since_ms=1))
    first = source.page()
    requests = next(first)
    assert isinstance(requests, list)

    with pytest.raises(StopIteration) as end:
        first.send(store.executor.run_all(requests))
    with pytest.raises(StopIteration) as rest:
        next(source.page())

    assert (len(requests), len(end.value.value), rest.value.value) == (1, 12, [])
