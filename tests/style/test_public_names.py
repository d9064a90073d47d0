"""`streamjobs.__all__` is the public interface: complete, sorted, and all of it there."""

import ast
import inspect

import streamjobs
from streamjobs.core import errors
from tests.style.sources import ROOT, tree

ERRORS = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and value.__module__ == errors.__name__ and not name.startswith("_")
}


def test_all_is_sorted_and_each_name_is_there() -> None:
    assert list(streamjobs.__all__) == sorted(set(streamjobs.__all__))
    assert [name for name in streamjobs.__all__ if not hasattr(streamjobs, name)] == []


def test_all_is_complete() -> None:
    """Whatever `__init__.py` takes from the package, or defines, without an underscore is for users."""
    bound: set[str] = set()
    for node in ast.walk(tree(ROOT / "streamjobs" / "__init__.py")):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "streamjobs":
                bound |= {alias.asname or alias.name for alias in names}
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
    assert {name for name in bound if not name.startswith("_")} - set(streamjobs.__all__) == set()


def test_every_public_error_is_exported() -> None:
    assert set(ERRORS) - set(streamjobs.__all__) == set()
    assert all(getattr(streamjobs, name) is value for name, value in ERRORS.items())


def test_the_error_tree_in_the_docstring_is_the_real_one() -> None:
    real = {
        name: next(base.__name__ for base in value.__mro__[1:] if not base.__name__.startswith("_"))
        for name, value in ERRORS.items()
    }
    assert _drawn(errors.__doc__ or "") == real


def _drawn(text: str) -> dict[str, str]:
    """Read class -> base from a tree drawn with box characters."""
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        plain = line.translate(str.maketrans("├└─│", "    "))
        name, depth = (plain.split() or [""])[0], len(plain) - len(plain.lstrip())
        if name not in ERRORS or depth == 0:
            continue
        above = [(column, base) for column, base in above if column < depth]
        found[name] = above[-1][1] if above else "Exception"
        above.append((depth, name))
    return found
