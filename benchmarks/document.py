"""The document that every benchmark writes: where it ran, how it was called, what came out.

Schema `streamjobs.bench`, version 1. A later scenario adds results, and fields where it must; it
never changes the meaning of one that is there.
"""

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

import streamjobs

from .measure import Spread

SCHEMA = "streamjobs.bench"
VERSION = 1
PACKAGES = ("redis", "hiredis", "msgspec")


class Machine(msgspec.Struct, frozen=True):
    """Where the numbers come from; figures of two machines are not compared, their ratios are."""

    cpu: str
    cores: int
    memory_bytes: int | None
    system: str
    python: str
    load_1m: float | None


class Result(msgspec.Struct, frozen=True, kw_only=True, tag_field="form", tag="duel"):
    """One variant of one scenario: medians over the repeats.

    `ratio_to_bare` is the median over the repeats of our jobs/s by those of the bare loop that ran
    beside it, `ratio_spread` its range. `figures` are what else a variant shows, by name. A void result has
    its reason in `void`, and no numbers. With `baseline_doubtful` the bare loop was slower than such a loop
    should be, so the ratio flatters.
    """

    scenario: str
    variant: str
    jobs: int
    repeats: int
    jobs_per_s: Spread | None = None
    client_us_per_job: float | None = None
    server_us_per_job: float | None = None
    bare_jobs_per_s: Spread | None = None
    bare_client_us_per_job: float | None = None
    bare_server_us_per_job: float | None = None
    ratio_to_bare: float | None = None
    ratio_spread: Spread | None = None
    bytes_per_waiting_job: float | None = None
    baseline_doubtful: bool = False
    base: str = "bare loop"
    """What ours ran beside."""
    figures: dict[str, Spread] = {}
    void: str | None = None

    @property
    def wrong(self) -> list[str]:
        """What keeps the result from standing."""
        return [f"is void: {self.void}"] if self.void else []


class Soak(msgspec.Struct, frozen=True, kw_only=True, tag_field="form", tag="soak"):
    """What came of jobs while faults were made. Numbers count jobs where nothing else is said.

    With findings, or with anything lost, invented or stuck, a promise was broken. A void run was not hard
    enough to show that none is; its numbers stand all the same.
    """

    scenario: str = "chaos"
    variant: str = "soak"
    seed: int
    """From which the faults and the jobs were drawn."""
    seconds: float
    """For how long faults were made."""
    jobs: int = 0
    """Accepted, or found to be there after an unknown outcome."""
    least_jobs_per_s: int = 0
    """Accepted in the worst minute."""
    lost: int = 0
    invented: int = 0
    stuck: int = 0
    duplicated: int = 0
    """Started again although nothing had sent them back."""
    reclaimed: int = 0
    """Starts of claims that were taken over from a silent worker."""
    refused: int = 0
    """Endings of jobs by workers that had lost them to others."""
    unknown: int = 0
    """Enqueues whose caller was told that the outcome is not known; some learnt it later."""
    duplicates_refused: int = 0
    """Enqueues whose dedupe key another job held."""
    limited: int = 0
    """How often a job was told to wait for a limit."""
    slots: int = 0
    """Slots of a cron that were run."""
    effects_skipped: int = 0
    """Guarded effects that another run had had."""
    dead: int = 0
    kills: int = 0
    pauses: int = 0
    cuts: int = 0
    flushes: int = 0
    """How often the server lost its scripts."""
    restarts: int = 0
    stops: int = 0
    """Workers that were told to end, as in a deploy."""
    longest_recovery_s: float = 0.0
    longest_recovery_after: str = ""
    """The kind of fault that it followed."""
    findings: list[str] = []
    void: str | None = None

    @property
    def wrong(self) -> list[str]:
        """What keeps the result from standing."""
        counts = {"lost": self.lost, "invented": self.invented, "stuck": self.stuck}
        broken = [f"{name} {count}" for name, count in counts.items() if count]
        return [*self.findings, *broken, *([f"is void: {self.void}"] if self.void else [])]


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What a document of either command says of its run, so that it can be repeated."""

    schema: str
    version: int
    machine: Machine
    command: list[str]
    started_at: str
    versions: dict[str, str]
    commit: str | None

    def encode(self) -> bytes:
        """Return the document as indented JSON that ends with a newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


class Document(Written, frozen=True, kw_only=True):
    """One run of the command, with everything needed to repeat it."""

    schema: str = SCHEMA
    version: int = VERSION
    results: list[Result | Soak]


def now() -> str:
    """Return the time of day as RFC 3339 in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def machine() -> Machine:
    """Describe this machine as far as it tells."""
    return Machine(
        cpu=_cpu(),
        cores=os.cpu_count() or 1,
        memory_bytes=_memory(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        load_1m=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    )


def versions(server: str) -> dict[str, str]:
    """Return the versions of the packages that matter, and that of the server as given."""
    found = {"streamjobs": streamjobs.__version__, "server": server}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """Return the checked-out commit, `+` if files differ from it; None where git or a checkout is missing."""
    here = Path(__file__).resolve().parent.parent
    if not (here / ".git").exists():
        return None
    try:
        head = _git(here, "rev-parse", "HEAD")
        return head + ("+" if _git(here, "status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def command(words: Sequence[str]) -> list[str]:
    """Return the command line that repeats a run of these words."""
    return ["python", "-m", __package__ or "benchmarks", *words]


def _git(folder: Path, *words: str) -> str:
    # Without optional locks: a look at the checkout must not stand in the way of a commit made meanwhile.
    words = ("--no-optional-locks", "-C", str(folder), *words)
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or "unknown")


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
