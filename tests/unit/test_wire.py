"""The other encodings of the wire format: bodies without a signature, meta, envelopes."""

from typing import Any

import msgspec
import pytest

from streamjobs.core import codec
from streamjobs.core.errors import PayloadTooLarge, UsageError
from streamjobs.core.job import FRESH, Attempt, Meta
from streamjobs.core.names import MAX_PAYLOAD_BYTES

FULL = Meta(
    id="d1764412345678-0", generation=2, failures=3, crashes=1, snoozes=4, rate_waits=5, parks=6, dedupe_key="kéy",
    result_ttl_ms=1000, traceparent="00-1-2-01", headers={"a": "ä"},
    history=(Attempt(1, 1, "E: x", "bug", "w"), Attempt(number=2)),
)  # fmt: skip


def test_a_fresh_meta_is_nothing_at_all() -> None:
    assert codec.encode_meta(FRESH) == codec.encode_meta(Meta()) == b""
    assert codec.decode_meta(b"") == codec.decode_meta(b"{}") == FRESH


def test_a_meta_comes_back_as_it_was() -> None:
    assert codec.decode_meta(codec.encode_meta(FULL)) == FULL


def test_only_what_differs_from_the_default_is_written() -> None:
    assert codec.encode_meta(Meta(failures=1, id="1-0")) == b'{"id":"1-0","f":1}'


def test_each_field_has_a_short_name_of_its_own() -> None:
    written = msgspec.json.decode(codec.encode_meta(msgspec.structs.replace(FULL, version=1)))

    assert sorted(written) == sorted("id g f c s r p dk rt tp h x".split())
    assert sorted(written["x"][0]) == sorted("at n e k w".split())


def test_fields_of_a_later_release_are_passed_over() -> None:
    assert codec.decode_meta(b'{"f":1,"later":[1]}') == Meta(failures=1)


@pytest.mark.parametrize(
    ("raw", "why"),
    [(b'{"v":2}', "version 2 is not 1"), (b"{", "meta: "), (b"[]", "meta: "), (b'{"f":"1"}', "meta: "),
     (b"\xff", "meta: "), (b'{"x":[{"at":"now"}]}', "meta: "), (b"[" * 100_000, "meta: ")],
)  # fmt: skip
def test_case_C7_a_meta_that_is_none_says_why(raw: bytes, why: str) -> None:
    with pytest.raises(codec.DecodeFailed, match=why):
        codec.decode_meta(raw)


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        (b"4:2:mail{}", (b"mail", b"{}", b"")),
        (b"4:2:mail{}{\"f\":1}", (b"mail", b"{}", b'{"f":1}')),
        (b"0:0:", (b"", b"", b"")),
        (b"3:5:a:bc:d:e:m:m", (b"a:b", b"c:d:e", b":m:m")),
        ("2:4:ä\x00ö\x00".encode(), ("ä".encode(), b"\x00" + "ö".encode() + b"\x00", b"")),
    ],
)  # fmt: skip
def test_an_envelope_parts_by_length_not_by_content(raw: bytes, parts: tuple[bytes, bytes, bytes]) -> None:
    assert codec.split_envelope(raw) == parts


def test_a_body_without_a_signature_is_an_object_by_name() -> None:
    assert codec.encode_object({"n": 2**63 - 1, "text": "ä"}, "mail") == '{"n":9223372036854775807,"text":"ä"}'.encode()


@pytest.mark.parametrize(
    "values",
    [
        [1],
        "x",
        None,
        {1: 2},
        {"a": object()},
        {"a": float("nan")},
        {"a": "\ud800"},
        {"a": {"b": [float("inf")]}},
        {"a": msgspec.Raw(b'"\xff"')},
    ],
)
def test_what_is_no_such_object_is_refused(values: Any) -> None:
    with pytest.raises(UsageError, match="mail: "):
        codec.encode_object(values, "mail")


def test_case_H5_the_limit_holds_there_too() -> None:
    at_limit = {"a": "x" * (MAX_PAYLOAD_BYTES - 8)}

    assert len(codec.encode_object(at_limit, "mail")) == MAX_PAYLOAD_BYTES
    with pytest.raises(PayloadTooLarge, match="mail"):
        codec.encode_object({"a": at_limit["a"] + "x"}, "mail")


def test_a_cycle_is_refused_not_followed_for_ever() -> None:
    values: dict[str, Any] = {}
    values["self"] = values

    with pytest.raises(UsageError):
        codec.encode_object(values, "mail")
