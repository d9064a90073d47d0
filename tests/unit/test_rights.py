"""The rights of each role hold all that its scripts and requests use."""

import ast
import re

import pytest

from streamjobs.core.rights import ASKING, DURABLY, RIGHTS, rules
from streamjobs.core.roles import Role
from streamjobs.protocol import rights as protocol
from streamjobs.protocol import scripts
from streamjobs.protocol.keys import QueueKeys
from tests.style.sources import ROOT, files, tree

CALLED_BY = dict(
    re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", (ROOT / "lua" / "README.md").read_text("utf-8"), re.MULTILINE)
)
DOCTOR_ALONE = {"ACL|WHOAMI", "ACL|DRYRUN", "CONFIG|GET", "SLOWLOG|GET", "SCAN", "PTTL", "BLPOP", "SREM", "DEL"}
"""What only a doctor asks; where it may not, it says so."""


def used(text: str) -> set[str]:
    """Return the commands that a script calls."""
    found = re.findall(r"call\('([A-Z]+)'(?:, '([A-Z]+)')?", text)
    return {f"{name}|{sub}" if name in ("XGROUP", "XINFO") else name for name, sub in found}


def test_scripts_are_told_apart() -> None:
    assert "XGROUP|SETID" in used(scripts.load("join").text)
    assert {"producers", "operators"} <= set(CALLED_BY.values())


@pytest.mark.parametrize("name", sorted(set(CALLED_BY) - {"lookup", "probe"}))
def test_every_command_of_a_script_is_among_the_rights_of_who_calls_it(name: str) -> None:
    for role in Role:
        if f"{role}s" in CALLED_BY[name]:
            assert used(scripts.load(name).text) <= RIGHTS[role].commands, role


def test_every_command_of_lookup_is_among_the_rights_to_ask() -> None:
    """Of its snippets it calls nothing that writes."""
    assert used((ROOT / "lua" / "lookup.lua").read_text("utf-8")) <= ASKING.commands


def test_what_a_worker_tries_at_its_start_is_among_its_rights() -> None:
    tried = re.findall(r"\{'([A-Z]+)'(?:, '([A-Z]+)')?", (ROOT / "lua" / "probe.lua").read_text("utf-8"))

    names = {f"{name}|{sub}" if name in ("XGROUP", "XINFO") else name for name, sub in tried}
    assert names <= RIGHTS[Role.WORKER].commands


def requests() -> set[str]:
    """Return the commands that the library sends by themselves: lists of words that begin with one."""
    found = set()
    for path in files(".py", "streamjobs/protocol"):
        for node in ast.walk(tree(path)):
            match node:
                case ast.List(elts=[ast.Constant(value=str(name)), *rest]) if name.isupper() and len(name) > 2:
                    sub = next((one.value for one in rest[:1] if isinstance(one, ast.Constant)), "")
                    several = name in ("ACL", "CONFIG", "SLOWLOG", "XINFO", "XGROUP", "CLIENT", "SCRIPT", "MEMORY")
                    found.add(f"{name}|{sub}" if several else name)
    return found


def test_every_request_is_among_the_rights_of_somebody() -> None:
    everybody = set().union(*(rights.commands for rights in RIGHTS.values()))

    assert len(requests()) > 25
    assert requests() - everybody - DOCTOR_ALONE - DURABLY.commands == set()


def test_nobody_may_do_what_destroys_or_spies() -> None:
    for rights in RIGHTS.values():
        names = {name.partition("|")[0] for name in rights.commands}
        assert not names & set(
            "ACL CONFIG DEBUG EVAL FLUSHALL FLUSHDB KEYS MODULE MONITOR RENAME SHUTDOWN XTRIM".split()
        )
        assert not {"XGROUP|DESTROY", "CLIENT|KILL", "SCRIPT|FLUSH"} & rights.commands
    assert not {"XREADGROUP", "XRANGE", "XACK", "XDEL", "DEL", "HDEL"} & RIGHTS[Role.PRODUCER].commands
    assert not {"EVALSHA", "SCRIPT|LOAD", "HSET", "SET", "XADD"} & RIGHTS[Role.MONITOR].commands


def test_rules_can_be_for_one_queue() -> None:
    whole, one = rules(RIGHTS[Role.WORKER], "sj"), rules(RIGHTS[Role.WORKER], "sj", "mail")

    assert whole.endswith(" ~sj:* &sj:{*}:*")
    assert one.endswith(" ~sj:queues ~sj:worker:* ~sj:{mail}:* &sj:{mail}:*")


@pytest.mark.parametrize("role", Role)
def test_every_command_has_words_to_try_it_with(role: Role) -> None:
    keys = QueueKeys("ns", "q")

    for name, words in protocol.attempts(RIGHTS[role] | DURABLY, keys, "key").items():
        assert "|".join(map(str, words)).startswith(name)
        assert words.count("KEY") == words.count("CHANNEL") == 0
