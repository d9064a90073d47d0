"""An app for the command line, whose jobs say when they start: run by test_stop.py."""

import asyncio
import os

from tests.worker.support import make_app

app = make_app(os.environ["STREAMJOBS_URL"], os.environ["STREAMJOBS_TEST_NAMESPACE"])


@app.job(name="quick")
async def quick() -> None:
    os.write(1, b"quick started\n")


@app.job(name="endless")
async def endless() -> None:
    os.write(1, b"endless started\n")
    await asyncio.Event().wait()
