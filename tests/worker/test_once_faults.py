"""ctx.once where something fails: the run dies, the job is lost, the server is away, or comes back older."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamjobs import Context, Retry, StreamJobs, Unavailable
from streamjobs.core.retry import Fixed
from tests.worker.support import FAST, Flag, Queue, drain

ROOT = Path(__file__).parents[2]
AT_ONCE = Retry(max_attempts=3, backoff=Fixed(0))


async def test_lost_job_begins_nothing(app: StreamJobs, queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    """Its worker was frozen, and another has it now: this one does not have the effect beside it."""
    sent: list[int] = []
    tried = asyncio.Event()

    @app.job(result_ttl=0)
    async def late(ctx: Context[Any]) -> None:
        queue.steal()
        try:
            async with ctx.once("k"):
                sent.append(1)
        finally:
            tried.set()

    await late.enqueue()
    async with app.worker(options=FAST), asyncio.timeout(10):
        await tried.wait()

    assert sent == []
    assert "is not held any more: 'k' was not begun" in caplog.text


async def test_cancellation_does_not_undo_a_record(
    app: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline comes while the record is on its way."""
    handlers: list[asyncio.Task[Any]] = []
    run = app.connections.aio().run_all

    async def cancelled_under_way(requests: Any) -> Any:
        if getattr(requests[0], "script", "") == "record":
            handlers[0].cancel()
            await asyncio.sleep(0)
        return await run(requests)

    @app.job(retry=AT_ONCE)
    async def handler(ctx: Context[Any]) -> bool:
        handlers.append(asyncio.current_task())  # type: ignore[arg-type]
        async with ctx.once() as effect:
            return effect.needed
        raise AssertionError

    monkeypatch.setattr(app.connections.aio(), "run_all", cancelled_under_way)
    handle = await handler.enqueue()
    await drain(app)

    assert (len(handlers), await handle.result()) == (2, False)


def run_until_done(url: str, namespace: str, folder: Path, where: str, first: str) -> list[str]:
    """Run workers of effects.py until one ends by itself; return what they wrote."""
    rows = folder / "rows"
    rows.touch()
    codes: list[int] = []
    while not codes or codes[-1] == -9:
        command = [sys.executable, "-m", "tests.worker.effects", url, namespace, str(rows), where, first]
        codes.append(subprocess.run(command, cwd=ROOT, timeout=60, check=False, capture_output=True).returncode)
    assert codes == [-9, 0]
    return rows.read_text().split()


@pytest.mark.parametrize(
    ("where", "first", "effects"),
    [("before_ack", "", 1), ("before_mark", "", 2), ("before_mark", "skip", 1), ("before_mark", "raise", 1)],
    ids=lambda value: str(value) or "after",
)
def test_case_E11_killed_between_effect_and_acknowledgement(
    server_url: str, namespace: str, queue: Queue, tmp_path: Path, where: str, first: str, effects: int
) -> None:
    """Each row that the handler writes outside carries the job's idempotency key."""
    rows = run_until_done(server_url, namespace, tmp_path, where, first)

    assert len(rows) == effects
    assert len(set(rows)) == 1, "every run has the same idempotency_key"
    dead = queue.dead()
    assert [row["reason"] for row in dead] == ([b"permanent"] if first == "raise" else [])
    if first == "raise":
        assert b"EffectUnsure: " in dead[0]["error"]


@pytest.mark.parametrize("kept", [True, False], ids=["the mark survived", "the mark was lost too"])
async def test_case_F8_resurrected_job_has_the_same_key_and_skips_its_effects(
    real: StreamJobs, queue: Queue, kept: bool
) -> None:
    """After a failover an entry that was done is there again, as an older copy of the stream has it."""
    seen: list[tuple[str, bool]] = []

    @real.job(result_ttl=0)
    async def handler(ctx: Context[Any]) -> None:
        async with ctx.once() as effect:
            seen.append((ctx.idempotency_key, effect.needed))

    queue.make_group()
    handle = await handler.enqueue()
    queue.read("dead-worker")
    older = queue.command("DUMP", queue.keys.stream)
    queue.silence()
    await drain(real)
    assert queue.length() == 0

    queue.command("RESTORE", queue.keys.stream, 0, older, "REPLACE")
    if not kept:
        queue.command("DEL", queue.keys.once(handle.id.partition(":")[2]))
    queue.silence()
    await drain(real)

    assert seen == [(handle.id, True), (handle.id, not kept)]
    assert queue.length() == 0


@pytest.mark.parametrize(("patience_s", "attempt"), [(30.0, 1), (-1.0, 4)], ids=["short", "long"])
async def test_absence_of_the_server_is_waited_out_or_fails_the_attempt(
    app: StreamJobs, monkeypatch: pytest.MonkeyPatch, patience_s: float, attempt: int
) -> None:
    run, tries = app.connections.aio().run_all, Flag()

    async def unreachable(requests: Any) -> Any:
        if getattr(requests[0], "script", "") != "once" or tries.raise_() > 3:
            return await run(requests)
        return [Unavailable("cannot reach it", word="CONNECT")]

    @app.job(retry=Retry(max_attempts=5, backoff=Fixed(0)))
    async def handler(ctx: Context[Any]) -> int:
        async with ctx.once():
            return ctx.attempt
        raise AssertionError

    monkeypatch.setattr(app.connections.aio(), "run_all", unreachable)
    monkeypatch.setattr("streamjobs.worker.once.PATIENCE_S", patience_s)
    handle = await handler.enqueue()
    await drain(app)

    assert await handle.result() == attempt
