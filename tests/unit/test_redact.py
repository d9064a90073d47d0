"""Redacted arguments: which they may be, and what is left of a job's arguments without them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs import (
    Concurrency,
    InvalidOption,
    JobOptions,
    Latest,
    Rate,
    StreamJobs,
    UntilDone,
    UsageError,
    Window,
)
from streamjobs.core.redact import hide


def login(user: str, password: str = "") -> None: ...


@pytest.mark.parametrize("redact", ["password", 5, ["password", 5], {"password": 1}.items()])
def test_names_are_texts(redact: Any) -> None:
    with pytest.raises(InvalidOption, match="give the names of arguments, such as"):
        JobOptions(redact=redact)


def test_names_are_arguments_of_the_kind() -> None:
    with pytest.raises(InvalidOption, match="redact='pasword' is not an argument of it; it has user, password"):
        StreamJobs("memory://").job(name="k", redact=("pasword",))(login)


@pytest.mark.parametrize("mode", [UntilDone(), UntilDone(key="password"), Latest(key=("user", "password")), Window(60)])
def test_a_redacted_argument_makes_no_dedupe_key(mode: Any) -> None:
    """It would be shown as a part of that."""
    app = StreamJobs("memory://")
    with pytest.raises(InvalidOption, match="'password' is redacted and would stand in the dedupe key"):
        app.job(name="k", redact=["password"], dedupe=mode)(login)

    kind = app.job(name="k", redact=["password"])(login)
    with pytest.raises(UsageError, match="'password' is redacted and would stand in the dedupe key"):
        kind.options(dedupe=mode).call("ada")
    assert kind.options(dedupe=mode, dedupe_key="own").call("ada").meta.dedupe_key == "own"


@pytest.mark.parametrize(
    "mode", [UntilDone(key="user"), UntilDone(key=("user",)), UntilDone(key=lambda user, password: user)]
)
def test_others_do(mode: UntilDone) -> None:
    kind = StreamJobs("memory://").job(name="k", redact=["password"], dedupe=mode)(login)

    assert "ada" in kind.call("ada", "s3cret").meta.dedupe_key


@pytest.mark.parametrize("limits", [{"rate": Rate(5, key="password")}, {"concurrency": Concurrency(1, key="password")}])
def test_a_redacted_argument_parts_no_lanes(limits: dict[str, Any]) -> None:
    register: Callable[..., Any] = StreamJobs("memory://").job
    with pytest.raises(InvalidOption, match="'password' is redacted and would stand in the lane's name"):
        register(name="k", redact=["password"], **limits)(login)


def test_the_rest_stays_digit_by_digit() -> None:
    body = b'{"a": 393087288629462191, "password": {"deep": [1]}, "b": 1.0, "c": "\\u00e4", "d": [ ]}'

    assert hide(body, {"password"}) == (b'{"a":393087288629462191,"password":"***","b":1.0,"c":"\\u00e4","d":[ ]}')


@pytest.mark.parametrize("body", [b"", b"[1]", b'"s3cret"', b'{"password":', b"\xff", b"[" * 100_000, b'{"a":' * 5000])
def test_what_is_no_object_is_hidden_whole(body: bytes) -> None:
    assert hide(body, {"password"}) == b'"***"'


@given(
    values=st.dictionaries(
        st.text(st.characters(codec="utf-8")), st.integers() | st.text(st.characters(codec="utf-8"))
    ),
    secret=st.text(st.characters(codec="utf-8"), min_size=1).map(lambda text: f"<{text}>s3cret"),
)
def test_a_secret_is_never_left(values: dict[str, Any], secret: str) -> None:
    hidden = json.loads(hide(json.dumps({**values, "password": secret}).encode(), ["password"]))

    assert hidden == {**values, "password": "***"}
