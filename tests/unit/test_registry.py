"""Kinds by name."""

from typing import Any

import pytest

from streamjobs.core.errors import InvalidOption, UnknownKind
from streamjobs.core.options import JobOptions
from streamjobs.core.registry import Registry, stranger


async def fetch(url: str) -> None: ...


def plain(n: int) -> None: ...


async def stream() -> Any:
    yield 1


def generator() -> Any:
    yield 1


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    for name in ("pages.fetch", "pages.index", "mail.send"):
        registry.add(fetch, name, JobOptions(), context=object)
    return registry


def test_a_kind_is_found_by_its_name(registry: Registry) -> None:
    handler = registry.require("pages.fetch")

    assert (handler.function, handler.is_async, handler.known) == (fetch, True, True)
    assert registry.find("pages.fetch") is handler
    assert registry.find("other") is None
    assert list(registry.all()) == ["pages.fetch", "pages.index", "mail.send"]


def test_a_name_stands_for_one_function(registry: Registry) -> None:
    with pytest.raises(InvalidOption, match=r"'pages.fetch' is registered already"):
        registry.add(plain, "pages.fetch", JobOptions(), context=object)


@pytest.mark.parametrize("function", [stream, generator])
def test_a_generator_is_no_handler(registry: Registry, function: Any) -> None:
    with pytest.raises(InvalidOption, match="a generator cannot be a handler"):
        registry.add(function, "g", JobOptions(), context=object)


def test_an_unknown_kind_names_those_like_it(registry: Registry) -> None:
    with pytest.raises(UnknownKind, match=r"'pages.fecth' is not registered in this app; known here: pages.fetch"):
        registry.require("pages.fecth")
    with pytest.raises(UnknownKind, match=r"known here: none at all"):
        Registry().require("x")


def test_a_stranger_stands_for_a_kind_that_others_know() -> None:
    handler = stranger("pages.other")

    assert (handler.kind, handler.known, handler.timeout_s) == ("pages.other", False, None)
