"""The jobs of a batch kind: their arguments are the fields of the items that its handler takes."""

from dataclasses import KW_ONLY, dataclass, field
from datetime import date
from typing import Any, NotRequired, TypedDict

import msgspec
import pytest

from streamjobs.core.codec import DecodeFailed
from streamjobs.core.errors import InvalidOption, UsageError
from streamjobs.core.items import ItemSignature


class Context:
    """Stands for the worker's own."""


class Struct(msgspec.Struct, tag=True, rename="upper", frozen=True):
    n: int
    day: date = date(2026, 1, 1)
    tags: list[str] = []


@dataclass
class Data:
    day: date = date(2026, 1, 1)
    _: KW_ONLY
    n: int
    tags: list[str] = field(default_factory=list)
    total: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("n is negative")
        self.total = self.n


class Typed(TypedDict):
    n: int
    day: date
    tags: list[str]


class Sparse(TypedDict):
    n: NotRequired[int]


class Odd(msgspec.Struct):
    n: complex


def of(item: Any) -> ItemSignature:
    def handler(ctx: Context, items: Any) -> None: ...

    handler.__annotations__["items"] = list[item]
    return ItemSignature(handler, context=Context, kind="k")


ITEMS = [Struct(5, tags=["a"]), Data(n=5, tags=["a"]), Typed(n=5, day=date(2026, 1, 1), tags=["a"])]


@pytest.mark.parametrize("item", ITEMS, ids=["struct", "dataclass", "typed dict"])
def test_an_item_travels_as_its_fields(item: Any) -> None:
    signature = of(Typed if isinstance(item, dict) else type(item))

    body, arguments = signature.bind((item,), {})

    assert msgspec.json.decode(body) == {"n": 5, "day": "2026-01-01", "tags": ["a"]}
    assert msgspec.structs.asdict(arguments) == {"n": 5, "day": date(2026, 1, 1), "tags": ["a"]}
    decoded = signature.decode(body)
    assert decoded == ((item,), {})
    assert signature.value(decoded, "day") == date(2026, 1, 1)
    assert signature.wants_context
    assert sorted(signature.names) == ["day", "n", "tags"]


@pytest.mark.parametrize("item", [Struct, Data])
def test_defaults_are_those_of_the_class(item: type) -> None:
    signature = of(item)

    [first], _ = signature.decode(b'{"n":1}')
    [second], _ = signature.decode(b'{"n":1}')

    assert (first.day, first.tags) == (date(2026, 1, 1), [])
    assert first.tags is not second.tags
    assert signature.positional[0] == "n"
    assert signature.bind((), {"n": 1})[0] == signature.bind((item(n=1),), {})[0]
    assert signature.convert({"n": "1"})[1] == signature.bind((item(n=1),), {})[1]


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((5,), {}), ((None,), {}), (({"n": 5},), {}), ((Data(n=1), Data(n=2)), {}), ((), {}), ((), {"m": 1}),
     ((), {"n": "x"}), ((), {"n": -1})],
)  # fmt: skip
def test_what_is_no_item_is_refused_before_it_is_sent(args: Any, kwargs: Any) -> None:
    with pytest.raises(UsageError, match=r"^k: "):
        of(Data).bind(args, kwargs)


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"n":"x"}', b'{"n":1,"m":2}', b'{"n":-1}', b"{"])
def test_a_body_that_makes_no_item_does_not_decode(body: bytes) -> None:
    with pytest.raises(DecodeFailed, match=r"^arguments: "):
        of(Data).decode(body)
    with pytest.raises(UsageError, match=r"^k: "):
        of(Data).check(body)


@pytest.mark.parametrize("item", [int, dict[str, int], Any, list[int], Sparse, Odd, Data | None])
def test_items_without_fields_or_of_types_that_do_not_travel_are_refused(item: Any) -> None:
    with pytest.raises(InvalidOption, match=r"^k: "):
        of(item)


def test_a_handler_takes_one_list_by_position() -> None:
    def none() -> None: ...
    def single(item: Data) -> None: ...
    def two(items: list[Data], more: list[Data]) -> None: ...
    def by_name(*, items: list[Data]) -> None: ...
    def many(*items: list[Data]) -> None: ...
    def bare(items: list) -> None: ...  # type: ignore[type-arg]

    functions: list[Any] = [none, single, two, by_name, many, bare]
    for function in functions:
        with pytest.raises(InvalidOption, match=r"^k: with batch= a handler takes one list"):
            ItemSignature(function, context=Context, kind="k")
