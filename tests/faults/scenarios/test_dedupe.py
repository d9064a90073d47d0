"""Dedupe keys of every mode while workers die and jobs fail: held as long as they should be, and no longer."""

import random
import signal
import time
from typing import Any

from streamjobs import Handle, Job, Latest, UntilDone, UntilStarted, Window
from tests.faults.actors import MANY_CRASHES
from tests.faults.field import FAST, Field
from tests.faults.rules import Limits

LIMITS = {"often": Limits(max_crashes=MANY_CRASHES)}
KEYS = 3
KILLS = 4
ROUNDS = 20
"""Between two kills, at the least."""
WINDOW_S = 0.8
MODES = {"done": UntilDone(), "started": UntilStarted(), "latest": Latest(), "window": Window(WINDOW_S)}


def test_keys_of_every_mode_hold_while_workers_are_killed_and_jobs_fail(field: Field) -> None:
    draw = random.Random(field.seed)
    workers = [field.serving() for _ in range(2)]
    rounds = refused = kills = 0
    while kills < KILLS:
        answers = field.send(field.app, *one_of_each(field, draw, 4 * rounds))
        rounds += 1
        # What was not added may have been replaced by newer ones: the checker knows which are to be run.
        field.jobs.clear()
        refused += sum(isinstance(answer, Handle) and answer.duplicate for answer in answers)
        if rounds % ROUNDS == 0 and all(" serves q " in worker.said() for worker in workers):
            # The other one is there to take over.
            workers.pop(0).kill9()
            workers.append(field.worker())
            kills += 1
        time.sleep(0.02 * draw.random())

    field.judge(limits=LIMITS, lease_s=FAST["lease"], sweep_s=FAST["sweep"], slack_s=2.0)
    assert rounds < refused < 4 * rounds


def one_of_each(field: Field, draw: random.Random, first: int) -> list[Job]:
    """Return a job of each mode, some of which fail once; they are numbered from `first` on."""
    jobs = []
    for n, (name, mode) in enumerate(MODES.items(), first):
        keyed = field.app.kind("often").options(dedupe=mode, dedupe_key=f"{name}-{draw.randrange(KEYS)}")
        jobs.append(keyed.call(n, draw.choice([0, 0, 1])))
    return jobs


def test_the_newest_arguments_are_run_to_an_end_behind_a_zombie_that_succeeds_with_older_ones(field: Field) -> None:
    newest: dict[str, Any] = {"dedupe": Latest(), "dedupe_key": "k"}
    field.enqueue("ends", 1, args=("",), **newest)
    zombie = field.worker(armed="settle.before=stop@1")
    field.until(zombie.stopped, "it freezes")
    [second] = field.enqueue("ends", 2, args=("", 0.01, 30.0), **newest)
    field.serving()
    field.happens("S", 2)
    zombie.send(signal.SIGCONT)
    field.happens("E", 2)

    field.judge()
    assert second.duplicate
    assert (field.count("S", 2), field.totals()["done"], field.totals()["enqueued"]) == (2, 2, 2)


def test_a_job_that_has_started_has_given_its_key_back_whoever_runs_it_next(field: Field) -> None:
    soon: dict[str, Any] = {"dedupe": UntilStarted(), "dedupe_key": "k"}
    field.enqueue("often", 1, args=(0,), **soon)
    killed = field.worker(armed="worker.before_handler=kill9@1")
    killed.ended()
    [second] = field.enqueue("often", 2, args=(0,), **soon)
    field.serving()

    field.judge(limits=LIMITS)
    assert not second.duplicate
