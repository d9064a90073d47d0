"""What really happens is written down as it was, and the checker believes it together with a look at the server."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamjobs import (
    Concurrency,
    Context,
    Latest,
    Permanent,
    Rate,
    Retry,
    StreamJobs,
    UntilDone,
    UntilStarted,
    Window,
    WorkerOptions,
)
from streamjobs.client.talk import talk
from streamjobs.core.errors import OutcomeUnknown, Unavailable
from streamjobs.core.job import Claim
from streamjobs.core.retry import Fixed
from streamjobs.operate.replay import replay
from streamjobs.operate.scan import Named
from streamjobs.operate.selection import Selection
from streamjobs.protocol import lanes, leases, letters, settle
from streamjobs.protocol.calls import Call, Command
from streamjobs.protocol.keys import QueueKeys
from tests.faults import history, moves
from tests.faults.audit import audit
from tests.faults.checker import Report, check
from tests.faults.history import Guarded, Settled, Started, Stopping
from tests.faults.recorder import Recorder, watch_calls
from tests.faults.rules import Limits, Pace, Rules

ROOT = Path(__file__).parents[2]
FAILING = Retry(max_attempts=3, backoff=Fixed(0.01))
BURST = WorkerOptions(burst=True, concurrency=10, lease=5, sweep=0.1, grace=5, block=1)
RULES = Rules(limits={"fail": Limits(3, 3)}, lease_s=5.0)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path, "all")
    with watch_calls(recorder):
        yield recorder


@pytest.fixture
async def app(url: str, namespace: str, recorder: Recorder) -> AsyncIterator[StreamJobs]:
    app = make_app(url, namespace, recorder)
    yield app
    await app.aclose()


@pytest.fixture
async def real(server_url: str, namespace: str, recorder: Recorder) -> AsyncIterator[StreamJobs]:
    """As `app`, on real servers only."""
    app = make_app(server_url, namespace, recorder)
    yield app
    await app.aclose()


def make_app(url: str, namespace: str, recorder: Recorder) -> StreamJobs:
    """Return an app with kinds that succeed, fail, and fail for good, all under the recorder's eyes."""
    app = StreamJobs(url, namespace=namespace)

    @app.job(name="work")
    async def work(n: int) -> None:
        with recorder.run() as effect:
            effect("worked")

    @app.job(name="fail", retry=FAILING)
    async def fail(n: int) -> None:
        with recorder.run():
            raise ValueError(n)

    @app.job(name="refuse")
    def refuse(ctx: Context[None], n: int) -> None:
        with recorder.run():
            raise Permanent(f"never, {ctx.attempt}")

    return app


def judged(app: StreamJobs, folder: Path, rules: Rules = RULES) -> Report:
    return check(history.read(folder), audit(app.connections, app.namespace), rules)


async def run_all(app: StreamJobs) -> None:
    """Run a worker until nothing waits, runs or retries."""
    async with asyncio.timeout(20):
        await app.make_worker(options=BURST).run()


async def test_what_was_done_is_what_is_judged(app: StreamJobs, recorder: Recorder, tmp_path: Path) -> None:
    kinds = {name: app.kind(name) for name in ("work", "fail", "refuse")}
    await recorder.enqueue(app, [kinds["work"].call(n) for n in range(20)])
    await recorder.enqueue(app, [kinds["work"].options(delay=0.01).call(n) for n in range(20, 25)])
    await recorder.enqueue(app, [kinds["fail"].call(100), kinds["refuse"].call(200)])
    keyed = kinds["work"].options(dedupe_key="only one").call(300)
    await recorder.enqueue(app, [keyed, keyed])
    # Sent, and its reply lost on the way.
    [call] = recorder.called([kinds["work"].call(400)])
    await app.send("work", {"n": 400})
    recorder.answered([call], [OutcomeUnknown("no reply came")])

    await run_all(app)

    report = judged(app, tmp_path)
    assert report.ok, str(report)
    assert (report.jobs, report.done, report.dead, report.unknown, report.duplicated) == (29, 27, 2, 1, 0)


