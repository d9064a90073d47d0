"""Jobs from others: a plain XADD of any language is a valid job, and rubbish is contained."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from streamjobs.core.job import Claim
from tests.store.support import Store, death, ending, job_of, later


@contextmanager
def raw_socket(url: str) -> Iterator[socket.socket]:
    with closing(socket.socket(socket.AF_UNIX)) as raw:
        raw.settimeout(5)
        raw.connect(url.removeprefix("unix://"))
        yield raw


def xadd(store: Store, *fields: bytes) -> Claim:
    """Add an entry by hand and claim it."""
    store.command("XADD", store.keys.stream, "*", *fields)
    return store.claim()[-1]


def test_kind_and_body_over_a_raw_socket_are_a_job(real: Store, server_url: str) -> None:
    words = ["XADD", real.keys.stream, "*", "kind", "mail", "body", '{"user_id":1}']
    with raw_socket(server_url) as raw:
        raw.sendall((f"*{len(words)}\r\n" + "".join(f"${len(w)}\r\n{w}\r\n" for w in words)).encode())
        reply = raw.recv(100).decode()

    one = reply.split("\r\n")[1]
    [claim] = real.claim()
    assert (job_of(claim), claim.kind, claim.body, claim.meta) == (one, b"mail", b'{"user_id":1}', b"")


def test_inline_command_is_enough(real: Store, server_url: str) -> None:
    """What a shell can do with netcat."""
    with raw_socket(server_url) as raw:
        raw.sendall(f"XADD {real.keys.stream} * kind mail body {{}}\r\n".encode())
        raw.recv(100)

    assert [(claim.kind, claim.body) for claim in real.claim()] == [(b"mail", b"{}")]


def test_it_lives_like_any_other_job(store: Store) -> None:
    claim = xadd(store, b"kind", b"mail", b"body", b"{}")
    one = job_of(claim)
    assert store.state(one) == "running"

    store.retry(later(claim, 1))
    store.promote(clock="9000000000000")
    [claim] = store.claim()
    assert job_of(claim) == one
    store.bury(death(claim))
    store.replay(one)
    [claim] = store.claim()
    store.complete_full(ending(claim))

    assert store.left() == set()
    assert store.state(one) == "finished"


@pytest.mark.parametrize(
    ("fields", "read"),
    [
        ([b"body", b"{}", b"kind", b"k"], (b"k", b"{}", b"")),
        ([b"meta", b"{}", b"body", b"b", b"kind", b"k"], (b"k", b"b", b"{}")),
        ([b"kind", b"k", b"body", b"b", b"meta", b"m", b"x", b"1"], (b"k", b"b", b"m")),
        ([b"kind", b"k"], (b"k", b"", b"")),
        ([b"body", b"b"], (b"", b"b", b"")),
        ([b"x", b"1"], (b"", b"", b"")),
        ([b"", b""], (b"", b"", b"")),
        ([b"kind", b"a", b"body", b"b", b"kind", b"c"], (b"c", b"b", b"")),
        ([b"kind", b"\xff\x00", b"body", b"\r\n", b"meta", b"\x80"], (b"\xff\x00", b"\r\n", b"\x80")),
        ([b"KIND", b"k", b"Body", b"b"], (b"", b"", b"")),
    ],
)
def test_case_C7_whatever_the_fields_the_entry_is_read(
    store: Store, fields: list[bytes], read: tuple[bytes, bytes, bytes]
) -> None:
    claim = xadd(store, *fields)

    assert (claim.kind, claim.body, claim.meta) == read


def test_case_C7_a_bad_entry_does_not_hold_up_the_others(store: Store) -> None:
    for fields in ((b"x", b"1"), (b"kind", b"mail", b"body", b"\xff")):
        store.command("XADD", store.keys.stream, "*", *fields)
    store.add(1)

    bad, worse, good = store.claim()
    store.bury(death(bad, "undecodable"), death(worse, "undecodable"))
    store.complete(good)

    assert store.left() == {"dead", "dead:ids"}
    assert [row["body"] for row in store.dead_rows()] == [b"", b"\xff"]


def test_reclaimed_and_taken_entries_are_read_alike(store: Store) -> None:
    claim = xadd(store, b"body", b"b", b"kind", b"k", b"x", b"1")

    [again] = store.retaken([claim])
    store.release(again, consumer="b")
    [taken] = store.take("c")

    assert (again.kind, again.body) == (taken.kind, taken.body) == (b"k", b"b")
