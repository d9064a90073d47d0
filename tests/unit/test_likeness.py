"""Errors of one cause have one likeness."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs.core.likeness import LONGEST, likeness


@pytest.mark.parametrize(
    ("error", "alike"),
    [
        ("TimeoutError: still running after 600 s", "TimeoutError: still running after N s"),
        ("KeyError: 'user_7'", "KeyError: '…'"),
        ('ValueError: no "x y", no `z`', "ValueError: no '…', no '…'"),
        ("OSError: [Errno 111] connect ('127.0.0.1', 6379)", "OSError: [Errno N] connect ('…', N)"),
        ("HTTPError: 503 from https://api.example.org/v1?user=7)", "HTTPError: N from <url>)"),
        ("open /var/lib/jobs/7.txt: gone", "open <path>: gone"),
        (r"open C:\jobs\7.txt: gone", "open <path>: gone"),
        ("no account 550e8400-e29b-41d4-a716-446655440000", "no account <id>"),
        ("<Cart object at 0x7f00deadbeef>", "<Cart object at <id>>"),
        ("order ord-8f3a9c2e1b, item_42", "order ord-<id>, item_N"),
        ("ada@example.org since 2030-01-31T12:00:00Z", "<email> since <time>"),
        ("took 3.5s of 10ms, 10.0.0.1:80", "took Ns of Nms, N"),
        ("two\n  lines\t7", "two lines N"),
        ("", ""),
    ],
)
def test_what_differs_from_job_to_job_is_replaced(error: str, alike: str) -> None:
    assert likeness(error) == alike


@pytest.mark.parametrize(
    "error", ["don't touch it's", "utf8 int64 base64 sha256 v2", "N/A km/h and/or", "it is he/she"]
)
def test_words_stay(error: str) -> None:
    assert likeness(error) == error


def test_long_errors_that_differ_at_their_end_are_alike() -> None:
    assert likeness("x" * LONGEST + "1") == likeness("x" * LONGEST + "2")
    assert likeness(f"no '{'x' * LONGEST}'") == likeness(f"no '{'y' * LONGEST}' there") == "no '…'"


@given(st.integers(0), st.uuids(), st.text(st.characters(exclude_characters="'\n"), max_size=100))
def test_numbers_ids_and_quotes_make_no_difference(number: int, own: UUID, quoted: str) -> None:
    assert likeness(f"E: user {number}, {own}, '{quoted}' is gone") == likeness(f"E: user 1, {UUID(int=0)}, '' is gone")


@given(st.text(max_size=300) | st.text("a1'\"/@.-: xX0", max_size=300))
def test_whatever_the_error_is_there_is_a_likeness(error: str) -> None:
    assert "\n" not in likeness(error)
