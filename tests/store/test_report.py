"""report, order: what a worker tells is there for a while, and what it is ordered reaches it, however often it asks."""

import pytest

from streamjobs.protocol import workers
from streamjobs.protocol.keys import worker
from streamjobs.protocol.workers import KEEP_MS, Note, Running, Told
from tests.store.support import Store

NOTE = Note(host="h", pid=7, state="running", queues=("q",), jobs=(Running("q:1-0", "mail", 5),))


def report(store: Store, note: Note = NOTE) -> str:
    return store.run(workers.report(store.keys.namespace, "a", note))


def order(store: Store, word: str, token: str = "t1") -> bool:
    return store.run(workers.order(store.keys.namespace, "a", word, token))


def told(store: Store) -> Told:
    return store.run(workers.told(store.keys.namespace, "a"))


def ttl(store: Store) -> int:
    return int(store.command("PTTL", worker(store.keys.namespace, "a")))


def test_what_a_worker_tells_is_kept_for_a_while(store: Store) -> None:
    assert report(store) == ""

    assert told(store) == Told(NOTE, "")
    assert 0 < ttl(store) <= KEEP_MS


def test_an_order_is_heard_until_another_takes_its_place(store: Store) -> None:
    """Also by a worker whose first answer was lost."""
    report(store)

    assert order(store, "quiet")

    assert [report(store), report(store)] == ["quiet t1", "quiet t1"]
    assert order(store, "run", "t2")
    assert report(store) == "run t2"
    assert told(store).order == "run t2"
    assert 0 < ttl(store) <= KEEP_MS


def test_who_is_not_there_is_not_ordered(store: Store) -> None:
    """Else a key without an end would be left."""
    assert not order(store, "stop")
    assert store.command("EXISTS", worker(store.keys.namespace, "a")) == 0


def test_who_is_forgotten_hears_no_old_order(store: Store) -> None:
    report(store)
    order(store, "stop")

    store.run(workers.forget(store.keys.namespace, "a"))

    assert report(store) == ""


@pytest.mark.parametrize("note", [b"", b"nonsense", b"[]", b'{"pid":"x"}'])
def test_what_is_no_note_hides_no_worker(store: Store, note: bytes) -> None:
    store.command("HSET", worker(store.keys.namespace, "a"), "note", note)
    store.command("PEXPIRE", worker(store.keys.namespace, "a"), 1000)

    assert told(store) == Told(None, "")


def test_notes_of_other_versions_are_read(store: Store) -> None:
    store.command("HSET", worker(store.keys.namespace, "a"), "note", b'{"pid":7,"new":[1]}')
    store.command("PEXPIRE", worker(store.keys.namespace, "a"), 1000)

    assert told(store).note == Note(pid=7)


def test_a_worker_is_seen_and_hears_where_memory_is_full(real: Store) -> None:
    report(real)
    order(real, "quiet")
    real.command("SCRIPT", "FLUSH")
    real.command("CONFIG", "SET", "maxmemory", 1)
    try:
        assert report(real) == "quiet t1"
        assert order(real, "stop", "t2")
        assert report(real) == "stop t2"
    finally:
        real.command("CONFIG", "SET", "maxmemory", 0)
