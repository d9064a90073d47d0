"""Arguments on the wire: what a signature takes, and what it refuses before anything is sent."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict
from uuid import UUID

import msgspec
import pytest

from streamjobs.core.codec import DecodeFailed, Signature, encode_object
from streamjobs.core.errors import InvalidOption, PayloadTooLarge, UsageError
from streamjobs.core.names import MAX_PAYLOAD_BYTES


class Context:
    """Stands for the worker's own."""


class Colour(Enum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


@dataclass
class Point:
    x: int
    y: float | None = None


class Shape(msgspec.Struct):
    corners: list[Point]


class Options(TypedDict, total=False):
    depth: int


class Pair(NamedTuple):
    left: int
    right: str


@dataclass
class Node:
    value: int
    children: list["Node"]


UserId = NewType("UserId", int)


class Model:
    """A pydantic model by its duck type."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and other.n == self.n

    def model_dump(self, *, mode: str) -> dict[str, int]:
        return {"n": self.n}

    @classmethod
    def model_validate(cls, value: Any) -> "Model":
        if not isinstance(value, dict) or not isinstance(value.get("n"), int):
            raise ValueError("n: expected an int")
        return cls(value["n"])


def signature(hint: Any, default: Any = ...) -> Signature:
    """Return the signature of a function of one argument."""

    def handler(x) -> None:  # type: ignore[no-untyped-def]
        pass

    handler.__annotations__ = {"x": hint}
    if default is not ...:
        handler.__defaults__ = (default,)
    return Signature(handler, context=Context)


def of(function: Any) -> Signature:
    return Signature(function, context=Context)


VALUES: list[tuple[Any, Any]] = [
    (int, 0), (int, 2**63 - 1), (int, -(2**63)), (int, 393087288629462191), (int, 2**64), (float, 1.5), (float, 3),
    (bool, True), (str, "ä"), (bytes, b"\x00\xff"), (None, None), (int | None, None), (int | str, "x"),
    (list[int], [1, 2]),
    (tuple[int, str], (1, "a")), (tuple[int, ...], (1, 2, 3)), (set[int], {1, 2}), (frozenset[str], frozenset("ab")),
    (dict[str, list[int]], {"a": [1]}), (dict[int, str], {1: "a"}), (Any, {"a": [1, None, True]}), (Colour, Colour.RED),
    (Size, Size.BIG), (UUID, UUID(int=7)), (Decimal, Decimal("1.10")), (datetime, datetime(2026, 1, 1, tzinfo=UTC)),
    (date, date(2026, 1, 1)), (time, time(1, 2)), (timedelta, timedelta(days=1, seconds=3)), (Point, Point(1, 2.5)),
    (Shape, Shape([Point(1), Point(2, 0.5)])), (Options, {"depth": 1}), (Pair, Pair(1, "b")), (UserId, UserId(5)),
    (Node, Node(1, [Node(2, [])])), (Literal["a", 1], "a"), (Annotated[int, msgspec.Meta(ge=1)], 1),
    (Model, Model(4)), (Model | None, None), (list[Model], [Model(1), Model(2)]), (dict[str, Model], {"a": Model(3)}),
]  # fmt: skip


IDS = [f"{n}-{hint!s:.30}" for n, (hint, _) in enumerate(VALUES)]


@pytest.mark.parametrize(("hint", "value"), VALUES, ids=IDS)
def test_a_value_comes_back_as_it_was(hint: Any, value: Any) -> None:
    one = signature(hint)

    args, kwargs = one.decode(one.encode((value,), {}))

    assert (args, kwargs) == ((value,), {})
    if hint is not float:
        assert type(args[0]) is type(value)


class Client:
    """Such as a connection: nothing that could travel."""


@dataclass
class Holder:
    client: Client


class Deep(msgspec.Struct):
    holders: dict[str, list[Holder]]


@pytest.mark.parametrize(
    "hint", [Client, list[Client], dict[str, Client], Client | None, tuple[int, Client], Holder, Deep, object, complex,
             type, Exception, int | Client, "NoSuchName"],
)  # fmt: skip
def test_case_H3_a_type_that_cannot_travel_is_refused_at_registration(hint: Any) -> None:
    with pytest.raises(InvalidOption, match=r"handler: (argument 'x'|an annotation cannot be resolved)"):
        signature(hint)


@pytest.mark.parametrize("value", [Client(), {"a": [Client()]}, object(), print, 1j])
def test_case_H3_such_a_value_is_refused_when_enqueued(value: Any) -> None:
    with pytest.raises(UsageError, match=r"handler: .*cannot be encoded as JSON"):
        signature(Any).encode((value,), {})


@pytest.mark.parametrize("function", [lambda *args: None, lambda **kwargs: None])
def test_arguments_without_names_are_refused_at_registration(function: Any) -> None:
    with pytest.raises(InvalidOption, match="name each argument"):
        of(function)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Any, float("nan")), (Any, float("-inf")), (Any, [1, {"a": (float("inf"),)}]),
        (float, float("nan")), (float | None, float("nan")), (list[float | None], [1.0, float("inf")]),
        (Point, Point(1, float("nan"))), (Shape, Shape([Point(1, float("inf"))])),
    ],
)  # fmt: skip
def test_numbers_without_a_JSON_form_are_refused(hint: Any, value: Any) -> None:
    """JSON encoders turn them into null without a word."""
    with pytest.raises(UsageError):
        signature(hint).encode((value,), {})


@pytest.mark.parametrize("text", ["\U0001f600", "a\x00b", "\u202bשלום\u202c", "\u2028", "null", "x" * 200_000])
def test_case_H4_any_text_comes_back_as_it_was(text: str) -> None:
    one = signature(str)

    assert one.decode(one.encode((text,), {})) == ((text,), {})


@pytest.mark.parametrize("value", ["\ud800", ["\udfff"], {"\ud800": 1}])
def test_case_H4_a_lone_surrogate_is_refused_with_its_reason(value: Any) -> None:
    with pytest.raises(UsageError, match="a string holds a lone surrogate, which has no UTF-8 form"):
        signature(Any).encode((value,), {})


ROOM = MAX_PAYLOAD_BYTES - len('{"x":""}')


@pytest.mark.parametrize("text", ["x" * ROOM, "ä" * (ROOM // 2)])
def test_case_H5_arguments_at_the_limit_pass(text: str) -> None:
    assert len(signature(str).encode((text,), {})) == MAX_PAYLOAD_BYTES


@pytest.mark.parametrize("text", ["x" * ROOM, "x" * 1_000_000])
def test_case_H5_arguments_beyond_the_limit_are_refused(text: str) -> None:
    with pytest.raises(PayloadTooLarge, match=rf"handler: \d+ bytes encoded, .* {MAX_PAYLOAD_BYTES}"):
        signature(str).encode((text + "y",), {})


def test_arguments_are_bound_like_a_call() -> None:
    def handler(a: int, b: str = "x", *, c: float = 1.0, d: bool) -> None: ...

    one = of(handler)

    assert one.decode(one.encode((1,), {"d": True})) == ((1, "x"), {"c": 1.0, "d": True})
    assert one.decode(one.encode((), {"a": 1, "b": "y", "d": False, "c": 2.5})) == ((1, "y"), {"c": 2.5, "d": False})


def test_positional_only_parameters_stay_positional() -> None:
    def mixed(a: int, /, b: int, *, c: int) -> None: ...

    def plain(a: int, /, b: int = 2) -> None: ...

    assert of(mixed).decode(of(mixed).encode((1, 2), {"c": 3})) == ((1, 2), {"c": 3})
    assert of(plain).decode(of(plain).encode((1,), {})) == ((1, 2), {})


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}), ((1,), {}), ((1, "x", 2), {"d": True}), ((1,), {"d": True, "e": 1}), ((1,), {"a": 1, "d": True}),
        (("1",), {"d": True}), ((1.5,), {"d": True}), ((True,), {"d": True}), ((1,), {"d": 1}), ((None,), {"d": True}),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    def handler(a: int, b: str = "x", *, d: bool) -> None: ...

    with pytest.raises(UsageError, match=r"handler: "):
        of(handler).encode(args, kwargs)


def test_without_keyword_only_parameters_too() -> None:
    def handler(a: int, b: str = "x") -> None: ...

    for args, kwargs in [((), {}), ((1, "x", 3), {}), ((1,), {"a": 1}), ((1,), {"c": 1}), ((1, 2), {})]:
        with pytest.raises(UsageError):
            of(handler).encode(args, kwargs)


def test_a_default_is_written_so_that_a_later_one_does_not_change_the_job() -> None:
    assert signature(int, 5).encode((), {}) == b'{"x":5}'


def test_a_job_without_an_argument_that_came_later_takes_its_default() -> None:
    assert signature(int, 5).decode(b"{}") == ((5,), {})


def test_a_list_as_default_is_new_for_each_job() -> None:
    one = signature(list[int], [])

    first, second = (one.decode(b"{}")[0][0] for _ in range(2))

    assert first == []
    assert first is not second


def test_the_context_comes_first_and_is_no_argument() -> None:
    def handler(ctx: Context, n: int) -> None: ...

    assert of(handler).wants_context
    assert of(handler).encode((1,), {}) == b'{"n":1}'
    assert not signature(int).wants_context


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1]", b"null", b'"x"', b"{}", b'{"x":"1"}', b'{"x":1,"y":2}', b'{"x":1}}', b'{"x":\xff}',
     b'{"x":1e400}', b"\x00", b"[" * 100_000],
)  # fmt: skip
def test_a_body_that_does_not_fit_says_why(body: bytes) -> None:
    with pytest.raises(DecodeFailed, match=r"^arguments: .+"):
        signature(int).decode(body)
    with pytest.raises(UsageError, match=r"handler: .+"):
        signature(int).check(body)


def test_pydantic_models_are_checked_by_their_own_rules() -> None:
    with pytest.raises(DecodeFailed, match="n: expected an int"):
        signature(Model).decode(b'{"x":{"n":"four"}}')


def test_text_from_a_command_line_is_converted_by_the_signature() -> None:
    def handler(n: int, when: date, on: bool = False) -> None: ...

    body, _ = of(handler).convert({"n": "5", "when": "2026-01-02", "on": "true"})

    assert body == b'{"n":5,"when":"2026-01-02","on":true}'
    with pytest.raises(UsageError, match=r"handler: .*`int`"):
        of(handler).convert({"n": "five", "when": "2026-01-02"})


def test_arguments_that_are_json_already_stay_digit_by_digit() -> None:
    values = {"a": msgspec.Raw(b"null"), "b": msgspec.Raw(b"[1e400, 12345678901234567890123]")}

    assert encode_object(values, "kind") == b'{"a":null,"b":[1e400, 12345678901234567890123]}'


@pytest.mark.parametrize(
    ("hint", "value", "raw"),
    [
        (int, "7", b"7"),
        (str, "7", b'"7"'),
        (list[int], [1], b"[1]"),
        (bool, "true", b"true"),
        (int | None, None, b"null"),
    ],
)
def test_one_argument_is_read_from_its_text(hint: Any, value: Any, raw: bytes) -> None:
    assert signature(hint).argument("x", value) == raw


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("x", "x", "argument 'x': Expected `int`"),
        ("other", 1, "there is no argument 'other'; it has x"),
        ("x", 2.5, "argument 'x'"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused(name: str, value: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        signature(int).argument(name, value)
