"""Start what was fetched: in order, into free slots, and suspects by their own rule.

A claim that was delivered before may have killed its process. One such start is presumed of every
claim of a dead worker, so it starts again in company, marked. With two unsettled starts it runs
alone in the process, so that a third one blames nobody else; with three it is dead. Where a
supervisor keeps a child for those, the others leave them to it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from time import monotonic

from streamjobs.core.codec import DecodeFailed
from streamjobs.core.decide import crashed
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.job import Claim, Undecodable
from streamjobs.core.text import plural
from streamjobs.protocol import lanes, leases
from streamjobs.worker.admit import Admission
from streamjobs.worker.announce import Announcer
from streamjobs.worker.background import Background
from streamjobs.worker.duty import Duty
from streamjobs.worker.execution import Execution, WorkerQueue
from streamjobs.worker.mark import Marker
from streamjobs.worker.run import Runner
from streamjobs.worker.service import HEALABLE
from streamjobs.worker.settle import Settler
from streamjobs.worker.station import Station

log = logging.getLogger("streamjobs.worker")

ALONE_FROM = 2
"""Unsettled starts from which on a claim runs alone."""
EMPTY_WITHIN_S = 30.0
"""A process that does not empty within this time gives its suspect back."""
ENOUGH_RELEASES = 10
"""After this many of those, a suspect is waited for as long as all that runs has a deadline. Beside what has
none it starts in company, uncounted: it must not wait for ever.
"""
TURN_S = 0.01
"""For so long handlers are started in one turn of the loop: with eager tasks that can be all they do."""
STALE_S = 0.5
"""A claim that has not started within this time goes to a worker that may have a free slot."""


class Starter:
    """Holds what was fetched and not started, and starts it as slots come free."""

    def __init__(
        self,
        station: Station,
        runner: Runner,
        settler: Settler,
        duty: Duty = Duty.ALL,
        on_left: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_left`: called after each suspect that an ordinary worker left to others."""
        self._station = station
        self._duty = duty
        self._on_left = on_left
        self.left = 0
        """Suspects that were left to others."""
        self._runner = runner
        self._settler = settler
        self._announcer = Announcer(station, settler)
        self._marker = Marker(station, settler)
        self._concurrency = station.options.concurrency
        self._ready: deque[Execution] = deque()
        self._unannounced: list[Execution] = []
        """Claims of this turn whose starts the server must hear of first, in one call."""
        self._marking = 0
        """Claims of which the server is asked before they start."""
        self._admission = Admission(station)
        self._entrants: list[Execution] = []
        self._ordered = duty is not Duty.SUSPECTS and runner.ordered
        self._lone: Execution | None = None
        """A suspect that runs alone here, or is about to: nothing else starts."""
        self._filling = False
        self._loop = asyncio.get_running_loop()
        self._empty = asyncio.Event()
        self._background = Background(settler.broken, "start")
        self.stopping = False
        self.added = 0
        """Claims that came here; grows for as long as the worker lives."""
        self.room = asyncio.Event()
        """Set when a job ends; whoever waits for a slot clears it."""
        runner.on_end = self._on_end
        if duty is not Duty.SUSPECTS:
            settler.on_woken = self._on_woken

    @property
    def waiting(self) -> int:
        """Claims here that have not started."""
        return len(self._ready) + self._marking

    @property
    def idle(self) -> bool:
        """Whether nothing waits or runs here."""
        return not (self._ready or self._marking or self._lone or self._runner.running)

    def free(self) -> int:
        """Return how many more claims could start now."""
        if self._lone or self.stopping:
            return 0
        return self._slots() - self._runner.running - self.waiting

    def _slots(self) -> int:
        """Return the slots: those of handlers that do not end are replaced, but only once over.

        Plain functions that hang would else take threads without end.
        """
        beyond = max(0, self._runner.stuck - self._concurrency)
        if beyond:
            self._station.complaints.say(
                "stuck", "%s will not end, which leaves %s: restart this worker",
                plural(self._runner.stuck, "handler"), plural(max(0, self._concurrency - beyond), "slot"),
            )  # fmt: skip
        return self._concurrency - beyond

    def add(self, queue: WorkerQueue, claims: list[Claim]) -> None:
        """Take claims in, and start what can be started."""
        self.added += len(claims)
        add, ready = queue.add, self._ready
        ahead = self._ordered and not self.stopping
        for claim in claims:
            execution = add(claim)
            if execution is not None and not (ahead and self._ask_ahead(execution)):
                ready.append(execution)
        self._fill()

    def _ask_ahead(self, execution: Execution) -> bool:
        """Ask for a claim before there is a slot for it, if jobs of its key go in order; say whether it is seen to.

        Otherwise another worker could start a younger one while this one waits here.
        """
        if not self._runner.prepare(execution, self._station.clock):
            return True
        assert execution.handler is not None
        if not execution.queue.plan(execution.handler).ordered:
            return False
        self._begin(execution, monotonic())
        return True

    def _fill(self) -> None:
        """Start ready claims into free slots."""
        if self.stopping:
            return
        now = monotonic()
        ready, runner, most = self._ready, self._runner, self._slots()
        while ready and runner.running + self._marking < most and not self._lone:
            if monotonic() - now > TURN_S:
                # Handlers that compute before they wait for anything, or never wait: others have their turn first.
                self._on_end()
                break
            execution = ready.popleft()
            if execution.queue.holds(execution):
                self._begin(execution, now)
        if self._lone or runner.running >= most:
            runner.gatherer.begin_all()
        self._send_starts()
        entrants, self._entrants = self._entrants, []
        for queue in dict.fromkeys(one.queue for one in entrants):
            self._background.spawn(self._enter(queue, [one for one in entrants if one.queue is queue]))

    def _begin(self, execution: Execution, now: float) -> None:
        if execution.lapsed(now):
            # This process was frozen: another may hold the job by now, and its handler must not start.
            self._settler.release(execution)
        elif plain := execution.plain_handler():
            # Almost all are so: nothing more need be asked of them.
            execution.handler = plain
            self._runner.start(execution)
        elif execution.admitted or execution.handler or self._runner.prepare(execution, self._station.clock):
            if not execution.admitted and self._limited(execution):
                self._entrants.append(execution)
                self._marking += 1
            elif not execution.settling:
                self._weigh(execution)

    def _start(self, execution: Execution) -> None:
        if execution.meta.announced:
            self._marking += 1
            self._unannounced.append(execution)
        else:
            self._runner.start(execution)

    def _send_starts(self) -> None:
        if self._unannounced:
            self._background.spawn(self._announce_and_start(self._unannounced))
            self._unannounced = []

    async def _announce_and_start(self, executions: list[Execution]) -> None:
        try:
            begun = await self._announcer.announce(executions)
        finally:
            self._marking -= len(executions)
        for execution in begun:
            self._runner.start(execution)
        self._on_end()

    async def _announced(self, execution: Execution) -> bool:
        """Say whether a claim may start: at once, or once the server has heard of it."""
        return not execution.meta.announced or bool(await self._announcer.announce([execution]))

    def _limited(self, execution: Execution) -> bool:
        """Say whether a claim has to be admitted; one that will not start here has not."""
        if self._duty is Duty.SUSPECTS and execution.crashes < ALONE_FROM:
            return False
        try:
            return execution.find_lanes()
        except DecodeFailed as error:
            return self._runner.refuse(execution, Undecodable(str(error)))

    async def _enter(self, queue: WorkerQueue, executions: list[Execution]) -> None:
        """Start those that the server admits; it has parked the others, which are held no more."""
        # Their starts are recorded with it, but for those that are to run alone.
        marked = [not one.first and one.crashes < ALONE_FROM for one in executions]
        try:
            words = await self._admission.ask(queue, executions, marked)
        except StreamJobsError as error:
            log.warning("cannot admit %s: %s", plural(len(executions), "job"), error)
            for execution in executions:
                self._settler.release(execution)
            words = []
        finally:
            self._marking -= len(executions)
        for execution, word in zip(executions, words, strict=False):
            if word != lanes.GO:
                queue.drop(execution)
                # So that more is read at once where much is to be parked.
                self._runner.finished += 1
            elif not queue.holds(execution):
                # Lost or cancelled meanwhile.
                self._settler.vacate(execution)
            elif self.stopping or execution.lapsed(monotonic()):
                self._settler.release(execution)
            elif self._lone or self._runner.running >= self._slots():
                self._ready.append(execution)
            else:
                self._weigh(execution)
        self._send_starts()
        self._on_end()

    def _weigh(self, execution: Execution) -> None:
        """Start a claim, or what may have killed its process by its own rule."""
        assert execution.handler is not None
        crashes = execution.crashes
        if (execution.first and not crashes) or (execution.admitted and crashes < ALONE_FROM):
            # Admitted, it was marked along with that.
            self._start(execution)
        elif crashes >= execution.handler.options.retry.max_crashes:
            decision = crashed(f"{plural(crashes, 'start')} ended with the death of their process")
            log.error("job %s is dead (crash_limit)", execution.job_id, extra=execution.log_fields)
            self._settler.decided(execution, decision)
        elif crashes < ALONE_FROM:
            self._marking += 1
            self._background.spawn(self._mark_and_start(execution))
        elif self._duty is Duty.ORDINARY:
            self._settler.release(execution, quiet=True)
            self.left += 1
            self._on_left()
        elif self._lone:
            self._settler.release(execution, held_alone=True)
        else:
            self._lone = execution
            self._background.spawn(self._run_alone(execution))

    async def _mark_and_start(self, execution: Execution) -> None:
        starts = False
        try:
            if await self._marker.mark(execution):
                if self._duty is Duty.SUSPECTS:
                    # No suspect: others start it. Marked and taken back, it keeps the name of who is presumed to
                    # have died.
                    self._settler.release(execution)
                else:
                    starts = await self._announced(execution)
        finally:
            self._marking -= 1
        if starts:
            self._runner.start(execution)
        self._on_end()

    async def _run_alone(self, execution: Execution) -> None:
        task = None
        try:
            task = await self._start_alone(execution)
        finally:
            # However that ends: beside a suspect that is about to run alone nothing starts.
            if task is not None:
                task.add_done_callback(lambda _: self._company(execution))
            else:
                self._company(execution)

    async def _start_alone(self, execution: Execution) -> "asyncio.Task[None] | None":
        """Start a suspect once all else has ended; return what runs, if that is to run alone."""
        enough = execution.claim.releases >= ENOUGH_RELEASES and self._duty is Duty.ALL
        if await self._emptied(patient=enough):
            if await self._marker.mark(execution) and await self._announced(execution):
                said = "job %s runs alone: %s never ended"
                log.warning(said, execution.job_id, plural(execution.crashes, "start"), extra=execution.log_fields)
                self._runner.start(execution, alone=True)
                return execution.task
        elif not enough or self.stopping or execution.lapsed(monotonic()):
            self._settler.release(execution, held_alone=True)
        elif execution.queue.holds(execution) and await self._announced(execution):
            # Uncounted, or the crash of another would bury it.
            self._runner.start(execution, alone=True)
        return None

    def _company(self, execution: Execution) -> None:
        """Start others again, now that this suspect has ended or was abandoned."""
        if self._lone is execution:
            self._lone = None
            self._on_end()

    async def _emptied(self, *, patient: bool) -> bool:
        """Wait until nothing else runs: for a while, or if `patient` for as long as all that runs must end."""
        deadline = monotonic() + EMPTY_WITHIN_S
        while self._runner.running + self._marking and not self.stopping:
            self._empty.clear()
            try:
                async with asyncio.timeout(None if patient and self._all_end() else deadline - monotonic()):
                    await self._empty.wait()
            except TimeoutError:
                return False
        return not self.stopping

    def _on_woken(self, queue: WorkerQueue, count: int) -> None:
        """Take at once what may go on in the place of jobs that ended here."""
        free = min(count, self.free())
        if free > 0:
            self._marking += free
            self._background.spawn(self._take(queue, free))
        queue.rung = queue.rung or free < count

    async def _take(self, queue: WorkerQueue, most: int) -> None:
        station = self._station
        try:
            taken = await station.executor.run(leases.take(queue.keys, station.consumer, most, monotonic()))
        except HEALABLE:
            queue.rung = True
            return
        finally:
            self._marking -= most
        self.add(queue, taken)

    def _all_end(self) -> bool:
        """Say whether all that runs has a deadline: by then it has ended, or is abandoned."""
        held = [one for queue in self._station.queues for one in queue.held.values()]
        return all(one.deadline is not None for one in held if one.runs)

    def release_stale(self, now: float) -> None:
        """Give back what has waited too long for a slot."""
        while self._ready and now - self._ready[0].read_at > STALE_S:
            execution = self._ready.popleft()
            if execution.queue.holds(execution):
                self._settler.release(execution)

    def hold(self, held: bool = True) -> None:
        """Start nothing more; or, after that, with False start again."""
        self.stopping = held
        self._announcer.stopping = self._marker.stopping = self._admission.stopping = held
        self._runner.gatherer.stopping = held
        self._settler.on_woken = None if held or self._duty is Duty.SUSPECTS else self._on_woken
        self.room.set()

    def stop(self) -> None:
        """Start nothing more, and give back what was not started."""
        self.hold()
        self.release_stale(float("inf"))
        self._runner.gatherer.give_back()
        self._empty.set()

    async def stopped(self) -> None:
        """Wait until nothing is on its way to a start."""
        await self._background.ended()

    def _on_end(self) -> None:
        # Many jobs end in one turn of the loop: the slots that they free are filled at its end, together.
        if not self._filling:
            self._filling = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        # Here alone: were it said wherever slots are filled, each time would begin one more row of turns.
        self._filling = False
        self._background.call(self._fill)
        self.room.set()
        if self._lone:
            self._empty.set()
            if self._lone.abandoned:
                self._company(self._lone)
