"""A URL is checked whole before anything is contacted, and no text made from it tells a secret."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs.client import Connections, Target, parse_url, redact
from streamjobs.core.errors import InvalidOption

SECRET = "s3cr3t"


def test_network_url_gives_the_drivers_arguments() -> None:
    target = parse_url("redis://ada:p%40ss%2Fword@cache-1:6380/3")

    assert target.scheme == "redis"
    assert target.arguments == {
        "host": "cache-1",
        "port": 6380,
        "db": 3,
        "username": "ada",
        "password": "p@ss/word",
    }


@pytest.mark.parametrize(
    ("url", "scheme", "arguments"),
    [
        ("redis://localhost", "redis", {"host": "localhost", "port": 6379}),
        ("redis://localhost/", "redis", {"host": "localhost", "port": 6379}),
        ("redis://[::1]:7000/0", "redis", {"host": "::1", "port": 7000, "db": 0}),
        ("valkey://cache?db=2", "redis", {"host": "cache", "port": 6379, "db": 2}),
        ("valkeys://cache", "rediss", {"host": "cache", "port": 6379}),
        ("REDIS://cache", "redis", {"host": "cache", "port": 6379}),
        ("rediss://c?ssl_cert_reqs=required&ssl_check_hostname=true", "rediss", {"host": "c", "port": 6379}),
        ("unix:///run/redis.sock?db=1", "unix", {"path": "/run/redis.sock", "db": 1}),
        ("unix://:pw@/run/a%40b.sock", "unix", {"path": "/run/a@b.sock", "password": "pw"}),
        (" redis://cache \n", "redis", {"host": "cache", "port": 6379}),
    ],
)
def test_spellings(url: str, scheme: str, arguments: dict[str, object]) -> None:
    target = parse_url(url)

    assert (target.scheme, target.arguments) == (scheme, arguments)


def test_embedded_folder_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert parse_url("embedded://").folder == tmp_path / ".streamjobs"
    assert parse_url("embedded://data/jobs").folder == tmp_path / "data/jobs"
    assert parse_url("embedded:///srv/jobs").folder == Path("/srv/jobs")
    assert parse_url("embedded://~/jobs").folder == tmp_path / "home/jobs"
    assert parse_url("embedded://data").text == f"embedded://{tmp_path}/data"


def test_memory_servers_have_names() -> None:
    assert parse_url("memory://").name == ""
    assert parse_url("memory://one").name == "one"


def test_tls_files_are_passed_on(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("x")

    assert parse_url(f"rediss://cache?ssl_ca_certs={file}").arguments["ssl_ca_certs"] == str(file)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "the server URL is empty: write e.g. redis://"),
        ("localhost:6379", "the server URL 'localhost:6379' has no scheme: it must begin with redis://"),
        ("localhost:6379/2", "write e.g. redis://localhost:6379/2"),
        ("[::1]:7000", "write e.g. redis://[::1]:7000"),
        ("/run/redis.sock", "unknown kind of server URL '/run/redis.sock'"),
        ("me@host", "unknown kind of server URL <unreadable URL>"),
        ("http://localhost", "http://localhost: it must begin with redis://"),
        ("redis:localhost", "must begin with redis://"),
        ("redis://", "names no host"),
        ("redis:///0", "names no host"),
        ("redis://:6379", "names no host"),
        ("redis://host:0", "port 0"),
        ("redis://host:port", "percent-encode"),
        ("redis://host:99999", "percent-encode"),
        ("redis://[::1", "malformed"),
        ("redis://a..b", "not a possible name"),
        ("redis://host/zero", "the database in the server URL redis://host/zero is not a number"),
        ("redis://host/-1", "is not a number from 0 up"),
        ("redis://host?db=", "is not a number from 0 up"),
        ("redis://host/0#x", "'#' part"),
        (
            "redis://host?timeout=3",
            "unknown option timeout in the server URL redis://host; those of redis:// are: db",
        ),
        ("redis://host?decode_responses=true", "remove decode_responses from the server URL redis://host"),
        ("redis://host?decode_responses=False", "job bodies are bytes"),
        ("redis://host?decode_responses", "job bodies are bytes"),
        ("redis://host?ssl_ca_certs=/x", "unknown option ssl_ca_certs"),
        ("rediss://host?ssl_cert_reqs=none", "would accept any server"),
        ("rediss://host?ssl_cert_reqs=optional", "ssl_ca_certs=FILE"),
        ("rediss://host?ssl_check_hostname=false", "would accept any server"),
        ("rediss://host?ssl_ca_certs=/no/such.pem", "there is no file '/no/such.pem'"),
        ("unix://", "names no socket"),
        ("embedded://jobs?db=1", "takes no options"),
        ("embedded://~nobody-here/jobs", "no home folder"),
        ("embedded://a\0b", "zero byte"),
        ("unix:///a%00b", "zero byte"),
        ("memory://?db=1", "unknown option db"),
    ],
)
def test_bad_url_is_refused_in_one_line(url: str, says: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        parse_url(url)

    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"redis://{SECRET}@host",
        f"redis://user:{SECRET}@host:1/0",
        f"redis://:{SECRET}@host:x",
        f"redis://:{SECRET}",
        f"redis://user:{SECRET}",
        f"redis://:{SECRET}/more@host",
        f"redis://:p/{SECRET}@host",
        f"redis://:p?{SECRET}@host",
        f"redis://:p#{SECRET}@host",
        f"redis://:p@{SECRET}@host",
        f"redis://host?password={SECRET}",
        f"redis://host?{SECRET}%00=1",
        f"http://:{SECRET}@host",
        f":{SECRET}@host",
        f"host?password={SECRET}",
        f"unix://:{SECRET}@/run/redis.sock?nosuch=1",
        f"memory://:{SECRET}@x?db=1",
        "redis://u:12345678",
    ],
)
def test_no_message_tells_the_secret(url: str) -> None:
    shown = [redact(url)]
    try:
        target = parse_url(url)
        shown += [repr(target), str(target)]
    except InvalidOption as error:
        shown.append(str(error))

    assert not [text for text in shown if SECRET in text or "12345678" in text]


@given(password=st.text(min_size=6), tail=st.sampled_from(["@host:6379/0", "@host", "", "@", "@host:x", "@/s"]))
def test_no_unquoted_password_is_told(password: str, tail: str) -> None:
    """Whatever is in a password, and wherever it makes the URL fall apart."""
    secret = f"{password}{SECRET}{password}"
    for scheme in ("redis", "rediss", "unix", "nosuch"):
        url = f"{scheme}://user:{secret}{tail}"
        try:
            shown = repr(parse_url(url))
        except InvalidOption as error:
            shown = str(error)
        assert SECRET not in shown
        assert SECRET not in redact(url)


def test_redacted_url_keeps_what_helps() -> None:
    assert redact("redis://user:pw@cache-1:6380/3?db=1") == "redis://***@cache-1:6380/3"
    assert redact("rediss://cache-1") == "rediss://cache-1"
    assert redact("not a URL") == "<unreadable URL>"


def test_only_texts_are_urls() -> None:
    with pytest.raises(InvalidOption, match="expected a text such as redis://localhost:6379/0, not int"):
        Connections(5)  # type: ignore[arg-type]


def test_target_does_not_show_its_arguments() -> None:
    assert repr(parse_url("redis://:pw@host")) == repr(Target("redis", "redis://***@host"))
