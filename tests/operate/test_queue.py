"""What an app does to its queues at run time: pause, resume, purge."""

import pytest

from streamjobs import NotFound, State, StreamJobs
from tests.worker.support import FAST, make_app


@pytest.fixture
def app(url: str, namespace: str) -> StreamJobs:
    return make_app(url, namespace)


async def test_a_paused_queue_goes_on_when_it_is_resumed(app: StreamJobs) -> None:
    @app.job
    async def add() -> int:
        return 3

    handle = await add.enqueue()
    queue = app.queue("q")
    assert (await queue.pause(), await queue.pause()) == (True, False)
    async with app.worker(options=FAST):
        assert (await handle.status()).state is State.WAITING
        assert (await queue.resume(), await queue.resume()) == (True, False)
        assert await handle.result(20) == 3
    await app.aclose()


async def test_purge_ends_what_has_not_started(app: StreamJobs) -> None:
    kept = await app.send("kept", queue="q")
    gone = await app.send("gone", queue="q", result_ttl=60)
    await app.send("gone", queue="q", delay=3600)

    assert await app.queue("q").purge(kinds=["gone"], reason="not wanted") == 2

    status = await gone.status()
    assert (status.state, status.reason) == (State.CANCELLED, "not wanted")
    assert (await kept.status()).state is State.WAITING
    assert await app.queue("q").purge() == 1
    await app.aclose()


def test_in_plain_code(app: StreamJobs) -> None:
    app.send_sync("kind", queue="q")
    queue = app.queue("q")

    assert (queue.pause_sync(), queue.resume_sync(), queue.resume_sync()) == (True, True, False)
    assert queue.purge_sync() == 1
    with pytest.raises(NotFound, match="queue other"):
        app.queue("other").pause_sync()
    app.close()
