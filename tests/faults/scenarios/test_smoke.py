"""Five hundred jobs of every fate, and no fault: what any variant that works at all must pass."""

import signal
from typing import Any

from streamjobs import Latest, UntilDone, UntilStarted
from tests.faults.field import Field
from tests.faults.rules import Pace

MODES = (UntilDone(), UntilStarted(), Latest())
CALM: dict[str, Any] = {"lease": 30, "sweep": 5, "reply_s": 10.0, "grace": 10}
"""No lease ends, however busy the machine is: what this scenario shows is no fault's doing."""


def test_five_hundred_jobs_end_as_their_handlers_say(field: Field) -> None:
    workers = [field.serving(concurrency=50, **CALM) for _ in range(2)]
    field.enqueue("nap", *range(220))
    field.enqueue("rated", *range(220, 240))
    for n in range(240, 260):
        field.enqueue("keyed", n, args=(n % 4,))
    for n in range(260, 300):
        field.enqueue("nap", n, dedupe_key=f"key {n}", dedupe=MODES[n % 3])
    field.enqueue("plain", *range(300, 350))
    field.enqueue("nap", *range(350, 430), delay=0.3)
    field.enqueue("flaky", *range(430, 470))
    for n in range(470, 480):
        field.enqueue("flaky", n, dedupe_key=f"key {n}")
    field.enqueue("ends", *range(480, 490), args=("snooze",))
    field.enqueue("ends", *range(490, 498), args=("cancel",))
    field.enqueue("ends", *range(498, 500), args=("bury",))
    field.drained()
    for worker in workers:
        worker.send(signal.SIGTERM)
    codes = [worker.ended() for worker in workers]

    field.jobs -= set(range(490, 498))
    limits: dict[str, Any] = {"places": {"key": 1, "keyed": 4}, "paces": {"rated": Pace(100, 10)}}
    field.judge(dead={498, 499}, lease_s=CALM["lease"], start_s=5.0, grace_s=CALM["grace"], **limits)
    totals = field.totals()
    assert codes == [0, 0]
    assert (field.count("S"), field.attempts()) == (560, {1, 2})
    assert (totals["done"], totals["cancelled"], totals["dead"]) == (490, 8, 2)
    assert (totals["retried"], totals["snoozed"], totals["reclaimed"], totals["lost"]) == (50, 10, 0, 0)
