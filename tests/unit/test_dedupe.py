"""Dedupe modes as values: what makes a key, and what is refused when a mode is made or a kind registered."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from streamjobs import JobOptions, StreamJobs
from streamjobs.core.dedupe import Dedupe, Latest, UntilDone, UntilStarted, Window
from streamjobs.core.errors import InvalidOption, UsageError
from streamjobs.core.job import FRESH, LATEST, UNTIL_STARTED
from streamjobs.core.options import EnqueueOptions
from streamjobs.kind import Kind


def kind_of(mode: Dedupe | None, name: str = "mail.send") -> Kind[..., None]:
    app = StreamJobs("memory://")

    @app.job(name=name, dedupe=mode)
    def send(user_id: int, to: Any = None, share: float = 1.0, at: datetime | None = None) -> None: ...

    return send


def wrong(value: Any) -> Any:
    """Return what no type checker would let pass."""
    return value


def key_of(mode: Dedupe, *args: Any, **kwargs: Any) -> str:
    return kind_of(mode).call(*args, **kwargs).meta.dedupe_key


def test_a_key_is_the_kind_and_the_chosen_arguments_in_canonical_form() -> None:
    assert key_of(UntilDone(key="user_id"), 42) == 'mail.send:{"user_id":42}'
    assert key_of(UntilDone(key=("user_id", "share")), 42) == 'mail.send:{"share":1.0,"user_id":42}'
    assert key_of(UntilDone(), 42) == 'mail.send:{"at":null,"share":1.0,"to":null,"user_id":42}'


def test_a_function_makes_a_key_of_all_arguments_by_name() -> None:
    mode = UntilDone(key=lambda user_id, to, **_: f"{user_id} to {to}")

    assert key_of(mode, 42, to="zoë") == "mail.send:42 to zoë"


def test_order_and_spelling_of_arguments_do_not_matter_and_their_types_do() -> None:
    mode = UntilDone()

    assert key_of(mode, 42, {"b": 1, "a": [2]}) == key_of(mode, to={"a": [2], "b": 1}, user_id=42)
    assert key_of(mode, 42, share=1) == key_of(mode, 42) == key_of(mode, user_id=42, at=None)
    assert len({key_of(mode, 42, to) for to in (1, 1.0, "1", True, None, [1])}) == 6


def test_two_kinds_have_keys_of_their_own() -> None:
    keys = {kind_of(UntilDone(key="user_id"), name).call(1).meta.dedupe_key for name in ("a", "b")}

    assert keys == {'a:{"user_id":1}', 'b:{"user_id":1}'}


def test_a_long_key_is_hashed() -> None:
    first, second = (key_of(UntilDone(key="to"), 1, "ä" * 200 + end) for end in "ab")

    assert first != second
    assert first == key_of(UntilDone(key="to"), 2, "ä" * 200 + "a")
    assert (first[:7], len(first)) == ("sha256:", 71)


def test_an_enqueue_may_name_another_key_and_another_mode() -> None:
    send = kind_of(UntilDone(key="user_id"))

    assert send.options(dedupe_key="k").call(1).meta.dedupe_key == "k"
    later = send.options(dedupe=Window(60, key="share")).call(1).meta
    assert (later.dedupe_key, later.dedupe_window_ms) == ('mail.send:{"share":1.0}', 60_000)
    windowed = kind_of(Window(60)).options(dedupe_key="k").call(1).meta
    assert (windowed.dedupe_key, windowed.dedupe_window_ms) == ("k", 60_000)


def test_without_a_mode_only_a_named_key_dedupes() -> None:
    send = kind_of(None)

    assert send.call(1).meta is FRESH
    assert send.options(dedupe_key="k").call(1).meta.dedupe_key == "k"


def test_all_ways_to_make_a_job_make_the_same_key() -> None:
    app = StreamJobs("memory://")

    @app.job(name="f", dedupe=UntilStarted(key="n"))
    def f(n: int, m: int = 1) -> None: ...

    jobs = [f.call(1), f.call_named({"n": "1"}), app.job_of("f", {"n": 1}, EnqueueOptions())]
    assert {(job.meta.dedupe_key, job.meta.dedupe_mode) for job in jobs} == {('f:{"n":1}', UNTIL_STARTED)}


def test_modes_on_the_wire() -> None:
    metas = [kind_of(mode).call(1).meta for mode in (UntilDone(), UntilStarted(), Latest(), Window(timedelta(0, 9)))]

    assert [(meta.dedupe_mode, meta.dedupe_window_ms) for meta in metas] == [
        ("", 0), (UNTIL_STARTED, 0), (LATEST, 0), ("", 9000),
    ]  # fmt: skip
    assert [meta.announced for meta in metas] == [False, True, True, False]
    assert [bool(meta.held_key) for meta in metas] == [True, True, True, False]


def test_defaults_of_the_app_hold_for_its_kinds() -> None:
    app = StreamJobs("memory://", defaults=JobOptions(dedupe=Latest()))

    @app.job(name="f")
    def f(n: int) -> None: ...

    assert (f.call(1).meta.dedupe_key, f.call(1).meta.dedupe_mode) == ('f:{"n":1}', LATEST)


def test_an_enqueue_may_switch_the_dedupe_of_its_kind_off() -> None:
    app = StreamJobs("memory://")
    send = kind_of(UntilDone(key="user_id"))

    assert send.options(dedupe=None).call(1).meta is FRESH
    assert send.options(dedupe_key=None).call(1).meta.dedupe_key == 'mail.send:{"user_id":1}'
    assert send.options(dedupe=None).options(delay=1).call(1).meta.dedupe_key == 'mail.send:{"user_id":1}'
    app.job(name="f", dedupe=Latest())(lambda: None)
    assert app.job_of("f", {}, EnqueueOptions(dedupe=None)).meta is FRESH
    assert app.job_of("f", {}, EnqueueOptions()).meta.latest


def test_a_kind_may_switch_the_dedupe_of_its_app_off() -> None:
    app = StreamJobs("memory://", defaults=JobOptions(dedupe=Latest()))

    assert app.job(name="f", dedupe=None)(lambda: None).call().meta is FRESH
    assert app.job(name="g")(lambda: None).call().meta.latest
    with pytest.raises(UsageError, match="give a dedupe_key"):
        app.job_of("elsewhere", {}, EnqueueOptions())
    assert app.job_of("elsewhere", {}, EnqueueOptions(dedupe=None)).meta is FRESH


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: EnqueueOptions(dedupe=None, dedupe_key="k"), "dedupe_key='k' and no dedupe"),
        (lambda: UntilDone(key=wrong(5)), "key=5"),
        (lambda: UntilDone(key=()), "tuple of names"),
        (lambda: Latest(key=wrong(("a", 1))), "tuple of names"),
        (lambda: Window(0), "Window"),
        (lambda: Window(wrong("60")), "Window"),
        (lambda: JobOptions(dedupe=wrong("until_done")), "UntilDone()"),
        (lambda: EnqueueOptions(dedupe=wrong(UntilDone)), "UntilDone()"),
        (lambda: kind_of(UntilDone(key="user")), "no argument 'user'; use user_id, to"),
        (lambda: kind_of(UntilDone(key=("user_id", "x"))), "mail.send: .*no argument 'x'"),
        (lambda: kind_of(UntilDone(key=lambda user: "")), "mail.send: .*by name"),
        (lambda: kind_of(None).options(dedupe=Latest(key="x")), "no argument 'x'"),
    ],
)
def test_what_could_only_fail_later_is_refused(make: Any, said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        make()


@pytest.mark.parametrize("key", [lambda **_: 5, lambda **_: 1 / 0, lambda **_: "\ud800"])
def test_a_function_that_makes_no_key_is_a_usage_error(key: Any) -> None:
    with pytest.raises(UsageError, match=r"mail\.send: dedupe"):
        key_of(UntilDone(key=key), 1)


def test_arguments_of_a_kind_that_is_not_known_make_no_key() -> None:
    app = StreamJobs("memory://")

    with pytest.raises(UsageError, match="give a dedupe_key"):
        app.job_of("elsewhere", {"n": 1}, EnqueueOptions(dedupe=Latest()))
    meta = app.job_of("elsewhere", {"n": 1}, EnqueueOptions(dedupe=Latest(), dedupe_key="k")).meta
    assert (meta.dedupe_key, meta.dedupe_mode) == ("k", LATEST)
