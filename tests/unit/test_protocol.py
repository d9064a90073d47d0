"""Keys, scripts and ids: what is said to the server, without one."""

from hashlib import sha1
from pathlib import Path

import pytest

from streamjobs.core.job import LATEST, Job, Meta
from streamjobs.protocol import intake, replies, scripts
from streamjobs.protocol.intake import Accepted, Batch, BatchRefused
from streamjobs.protocol.keys import QueueKeys, describe, queues, worker
from streamjobs.protocol.replies import Fate

KEYS = QueueKeys("sj", "mail")
NAMES = "stream ids released scheduled retries bodies moved dead dead:ids suspects config bell promoter totals workers"
NAMES += " cron cron:holds cron:code"


def test_every_key_of_a_queue_shares_its_tag() -> None:
    keys = [
        KEYS.stream,
        KEYS.ids,
        KEYS.dedupe("a:{b}"),
        KEYS.once("a:{b}"),
        KEYS.producer("p"),
        KEYS.result("1-0"),
        KEYS.metrics,
    ]

    assert all(key.startswith("sj:{mail}:") for key in keys)
    assert QueueKeys("sj", "mail", 3).stream == "sj:{mail/3}:stream"
    assert QueueKeys("sj", "mail", 3).job_id("1-0") == "mail/3:1-0"
    assert KEYS.job_id("1-0") == "mail:1-0"


@pytest.mark.parametrize("name", NAMES.split())
def test_each_documented_key_is_known(name: str) -> None:
    assert describe(f"sj:{{mail}}:{name}") == describe(f"sj:{{mail/12}}:{name}") == name


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (queues("sj"), "queues"),
        (worker("sj", "host-1-{a}"), "worker"),
        ("sj:worker:", None),
        (KEYS.dedupe("a\n:{b}"), "dedupe"),
        (KEYS.once("a\n:{b}"), "once"),
        (KEYS.producer("00ff"), "producer"),
        (KEYS.result("d1-0"), "result"),
        (KEYS.metrics + "29400000", "metrics"),
        ("sj:{mail}:other", None),
        ("sj:{mail}:", None),
        ("sj:mail:stream", None),
        ("sj:{mail/x}:stream", None),
        ("sj:{ma il}:stream", None),
        ("queues", None),
        ("", None),
    ],
)
def test_a_key_says_what_it_is(key: str, kind: str | None) -> None:
    assert describe(key) == kind


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of scripts of the test's own."""
    (tmp_path / "include").mkdir()
    monkeypatch.setattr(scripts, "folder", lambda: tmp_path)
    # Past the cache, which outlives the test.
    monkeypatch.setattr(scripts, "load", scripts.load.__wrapped__)
    return tmp_path


def test_snippets_are_included_where_they_are_named_and_only_once(folder: Path) -> None:
    (folder / "include" / "a.lua").write_text("-- @include b\nlocal a\n")
    (folder / "include" / "b.lua").write_text("local b\n")
    (folder / "move.lua").write_text("-- head\n-- @include a\n-- @include b\n-- @include a\nreturn 1\n")

    script = scripts.load("move")

    assert script.text == "-- head\nlocal b\nlocal a\nreturn 1\n"
    assert script.sha == sha1(script.text.encode(), usedforsecurity=False).hexdigest()


def test_a_script_that_is_not_there_is_said_so(folder: Path) -> None:
    (folder / "move.lua").write_text("-- @include a\n")

    for name in ("other", "move"):
        with pytest.raises(FileNotFoundError):
            scripts.load(name)


@pytest.mark.parametrize("name", scripts.names())
def test_every_script_of_the_package_loads_whole(name: str) -> None:
    script = scripts.load(name)

    assert "@include" not in script.text
    assert script.text.startswith(f"-- {name}: ")


def test_ids_of_a_batch_are_consecutive_but_for_those_held_by_others() -> None:
    accepted = Accepted("d", "17", 5, {1: "d9-9", 3: "d8-8"})

    assert accepted.ids(5) == ["d17-5", "d9-9", "d17-6", "d8-8", "d17-7"]
    assert Accepted("", "17", 0, {}).ids(3) == ["17-0", "17-1", "17-2"]