async def test_what_flows_by_rules_is_seen_and_judged(real: StreamJobs, recorder: Recorder, tmp_path: Path) -> None:
    going = asyncio.Event()

    @real.job(name="flow", concurrency=Concurrency(1, key="turn"), rate=Rate(100, burst=10))
    async def flow(ctx: Context[None], n: int, turn: int = 0) -> None:
        with recorder.run(f"turn {turn}", "pace") as witness:
            if turn == 0:
                # One at a time: none comes upon another that is at it.
                await witness.once(ctx, "letter")
            await going.wait()

    real.every(1, name="beat", catch_up="all", args={"n": 0})(real.kind("work"))
    modes = {"latest": Latest(), "started": UntilStarted(), "window": Window(60), "done": UntilDone()}
    calls = [flow.options(dedupe_key=name, dedupe=mode) for name, mode in modes.items()]
    async with real.worker(options=BURST, burst=False):
        for n in range(2):
            await recorder.enqueue(real, [call.call(n * 10 + turn, turn) for turn, call in enumerate(calls)])
        await recorder.enqueue(real, [flow.call(100 + n) for n in range(4)])
        going.set()
        # A slot, at the least.
        await asyncio.sleep(1.1)
    await run_all(real)

    rules = msgspec.structs.replace(RULES, places={"turn": 1}, paces={"pace": Pace(100, 10)}, slots_s={"beat": 1.0})
    report = judged(real, tmp_path, rules)
    assert report.ok, str(report)
    assert report.duplicates_refused >= 3
    assert report.limited >= 3
    told = [event for process in history.read(tmp_path) for event in process.events]
    assert {event.cron for event in told if isinstance(event, Started)} == {"", "beat"}
    assert [event.step for event in told if isinstance(event, Guarded)].count("has") == 1


async def test_an_operators_moves_are_seen(app: StreamJobs, recorder: Recorder, tmp_path: Path) -> None:
    work, refuse = app.kind("work"), app.kind("refuse")
    cancelled, dead = await recorder.enqueue(app, [work.options(delay=60).call(1), refuse.call(2)])
    assert not isinstance(cancelled, Exception)
    assert not isinstance(dead, Exception)
    await cancelled.cancel()
    await run_all(app)
    _replay(app, dead.id)
    await run_all(app)

    report = judged(app, tmp_path)

    assert report.ok, str(report)
    assert (report.cancelled, report.dead, report.starts) == (1, 1, 2)


def _replay(app: StreamJobs, job_id: str) -> None:
    named = Named(app.namespace, [job_id], Selection())
    assert talk(app.connections.sync(), replay(app.namespace, named)).done == 1


async def test_what_is_left_on_the_server_is_seen(app: StreamJobs, recorder: Recorder, tmp_path: Path) -> None:
    keys = QueueKeys(app.namespace, "default")
    [handle] = await recorder.enqueue(app, [app.kind("work").options(delay=60).call(1)])
    executor = app.connections.sync()
    executor.run(Command(["HSET", keys.moved, "1-1", "2-2"], int))
    executor.run(Command(["HSET", keys.latest, "3-3", "0 1:0:k", "3-3+", "0 1:2:k{}"], int))
    assert not isinstance(handle, Exception)

    report = judged(app, tmp_path)

    stuck, *left = sorted(report.violations, key=lambda finding: finding.invariant)
    assert (stuck.invariant, stuck.job) == ("I16", handle.id)
    assert {finding.invariant for finding in left} == {"I18"}
    whole = " ".join(finding.text for finding in left)
    assert "1 moved jobs that are not there: 1-1" in whole
    assert "1 arguments of jobs that are not there: 3-3" in whole


async def test_an_entry_that_nobody_will_get_is_stuck(real: StreamJobs, recorder: Recorder, tmp_path: Path) -> None:
    """A consumer that was deleted with its claims: the entries stay, and no read and no sweep finds them."""
    keys = QueueKeys(real.namespace, "default")
    [handle] = await recorder.enqueue(real, [real.kind("work").call(1)])
    executor = real.connections.sync()
    executor.run(leases.join(keys, 5000))
    executor.run(leases.read([keys.stream], "gone", 1, None))
    executor.run(Command(["XGROUP", "DELCONSUMER", keys.stream, "workers", "gone"], int))
    assert not isinstance(handle, Exception)

    report = judged(real, tmp_path)

    assert [(finding.invariant, finding.job) for finding in report.violations] == [("I16", handle.id)]
    assert "orphaned" in report.violations[0].text


async def test_a_call_whose_reply_does_not_come_is_unsure(real: StreamJobs, recorder: Recorder, tmp_path: Path) -> None:
    ending = settle.Ending(b"", 0, "1-1")
    executor = real.connections.aio()
    await executor.run(Command(["PING"], str))

    sending = asyncio.create_task(executor.run_all([settle.cancel(QueueKeys(real.namespace, "default"), "", [ending])]))
    await asyncio.sleep(0)
    sending.cancel()
    await asyncio.wait([sending])

    [process] = history.read(tmp_path)
    words = [(event.move, event.job, event.word) for event in process.events if isinstance(event, Settled)]
    assert words == [("cancel", "default:1-1", "UNSURE")]


