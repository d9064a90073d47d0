"""A run of the peers as it was asked for: what is written, and the exit code."""

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from .. import document as run_document
from ..lab import Lab
from ..registry import UsageError
from ..server import running
from . import table
from .catalogue import BARE, OURS, PEERS
from .document import Document
from .environments import folder
from .match import FULL, QUICK, play


def _server() -> str:
    with running() as url, closing(Lab(url)) as lab:
        return lab.server_version()


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run; without names all peers."""

    peer: Sequence[str] = ()
    quick: bool = False
    repeats: int | None = None
    json: str | None = None
    """Where the document goes; - for stdout in place of the table."""
    markdown: bool = False
    environments: Path | None = None

    def words(self) -> list[str]:
        """Return the words that ask for the same."""
        said = ["peers", *self.peer, *(["--quick"] if self.quick else [])]
        return said + (["--repeats", str(self.repeats)] if self.repeats else [])


def run(asked: Asked) -> int:
    """Run the peers; return 0 if each has figures that count, else 1.

    Raises:
        UsageError: there is no such peer.
        ServerError: there is no server.
        OSError: a file cannot be written.
    """
    known = {peer.name: peer for peer in PEERS}
    for name in asked.peer:
        if name not in known:
            raise UsageError(f"peer {name!r:.40}: there is none; there are {', '.join(known)}")
    chosen = [peer for peer in PEERS if not asked.peer or peer.name in {*asked.peer, BARE, OURS}]
    terms = QUICK if asked.quick else FULL
    if asked.repeats:
        terms = msgspec.structs.replace(terms, repeats=asked.repeats)
    if asked.json not in (None, "-"):
        Path(asked.json).touch()
    machine, started_at = run_document.machine(), run_document.now()
    rows = play(chosen, terms, asked.environments or folder())
    finished = Document(
        machine=machine,
        command=run_document.command(asked.words()),
        started_at=started_at,
        versions=run_document.versions(_server()),
        commit=run_document.commit(),
        repeats=terms.repeats,
        rows=rows,
    )
    if asked.json not in (None, "-"):
        Path(asked.json).write_bytes(finished.encode())
    text = finished.encode().decode() if asked.json == "-" else None
    sys.stdout.write(text or (table.markdown(finished) if asked.markdown else table.render(finished)))
    for row in rows:
        wrong = {"": row.failed} if row.failed else {f" {what}": said for what, said in row.broken.items()}
        for what, said in wrong.items():
            print(f"benchmarks: {row.peer} {row.config}{what}: {said}", file=sys.stderr)
    return 1 if any(row.failed or row.broken or row.doubtful for row in rows) else 0
