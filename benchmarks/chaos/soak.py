"""Run a soak: faults by plan, then heal, drain, and judge all that every process has written down."""

import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from types import FrameType

import msgspec

from streamjobs import StreamJobsError
from tests.faults import history
from tests.faults.audit import audit
from tests.faults.checker import judge, without_collections
from tests.faults.rules import Evidence, Limits, Rules
from tests.faults.stories import Stories
from tests.servers import Server

from ..document import Soak
from . import verdict
from .faults import Blow, Faults
from .field import Field
from .jobs import CRON, EVERY_S, GRACE_S, KINDS, LEASE_S, MAX_CRASHES, PACES, PLACES, SWEEP_S
from .plan import INTERVAL_S, Fault, make_plan
from .recovery import recoveries
from .verdict import Span

HEALED_WITHIN_S = 5.0
RULES = Rules(
    limits={kind: Limits(max_crashes=MAX_CRASHES) for kind in KINDS},
    places=PLACES,
    paces=PACES,
    slots_s={CRON: EVERY_S},
    lease_s=LEASE_S,
    sweep_s=SWEEP_S,
    slack_s=2.0,
    grace_s=GRACE_S,
    heal_s=HEALED_WITHIN_S,
)


class Terms(msgspec.Struct, frozen=True):
    """What is asked of a soak."""

    seed: int
    seconds: float
    interval_s: float = INTERVAL_S


def run(terms: Terms, url: str, namespace: str, server: Server | None) -> Soak:
    """Run one soak in a namespace of its own. Ctrl-C ends it early; what was until then is judged.

    Args:
        server: the server at `url`, if it is ours to restart.
    """
    folder = Path(tempfile.mkdtemp(prefix="sjchaos-"))
    plan = make_plan(terms.seed, terms.seconds, interval_s=terms.interval_s, own_server=server is not None)
    with closing(Field(url, namespace, folder, terms.seed, server)) as field, _ending_on_signals(field):
        try:
            field.start()
            span, blows = _suffer(field, plan, terms.seconds)
            say("healed; waiting for the rest of the jobs")
            field.drain()
            say("judging")
            result = _judged(terms, field, folder, span, blows)
        except (RuntimeError, StreamJobsError) as error:
            result = Soak(seed=terms.seed, seconds=0.0, findings=field.problems, void=str(error))
    if result.wrong:
        say(f"what was recorded is kept in {folder}")
    else:
        shutil.rmtree(folder)
    return result


def _suffer(field: Field, plan: Sequence[Fault], seconds: float) -> tuple[Span, list[Blow]]:
    """Make the faults of a plan until its end, or an early one; everything is whole again then."""
    faults, began = Faults(field), monotonic()
    for fault in plan:
        if field.ending.wait(max(0.0, began + fault.at_s - monotonic())):
            break
        field.look_after()
        at_s = monotonic() - began
        say(f"{at_s:4.0f} of {seconds:.0f} s: {faults.make(fault)}")
    field.ending.wait(max(0.0, began + seconds - monotonic()))
    return Span(began, monotonic()), faults.blows


@contextmanager
def _ending_on_signals(field: Field) -> Iterator[None]:
    """End the run early at the first Ctrl-C or SIGTERM, in order; at the second one at once."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        if field.ending.is_set():
            raise KeyboardInterrupt
        field.ending.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _judged(terms: Terms, field: Field, folder: Path, span: Span, blows: Sequence[Blow]) -> Soak:
    snapshot = audit(field.connections, field.keys.namespace)
    (folder / "server.json").write_bytes(msgspec.json.encode(snapshot))
    (folder / "blows.json").write_bytes(msgspec.json.encode(blows))
    with without_collections():
        evidence = Evidence(Stories(history.read(folder)), snapshot, RULES)
        report = judge(evidence)
        found = verdict.parts(evidence, span)
        longest = max(recoveries(blows, evidence), key=lambda one: one.seconds, default=None)
    counts = Counter(blow.kind for blow in blows)
    return Soak(
        seed=terms.seed,
        seconds=round(span.seconds, 1),
        jobs=report.jobs,
        least_jobs_per_s=round(min(part.accepted for part in found) / span.seconds * len(found)),
        lost=report.lost,
        invented=report.invented,
        stuck=report.stuck,
        duplicated=report.duplicated,
        reclaimed=sum(part.reclaimed for part in found),
        refused=sum(part.refused for part in found),
        unknown=sum(part.unknown for part in found),
        duplicates_refused=sum(part.duplicates for part in found),
        limited=sum(part.limited for part in found),
        slots=sum(part.slots for part in found),
        effects_skipped=sum(part.skipped for part in found),
        dead=report.dead,
        kills=counts["kill"],
        pauses=counts["pause"],
        cuts=counts["cut"],
        flushes=counts["flush"],
        restarts=counts["restart"],
        stops=counts["stop"],
        longest_recovery_s=round(longest.seconds, 3) if longest else 0.0,
        longest_recovery_after=longest.kind if longest else "",
        findings=[*field.problems, *map(str, report.violations)],
        void=verdict.why_void(found, span),
    )


def say(text: str) -> None:
    """Tell how far it is."""
    print(f"chaos {text}", file=sys.stderr, flush=True)
