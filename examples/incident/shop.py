"""The shop that the incident happens to: payments that need a downstream, receipts with a bug, reports for tenants.

Thresholds and delays are shortened: what would take an hour in a real shop takes seconds here.
"""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import urlopen

from streamjobs import Concurrency, Context, Exponential, Retry, StreamJobs, Thresholds

DOWNSTREAM = "INCIDENT_DOWNSTREAM"
"""The variable that names the URL of who takes the payments."""
WAITS = "INCIDENT_WAITS"
"""The variable that names the file of how long reports have waited."""
VAT = {"DE": 19, "FR": 20}


def make(vat: dict[str, int]) -> StreamJobs:
    """Return the shop's app; it prints receipts for the countries whose VAT rate it knows."""
    app = StreamJobs()
    app.queue("shop", thresholds=Thresholds(oldest=(1.5, 3), failures=(0.2, 0.75)))
    app.queue("reports", thresholds=Thresholds(oldest=(2, None)))

    # A downstream that is away comes back: the jobs wait for it, however long that takes.
    @app.job(name="payments.charge", queue="shop", timeout=10, retry=Retry(100, backoff=Exponential(base=1, cap=4)))
    def charge(order: int) -> None:
        with urlopen(f"{os.environ[DOWNSTREAM]}/orders/{order}", timeout=5):
            pass

    @app.job(name="receipts.print", queue="shop", retry=Retry(1))
    async def receipt(order: int, cents: int, country: str) -> str:
        if country not in vat:
            raise ValueError(f"order {order} of {cents} cents has no VAT rate")
        return f"{cents} cents, of which VAT {cents * vat[country] // (100 + vat[country])}"

    # However much one tenant asks for, two of its reports are built at once, and all others have their turn.
    @app.job(name="reports.build", queue="reports", concurrency=Concurrency(2, key="tenant"))
    async def report(ctx: Context[None], tenant: str) -> None:
        waited_s = datetime.now(UTC).timestamp() - ctx.enqueued_at
        with Path(os.environ[WAITS]).open("a") as file:
            file.write(f"{tenant} {waited_s:.3f}\n")
        await asyncio.sleep(0.1)

    return app


app = make(VAT)
mended = make({**VAT, "SE": 25})
