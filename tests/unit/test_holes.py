"""Known holes: which versions have them, and which release is the next without."""

import pytest

from streamjobs.core.holes import HOLES, Hole, holes
from streamjobs.core.server import Level, ServerFacts

SCRIPTS = {"CVE-2025-46817", "CVE-2025-46818", "CVE-2025-46819", "CVE-2025-49844"}
AUTOCLAIM = {"CVE-2022-31144", "CVE-2022-35951"}

VERSIONS = [
    ("redis", "6.2.5", {"CVE-2022-24735", "CVE-2022-24834"} | SCRIPTS, "6.2.20"),
    ("redis", "6.2.14", SCRIPTS, "6.2.20"),
    ("redis", "6.2.19", SCRIPTS, "6.2.20"),
    ("redis", "6.2.20", set(), ""),
    ("redis", "6.2.99", set(), ""),
    ("redis", "7.0.0", {"CVE-2022-24834"} | AUTOCLAIM | SCRIPTS, "7.2.11"),
    ("redis", "7.0.4", {"CVE-2022-24834", "CVE-2022-35951"} | SCRIPTS, "7.2.11"),
    ("redis", "7.0.15", SCRIPTS, "7.2.11"),
    ("redis", "7.2.10", SCRIPTS, "7.2.11"),
    ("redis", "7.2.11", set(), ""),
    ("redis", "7.4.5", SCRIPTS, "7.4.6"),
    ("redis", "8.0.3", SCRIPTS, "8.0.4"),
    ("redis", "8.0.4", set(), ""),
    ("redis", "8.2.1", SCRIPTS, "8.2.2"),
    ("redis", "8.2.2", set(), ""),
    ("redis", "8.4.0", set(), ""),
    ("redis", "10.0.0", set(), ""),
    ("valkey", "8.1.0", SCRIPTS, "8.1.4"),
    ("valkey", "8.1.3", SCRIPTS, "8.1.4"),
    ("valkey", "8.1.4", set(), ""),
    ("valkey", "8.1.10", set(), ""),
    ("valkey", "9.0.0", set(), ""),
    ("valkey", "9.1.2", set(), ""),
]


@pytest.mark.parametrize(("engine", "version", "names", "release"), VERSIONS)
def test_versions(engine: str, version: str, names: set[str], release: str) -> None:
    found = holes(ServerFacts(engine, version))

    assert found.level is (Level.WARN if names else Level.OK)
    assert {hole.name for hole in HOLES if hole.name in found.what} == names
    assert f"use {release} or later" in found.advice if names else found.advice == ""


@pytest.mark.parametrize(("engine", "version"), [("", ""), ("keydb", "6.3.4"), ("redis", "new"), ("dragonfly", "1.2")])
def test_of_others_nothing_is_known(engine: str, version: str) -> None:
    assert holes(ServerFacts(engine, version)).level is Level.UNKNOWN


def test_a_branch_that_was_never_mended_is_sent_to_the_next() -> None:
    hole = Hole("X", "redis", ((6, 2, 7), (7, 2, 3)), since=(6, 1))

    assert [hole.mended(version) for version in [(6, 0, 9), (6, 2, 6), (6, 2, 7), (7, 0, 9), (7, 2, 2), (7, 3, 0)]] == [
        None, (6, 2, 7), None, (7, 2, 3), (7, 2, 3), None,
    ]  # fmt: skip
