"""The tree of errors is the one that its docstring draws."""

import inspect
import re

import pytest

from streamjobs.core import errors, failpoints
from streamjobs.core.errors import OutcomeUnknown, UsageError


def drawn() -> dict[str, str]:
    """Return the parent of each class in the drawing."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"( {4}[ │├└─]*)([A-Z]\w+)(?: |$)", line)
        if match:
            depth = len(match[1]) // 4 - 1
            path[depth:] = [match[2]]
            parents[match[2]] = path[depth - 1] if depth else "Exception"
    return parents


def test_the_drawing_has_every_class_below_its_parent() -> None:
    classes = {name: one for name, one in inspect.getmembers(errors, inspect.isclass) if name[0] != "_"}
    for name, parent in drawn().items():
        assert parent == "Exception" or issubclass(classes[name], classes[parent]), name

    assert set(drawn()) | {"Any", "Callable"} >= set(classes) >= set(drawn())


def test_a_retry_that_cannot_be_exact_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be repeated exactly"):
        OutcomeUnknown("cut").retry()


def test_a_retry_is_what_the_failed_call_would_have_returned() -> None:
    assert OutcomeUnknown("cut", retry=lambda: "handle").retry() == "handle"


def test_an_armed_failpoint_acts_at_every_pass_until_it_is_disarmed() -> None:
    passed: list[int] = []
    failpoints.failpoint("test.here")
    failpoints.arm("test.here", lambda: passed.append(1))

    for name in ("test.here", "test.there", "test.here"):
        failpoints.failpoint(name)
    failpoints.arm("test.here", None)
    failpoints.failpoint("test.here")

    assert len(passed) == 2
