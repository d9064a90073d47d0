"""handle.wait: the end of a job, whether or not its result is kept."""

import asyncio

import pytest

from streamjobs import NotFound, ResultTimeout, State, StreamJobs
from tests.worker.support import FAST, make_app


@pytest.mark.parametrize("kept", [0, 60])
async def test_a_job_is_waited_for_to_its_end(url: str, namespace: str, kept: int) -> None:
    app = make_app(url, namespace)
    go_on = asyncio.Event()

    @app.job(result_ttl=kept)
    async def waits() -> int:
        await go_on.wait()
        return 3

    async with app.worker(options=FAST):
        handle = await waits.enqueue()
        with pytest.raises(ResultTimeout, match=r"has not ended within 0\.1 s"):
            await handle.wait(0.1)
        waiting = asyncio.create_task(handle.wait(20))
        in_a_thread = asyncio.create_task(asyncio.to_thread(handle.wait_sync, 20))
        await asyncio.sleep(0)
        go_on.set()
        status = await waiting
        assert (await in_a_thread).state is status.state
    await app.aclose()

    assert (status.state, status.result) == ((State.DONE, 3) if kept else (State.FINISHED, None))


async def test_a_job_that_is_not_there_is_not_waited_for(url: str, namespace: str) -> None:
    app: StreamJobs = make_app(url, namespace)

    with pytest.raises(NotFound):
        await app.handle("q:1-0").wait(5)
    await app.aclose()
