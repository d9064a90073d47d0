"""rediss:// talks only to a server that proves to be the one that was named."""

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from streamjobs.client import Connections
from streamjobs.core.errors import Rejected, Unavailable
from tests.client.words import command
from tests.servers import Server, find_servers

OPENSSL = shutil.which("openssl")
REPLY_S = 1.0
NEW_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"


def openssl(folder: Path, words: str) -> None:
    assert OPENSSL is not None
    subprocess.run([OPENSSL, *words.split()], cwd=folder, check=True, capture_output=True)


def make_certificate(folder: Path, name: str, subject: str) -> None:
    """Make `name.key` and `name.crt`, signed by the authority in the folder."""
    (folder / f"{name}.ext").write_text(f"subjectAltName={subject}\nauthorityKeyIdentifier=keyid\n")
    openssl(folder, f"req {NEW_KEY} -keyout {name}.key -out {name}.csr -subj /CN=test")
    signer = f"-CA ca.crt -CAkey ca.key -CAcreateserial -extfile {name}.ext -days 2"
    openssl(folder, f"x509 -req -in {name}.csr {signer} -out {name}.crt")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority, and certificates for this machine and for another one."""
    if OPENSSL is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    usage = "-addext keyUsage=critical,keyCertSign,cRLSign"
    openssl(folder, f"req -x509 {NEW_KEY} -keyout ca.key -out ca.crt -days 2 -subj /CN=authority {usage}")
    make_certificate(folder, "here", "DNS:localhost,IP:127.0.0.1")
    make_certificate(folder, "elsewhere", "DNS:elsewhere.example")
    return folder


def tls_binary() -> Path | None:
    """Return a server that was built with TLS, the packaged one being none."""
    installed = shutil.which("redis-server") or shutil.which("valkey-server")
    found = [*find_servers().values(), *([Path(installed)] if installed else [])]
    return next(
        (path for path in found if b"tls-port" in path.read_bytes() and b"TLS_method" in path.read_bytes()),
        None,
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def urls(certificates: Path) -> Iterator[dict[str, str]]:
    """The addresses of two servers, by the certificate that each shows."""
    binary = tls_binary()
    if binary is None:
        pytest.skip("no server with TLS at hand")
    found = {}
    with ExitStack() as servers:
        for name in ("here", "elsewhere"):
            port, files = free_port(), {"cert": f"{name}.crt", "key": f"{name}.key", "ca-cert": "ca.crt"}
            args = ["--tls-port", str(port), "--tls-auth-clients", "optional"]
            for kind, file in files.items():
                args += [f"--tls-{kind}-file", str(certificates / file)]
            servers.enter_context(Server(binary, tcp=True, args=args))
            found[name] = f"rediss://127.0.0.1:{port}"
        yield found


@pytest.fixture(params=["sync", "aio"])
def ping(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Sends a PING with either executor."""

    def sync(url: str) -> Any:
        connections = Connections(url, reply_s=REPLY_S)
        try:
            return connections.sync().run(command("PING"))
        finally:
            connections.close()

    async def aio(url: str) -> Any:
        connections = Connections(url, reply_s=REPLY_S)
        try:
            return await connections.aio().run(command("PING"))
        finally:
            await connections.aclose()

    return sync if request.param == "sync" else lambda url: asyncio.run(aio(url))


Ping = Callable[[str], Any]
Urls = dict[str, str]


def test_named_authority_is_trusted(urls: Urls, certificates: Path, ping: Ping) -> None:
    assert ping(f"{urls['here']}?ssl_ca_certs={certificates}/ca.crt") == b"PONG"


def test_client_may_show_a_certificate(urls: Urls, certificates: Path, ping: Ping) -> None:
    own = f"ssl_certfile={certificates}/here.crt&ssl_keyfile={certificates}/here.key"

    assert ping(f"{urls['here']}?ssl_ca_certs={certificates}/ca.crt&{own}") == b"PONG"


def test_certificate_of_another_host_is_refused(urls: Urls, certificates: Path, ping: Ping) -> None:
    with pytest.raises(Rejected, match=r"is not who it should be: .*not valid for '127.0.0.1'") as caught:
        ping(f"{urls['elsewhere']}?ssl_ca_certs={certificates}/ca.crt")

    assert caught.value.word == "CERTIFICATE"


def test_unknown_authority_is_refused(urls: Urls, ping: Ping) -> None:
    with pytest.raises(Rejected, match="ssl_ca_certs=FILE") as caught:
        ping(urls["here"])

    assert caught.value.word == "CERTIFICATE"


def test_server_without_tls_is_unavailable(server_binary: Path, ping: Ping, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the rest of what it takes for a command, so only time ends this."""
    monkeypatch.setattr("streamjobs.client.aio.CONNECT_SECONDS", REPLY_S)
    with Server(server_binary, tcp=True) as server:
        with pytest.raises(Unavailable) as caught:
            ping(server.url.replace("redis://", "rediss://"))

    assert caught.value.word == "CONNECT"
