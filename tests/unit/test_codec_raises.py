"""Classes of arguments and results that raise what nobody expects: a refusal like any other."""

import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from streamjobs.core.codec import DecodeFailed, Signature, canonical, decode_value, encode_value
from streamjobs.core.errors import UsageError


class Model:
    """A pydantic model by its duck type."""

    def __init__(self, n: int) -> None:
        self.n = n


def of(function: Any) -> Signature:
    return Signature(function, context=type)


def signature(hint: Any) -> Signature:
    """Return the signature of a function of one argument."""

    def handler(x) -> None:  # type: ignore[no-untyped-def]
        pass

    handler.__annotations__ = {"x": hint}
    return of(handler)


@dataclass
class Picky:
    """Raises what no class should."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise KeyError(self.n)


class Lax(Model):
    """Checks nothing, and fails where that comes out."""

    def model_dump(self, *, mode: str) -> dict[str, int]:
        raise LookupError("\ud800")

    @classmethod
    def model_validate(cls, value: Any) -> "Lax":
        raise RuntimeError(value["n"])


class Unprintable(NotImplementedError):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Silent(Lax):
    @classmethod
    def model_validate(cls, value: Any) -> "Silent":
        raise Unprintable


@pytest.mark.parametrize(
    ("hint", "said"), [(Picky, "KeyError: -1"), (Lax, "RuntimeError: -1"), (Silent, "^.*Unprintable$")]
)
def test_whatever_a_class_raises_is_a_refusal(hint: Any, said: str) -> None:
    one = signature(hint)
    body = b'{"x":{"n":-1}}'

    with pytest.raises(DecodeFailed, match=said):
        one.decode(body)
    with pytest.raises(UsageError, match=said):
        one.check(body)
    with pytest.raises(UsageError, match=said):
        one.convert({"x": {"n": -1}})
    with pytest.raises(UsageError, match=said):
        one.argument("x", {"n": -1})
    with pytest.raises(UsageError, match=said):
        decode_value(b'{"n":-1}', hint, "what was kept")


def test_whatever_a_class_raises_when_it_is_enqueued_is_a_refusal() -> None:
    with pytest.raises(UsageError, match=r"handler: LookupError: \\ud800"):
        signature(Lax).encode((Lax(1),), {})
    with pytest.raises(UsageError, match="Lax: LookupError"):
        canonical(Lax(1))


class Fickle(Model):
    """Can be encoded once, to what has to be looked at again."""

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        self.n -= 1
        if self.n < 0:
            raise LookupError("only once")
        return {"n": None}


def test_whatever_a_class_raises_when_it_is_encoded_is_a_refusal() -> None:
    for value, said in [(Lax(1), "LookupError"), (Fickle(1), "only once")]:
        with pytest.raises(UsageError, match=f"what was returned: .*{said}"):
            encode_value(value, "what was returned")


def test_a_value_is_too_deep_for_us_or_is_not() -> None:
    value: list[Any] = [None]
    for _ in range(2 * sys.getrecursionlimit()):
        value = [value]
        with suppress(UsageError):
            encode_value(value, "what was returned")


def test_a_result_whose_class_raises_anything_is_not_what_was_annotated() -> None:
    def handler() -> Picky: ...

    with pytest.raises(UsageError, match="not what it is annotated to return: KeyError: -1"):
        of(handler).result({"n": -1})
