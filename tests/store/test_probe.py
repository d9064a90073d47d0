"""probe: a right that is missing comes to light before any work is done, and nothing is left behind."""

import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamjobs.client import Connections
from streamjobs.core.errors import Rejected, Unavailable
from streamjobs.protocol import server
from streamjobs.protocol.keys import QueueKeys
from tests.servers import Server
from tests.store.support import Store
from tests.style.sources import ROOT

EVERYTHING = ("~*", "&*", "+@all")
Probe = Callable[..., list[str]]


@pytest.fixture
def probe(real: Store, server_url: str) -> Iterator[Probe]:
    """Probe as a user with these rights."""
    name = f"u{secrets.token_hex(4)}"

    def run(*rules: str) -> list[str]:
        real.command("ACL", "SETUSER", name, "reset", "on", ">pw", *rules)
        connections = Connections(server_url.replace("unix://", f"unix://{name}:pw@"))
        try:
            return connections.sync().run(server.probe(real.keys))
        finally:
            connections.close()

    yield run
    real.command("ACL", "DELUSER", name)


def test_who_may_do_everything_is_refused_nothing(bare: Store) -> None:
    assert bare.run(server.probe(bare.keys)) == []
    assert bare.left() == set()


def test_the_work_of_others_is_not_touched(store: Store) -> None:
    [claim] = store.started(1)

    store.run(server.probe(store.keys))

    assert store.pending() == {claim.entry: (b"a", 1)}


def test_commands_that_are_denied_are_named(probe: Probe) -> None:
    assert sorted(probe(*EVERYTHING, "-xdel", "-publish", "-ttl", "-zrem")) == ["PUBLISH", "XDEL", "ZREM"]


def test_what_cannot_be_deleted_is_not_made(probe: Probe, real: Store) -> None:
    assert probe(*EVERYTHING, "-del") == ["DEL"]
    assert real.command("EXISTS", real.keys.probe) == 0


def test_commands_that_fail_for_want_of_another_are_not_named(probe: Probe) -> None:
    assert set(probe(*EVERYTHING, "-xgroup")) == {"XGROUP"}


def test_channels_need_rights_of_their_own(probe: Probe, namespace: str) -> None:
    assert probe("~*", "+@all", "resetchannels", f"&{namespace}:*") == []
    assert probe("~*", "+@all", "resetchannels", "&other:*") == ["PUBLISH"]


def test_keys_of_others_are_refused_as_a_whole(probe: Probe) -> None:
    with pytest.raises(Rejected, match="NOPERM") as caught:
        probe("~other:*", "&*", "+@all")

    assert caught.value.word == "NOPERM"


def test_a_server_that_refuses_writes_is_tried_again(server_binary: Path) -> None:
    with Server(server_binary, args=("--replicaof", "127.0.0.1", "1")) as replica:
        connections = Connections(replica.url)
        with pytest.raises(Unavailable) as caught:
            connections.sync().run(server.probe(QueueKeys("ns", "q")))
        connections.close()

    assert caught.value.word in ("READONLY", "MASTERDOWN")


def test_every_command_of_a_workers_scripts_is_tried() -> None:
    readme = (ROOT / "lua" / "README.md").read_text("utf-8")
    names = re.findall(r"^\| `(\w+)` \|.*\|.*workers.*\|$", readme, re.MULTILINE)
    assert len(names) > 10
    used = {command for name in names if name != "probe" for command in commands(name)}

    tried = set(re.findall(r"[{(]'([A-Z]+)'", (ROOT / "lua" / "probe.lua").read_text("utf-8")))
    assert used - tried == set()


def commands(name: str) -> set[str]:
    """Return the commands that a script uses, its includes too."""
    text = (ROOT / "lua" / f"{name}.lua").read_text("utf-8")
    included = [(ROOT / "lua" / "include" / f"{one}.lua") for one in re.findall(r"@include (\w+)", text)]
    return {
        command
        for part in [text, *(path.read_text("utf-8") for path in included)]
        for command in re.findall(r"call\('([A-Z]+)'", part)
    }