KEYS = QueueKeys("ns", "mail", 1)
OWNER = settle.Ending(b"5-0", 2, "d4-0", "key", 1000, b"{}")


@pytest.mark.parametrize(
    ("call", "reply", "expected"),
    [
        (
            settle.complete(KEYS, [settle.Finished("a", [b"1-0", b"2-0"], [OWNER], {"run_us": 5})]),
            {1: "LOST"},
            [("1-0", "1-0", 0, "OK", 0), ("2-0", "2-0", 0, "LOST", 0), ("d4-0", "5-0", 0, "OK", 0)],
        ),
        (
            settle.retry(KEYS, "me", [("a", {"error.bug": 1}, [settle.Postponement(OWNER, 70, b"{}")])]),
            {},
            [("d4-0", "5-0", 2, "OK", 70)],
        ),
        (
            settle.snooze(KEYS, "me", [("a", {}, [settle.Postponement(OWNER, 70, b"")] * 2)]),
            {0: "LOST"},
            [("d4-0", "5-0", 2, "LOST", 70), ("d4-0", "5-0", 2, "OK", 70)],
        ),
        (
            settle.bury(KEYS, "me", [("a", {"dead.permanent": 1}, [settle.Death(OWNER, "permanent", "no", 1, b"[]")])]),
            OutcomeUnknown("no reply came"),
            [("d4-0", "5-0", 2, "UNSURE", 0)],
        ),
        (settle.cancel(KEYS, "me", [OWNER]), ["RUNNING"], [("d4-0", "5-0", 2, "RUNNING", 0)]),
        (leases.renew(KEYS, "me", [leases.Renewal(b"5-0", 2, "d4-0", "k")]), {}, [("d4-0", "5-0", 2, "OK", 0)]),
        (leases.release(KEYS, "me", 900, [leases.Giveback(b"5-0", 2, 1)]), {}, [("", "5-0", 2, "OK", 0)]),
        (
            leases.start(KEYS, "me", [leases.Start(b"5-0", 2, "d4-0", "k"), leases.Start(b"6-0", 1, "6-0")]),
            [leases.Begun(), None],
            [("d4-0", "5-0", 2, "OK", 0), ("6-0", "6-0", 1, "LOST", 0)],
        ),
        (
            lanes.admit(
                KEYS,
                "me",
                {"c:q": "3"},
                [lanes.Entrant(b"5-0", 2, "1", ["c:k:a n 1", "c:q"]), lanes.Entrant(b"6-0", 1, "2", ["c:q"])],
            ),
            lanes.Admission(1, ["GO", "PARKED"]),
            [("", "5-0", 2, "OK", 0), ("", "6-0", 1, "PARKED", 0)],
        ),
        (leases.suspect(KEYS, "me", [Claim(b"5-0", b"a", b"", b"", 2)]), {}, [("", "5-0", 2, "OK", 0)]),
        (letters.replay(KEYS, [letters.Replay("9-0", "d4-0", b"{}")]), ["GONE"], [("d4-0", "", 0, "GONE", 0)]),
        (letters.purge(KEYS, [letters.Purge("9-0", "d4-0")]), ["OK"], [("d4-0", "", 0, "OK", 0)]),
        (letters.purge(KEYS, [letters.Purge("9-0", "d4-0")]), Unavailable("not done"), []),
    ],
    ids=lambda value: getattr(value, "script", ""),
)
def test_every_move_is_read_from_its_call(call: Call[Any], reply: object, expected: list[tuple[object, ...]]) -> None:
    found = list(moves.settled(call, reply, 1.0, 2.0))

    rows = [(one.job, one.entry, one.deliveries, one.word, one.delay_ms) for one in found]
    assert rows == [(_in_mail(job), _in_mail(entry), *rest) for job, entry, *rest in expected]
    assert {(one.move, one.sent, one.at) for one in found} <= {(call.script, 1.0, 2.0)}


def _in_mail(local: object) -> str:
    return f"mail/1:{local}" if local else ""


def test_notes_survive_the_kill_of_their_process(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal, sys, time; from tests.faults.recorder import Recorder;"
        "from tests.faults.history import Stopping;"
        "Recorder(pathlib.Path(sys.argv[1]), 'victim').note(Stopping(time.monotonic()));"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )

    victim = subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=False)

    [process] = history.read(tmp_path)
    assert victim.returncode == -signal.SIGKILL
    assert process.role == "victim"
    assert [type(event) for event in process.events[1:]] == [Stopping]
