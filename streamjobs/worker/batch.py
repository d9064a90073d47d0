"""Gather the claims of batch kinds, so that one call of their handler takes many; then take each result apart.

What has come here may start: it was admitted, marked and announced as any other claim, and holds a slot. It
waits for others of its queue and kind, for `max_wait` at most, and for none where none can come.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from streamjobs.core.classify import Rule
from streamjobs.core.job import Outcome, Raised, Returned
from streamjobs.core.options import Batch
from streamjobs.worker import outcomes
from streamjobs.worker.background import Background
from streamjobs.worker.execution import Ending, Execution, WorkerQueue
from streamjobs.worker.settle import Settler

Begin: TypeAlias = Callable[[list[Execution], list[Any]], None]
"""Starts a handler with these jobs, and an item for each."""


class Gathered(msgspec.Struct, eq=False):
    """What has come for one call so far."""

    timer: asyncio.TimerHandle
    executions: list[Execution]
    items: list[Any]


class Gatherer:
    """Holds what is to start together, one open batch for each queue and kind."""

    def __init__(self, settler: Settler, background: Background, begin: Begin, left: Callable[[], None]) -> None:
        """`left`: called for each job that came here and does not start."""
        self._settler = settler
        self._begin = begin
        self._left = left
        self._background = background
        self._open: dict[tuple[WorkerQueue, str], Gathered] = {}
        self._loop = asyncio.get_running_loop()
        self.stopping = False
        """Nothing more is to start: what comes is given back."""

    def join(self, execution: Execution, item: Any, batch: Batch, *, alone: bool) -> None:
        """Take a claim in, and start it with the others if they are enough; or at once, `alone`."""
        if alone or self.stopping:
            self._start([execution], [item])
            return
        key = (execution.queue, execution.kind)
        gathered = self._open.get(key)
        if gathered is None:
            timer = self._loop.call_later(batch.max_wait_s, self._background.call, self._close, key)
            gathered = self._open[key] = Gathered(timer, [], [])
        gathered.executions.append(execution)
        gathered.items.append(item)
        if len(gathered.items) >= batch.max_items:
            self._close(key)

    def begin_all(self) -> None:
        """Start all that was gathered: nothing more can come before it has made room."""
        for key in list(self._open):
            self._close(key)

    def give_back(self) -> None:
        """Give back all that was gathered, and what comes from now on while `stopping` is set; uncharged."""
        self.stopping = True
        self.begin_all()

    def _close(self, key: tuple[WorkerQueue, str]) -> None:
        gathered = self._open.pop(key)
        gathered.timer.cancel()
        self._start(gathered.executions, gathered.items)

    def _start(self, executions: list[Execution], items: list[Any]) -> None:
        now = self._loop.time()
        ready = [pair for pair in zip(executions, items, strict=True) if self._may_start(pair[0], now)]
        if ready:
            self._begin([execution for execution, _ in ready], [item for _, item in ready])

    def _may_start(self, execution: Execution, now: float) -> bool:
        """Say whether a claim is still ours to start; what is not leaves its slot."""
        if not execution.queue.holds(execution):
            # Lost or cancelled while it waited for the others.
            self._settler.vacate(execution)
        elif self.stopping or execution.lapsed(now):
            self._settler.release(execution)
        else:
            return True
        self._left()
        return False


def outcomes_of(executions: list[Execution], value: Any, rules: tuple[Rule, ...]) -> list[Outcome]:
    """Return the outcome of each job, from what the handler of all returned."""
    if value is None:
        return [Returned()] * len(executions)
    if not isinstance(value, list) or len(value) != len(executions):
        what = f"a list of {len(value)}" if isinstance(value, list) else type(value).__name__
        error = f"TypeError: a batch handler returns None or one result per item: {len(executions)}, not {what}"
        return [Raised(error, "bug")] * len(executions)
    return [_outcome(execution, one, rules) for execution, one in zip(executions, value, strict=True)]


def _outcome(execution: Execution, value: Any, rules: tuple[Rule, ...]) -> Outcome:
    if isinstance(value, type) and issubclass(value, BaseException):
        # It would pass for a result, and its job for done.
        return Raised(f"TypeError: the result of an item is the class {value.__name__}: give an instance", "bug")
    if not isinstance(value, BaseException):
        return Returned(value)
    execution.traceback = outcomes.trace(value)
    return outcomes.of_error(execution, value, rules)


def failures(executions: list[Execution], error: BaseException, rules: tuple[Rule, ...]) -> list[Outcome]:
    """Return the outcome of each job whose handler raised; those that were told to end before have their own."""
    # The same for all: told once, by one whose end is told.
    told = next((one for one in executions if one.ending is not Ending.LOST), executions[0])
    told.traceback = outcomes.trace(error)
    return [outcomes.of_error(execution, error, rules) for execution in executions]