def test_a_batch_that_is_not_taken_has_its_word() -> None:
    call = intake.enqueue(KEYS, [Job("mail", b"{}", "mail")], Batch("p", 1, "t"))

    assert call.decode(b"17 0 1").ids(1) == ["17-0"]
    assert call.decode(b"0 0 0 0 9-9").held == {0: "9-9"}
    for word in (b"STALEBATCH", b"TWOPRODUCERS"):
        with pytest.raises(BatchRefused, match=word.decode()):
            call.decode(word)


def test_jobs_of_one_kind_in_a_row_share_its_name() -> None:
    plain, keyed = Job("a", b"1", "mail"), Job("a", b"2", "mail", meta=Meta(dedupe_key="k"))
    other = Job("b", b"3", "mail")

    call = intake.enqueue(KEYS, [plain, plain, keyed, other], Batch("p", 1, "t"))

    assert list(call.args[3:]) == [
        "a", 2, "plain", 0, b"1", b"1",
        "a", 1, "full", intake.DEDUPE_TTL_MS, b"2", b'{"dk":"k"}',
        "b", 1, "plain", 0, b"3",
    ]  # fmt: skip
    assert call.keys[4:] == [KEYS.latest, KEYS.config, KEYS.dedupe("k")]


def test_jobs_of_a_run_have_keys_that_live_alike() -> None:
    metas = [Meta(dedupe_key="k"), Meta(dedupe_key="l"), Meta(dedupe_key="m", dedupe_window_ms=9), Meta(parks=1)]

    call = intake.enqueue(KEYS, [Job("a", b"1", "mail", meta=meta) for meta in metas], Batch("p", 1, "t"))

    assert list(call.args[3:]) == [
        "a", 2, "full", intake.DEDUPE_TTL_MS, b"1", b'{"dk":"k"}', b"1", b'{"dk":"l"}',
        "a", 1, "full", 9, b"1", b'{"dk":"m","dw":9}',
        "a", 1, "full", 0, b"1", b'{"p":1}',
    ]  # fmt: skip
    assert list(call.keys[6:]) == [KEYS.dedupe(key) for key in "klm"]


def test_jobs_that_take_newer_arguments_have_a_form_of_their_own() -> None:
    until_done, latest = Meta(dedupe_key="k"), Meta(dedupe_key="k", dedupe_mode=LATEST)

    call = intake.enqueue(
        KEYS, [Job("a", b"1", "mail", meta=meta) for meta in (until_done, latest)], Batch("p", 1, "t")
    )

    assert [call.args[5], call.args[9:12]] == ["full", ["a", 1, "latest"]]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT"),
        ("OOM command not allowed when used memory > 'maxmemory'.", "OOM"),
        ("NOGROUP No such key 'x' or consumer group 'workers' in XREADGROUP with GROUP option", "NOGROUP"),
        ("ERR Error running script (call to f_0): @user_script:5: -NOGROUP No such consumer group", "NOGROUP"),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", "WRONGTYPE"),
        ("READONLY You can't write against a read only replica. script: 0ff, on @user_script:1.", "READONLY"),
        ("LOADING Redis is loading the dataset in memory", "LOADING"),
        ("UNBLOCKED the stream key no longer exists", "UNBLOCKED"),
        ("ERR max number of clients reached", "MAXCLIENTS"),
        ("ERR unknown command 'XAUTOCLAIM', with args beginning with:", "UNKNOWN_COMMAND"),
        ("ERR wrong number of arguments for 'get' command", "ARITY"),
        ("WRONGPASS invalid username-password pair or user is disabled.", "WRONGPASS"),
        ("NOPERM this user has no permissions to run the 'evalsha' command", "NOPERM"),
        ("ERR value is not an integer or out of range", "SCRIPT"),
        ("ERR something else", "ERR"),
        ("", "ERR"),
    ],
)
def test_an_error_reply_has_its_word(text: str, name: str) -> None:
    assert replies.word(text) == name


def test_no_reply_leaves_a_doubt() -> None:
    assert {replies.fate(name) for name in replies.NOT_EXECUTED} == {Fate.NOT_EXECUTED}
    assert {replies.fate(name) for name in (*replies.PERMANENT, "ERR", "SCRIPT", "")} == {Fate.PERMANENT}
    assert not replies.NOT_EXECUTED & replies.PERMANENT


def test_scripts_and_producers_agree_on_how_long_a_dedupe_key_lives() -> None:
    assert f"KEY_TTL = {intake.DEDUPE_TTL_MS}\n" in scripts.load("renew").text
