"""Five hundred jobs of every fate, and no fault: what any variant that works at all must pass."""

import signal
from typing import Any

from tests.faults.field import Field

CALM: dict[str, Any] = {"lease": 30, "sweep": 5, "reply_s": 10.0, "grace": 10}
"""No lease ends, however busy the machine is: what this scenario shows is no fault's doing."""


def test_five_hundred_jobs_end_as_their_handlers_say(field: Field) -> None:
    workers = [field.serving(concurrency=50, **CALM) for _ in range(2)]
    field.enqueue("nap", *range(300))
    field.enqueue("plain", *range(300, 350))
    field.enqueue("nap", *range(350, 430), delay=0.3)
    field.enqueue("flaky", *range(430, 480))
    field.enqueue("ends", *range(480, 490), args=("snooze",))
    field.enqueue("ends", *range(490, 498), args=("cancel",))
    field.enqueue("ends", *range(498, 500), args=("bury",))
    field.drained()
    for worker in workers:
        worker.send(signal.SIGTERM)
    codes = [worker.ended() for worker in workers]

    field.jobs -= set(range(490, 498))
    field.judge(dead={498, 499}, lease_s=CALM["lease"], start_s=5.0, grace_s=CALM["grace"])
    totals = field.totals()
    assert codes == [0, 0]
    assert (field.count("S"), field.attempts()) == (560, {1, 2})
    assert (totals["done"], totals["cancelled"], totals["dead"]) == (490, 8, 2)
    assert (totals["retried"], totals["snoozed"], totals["reclaimed"], totals["lost"]) == (50, 10, 0, 0)
