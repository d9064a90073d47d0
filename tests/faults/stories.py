"""The history told job by job: calls, runs and moves of each, gathered from the files of all processes."""

from collections.abc import Iterator

from tests.faults.history import (
    Answered,
    Called,
    Did,
    Died,
    Ended,
    Event,
    Fault,
    Guarded,
    History,
    Loss,
    Process,
    Settled,
    Signalled,
    Started,
    Stopping,
    Working,
)

ENDLESS = float("inf")
POSTPONED = ("retry", "snooze")
SETTLING = ("complete", *POSTPONED, "bury", "cancel", "release")
"""What a worker may do with a claim."""
BESIDE = ("renew", "suspect", "start", "admit")
"""What a worker says of a claim that it goes on with."""
CANCELLED = ("OK", "WAITING", "RUNNING", "SCHEDULED")


class Fate:
    """One enqueue: what was called, and what was answered."""

    __slots__ = ("answers", "called", "job", "process")

    def __init__(self, process: Process, called: Called) -> None:
        self.process, self.called = process, called
        self.answers: list[Answered] = []
        self.job = ""
        """The job that it made, once that is known."""

    @property
    def outcome(self) -> str:
        """ok, failed or unknown. Once unknown, a later failure proves nothing."""
        words = [answer.outcome for answer in self.answers]
        return "ok" if "ok" in words else "failed" if words and "unknown" not in words else "unknown"

    @property
    def answer(self) -> Answered | None:
        """The answer that names a job."""
        return next((answer for answer in self.answers if answer.outcome == "ok"), None)

    @property
    def settled_at(self) -> float:
        """By when the server had surely done whatever it has done with it."""
        return self.answers[-1].at if self.answer else ENDLESS

    def show(self) -> tuple[str, ...]:
        events: list[Event] = [self.called, *self.answers]
        return tuple(map(self.process.show, events))


class Run:
    """One start of a handler."""

    __slots__ = ("effects", "end", "process", "start")

    def __init__(self, process: Process, start: Started) -> None:
        self.process, self.start = process, start
        self.end: Ended | None = None
        self.effects = 0

    @property
    def token(self) -> tuple[int, int, int]:
        """The fence under which it began; rises with every delivery of a job."""
        return token(self.start)

    def show(self) -> tuple[str, ...]:
        return tuple(self.process.show(event) for event in (self.start, self.end) if event)


class Move:
    """One settling call of one job, with its reply."""

    __slots__ = ("event", "process")

    def __init__(self, process: Process, event: Settled) -> None:
        self.process, self.event = process, event

    @property
    def word(self) -> str:
        """OK, UNSURE, or why it was refused. A cancellation that worked is OK, whatever the job was."""
        word = self.event.word
        return "OK" if self.event.move == "cancel" and word in CANCELLED else word

    @property
    def ends(self) -> bool:
        """Whether with it the job came to an end."""
        return self.event.move in ("complete", "bury", "cancel") and self.word == "OK"

    def show(self) -> tuple[str, ...]:
        return (self.process.show(self.event),)


class Story:
    """All that happened to one job, each list in the order of time."""

    __slots__ = ("cron", "fate", "follows", "job", "moves", "runs")

    def __init__(self, job: str) -> None:
        self.job = job
        self.fate: Fate | None = None
        self.follows = False
        """Whether another job's end made it, with the arguments of its call."""
        self.cron = ""
        """The cron that made it; no call did then."""
        self.runs: list[Run] = []
        self.moves: list[Move] = []

    @property
    def parked(self) -> list[float]:
        """When it was told to wait for a limit."""
        return [move.event.at for move in self.moves if move.word == "PARKED"]

    def done(self, *names: str) -> list[Move]:
        """Return the moves of these names that surely happened."""
        return [move for move in self.moves if move.event.move in names and move.word == "OK"]

    def maybe(self, *names: str) -> list[Move]:
        """Return the moves of these names that happened or may have."""
        return [move for move in self.moves if move.event.move in names and move.word in ("OK", "UNSURE")]

    def run_of(self, move: Move) -> Run | None:
        """Return the run that a worker's move is about."""
        for run in reversed(self.runs):
            same = run.process is move.process and run.start.entry == move.event.entry
            if same and run.start.at <= move.event.sent:
                return None if self._was_settled_before(run, move) else run
        return None

    def _was_settled_before(self, run: Run, move: Move) -> bool:
        """Say whether a release is of a later claim of the run's process, one that it did not start."""
        if move.event.move != "release" or run.end is None:
            return False
        return any(
            other.process is move.process
            and other.event.entry == move.event.entry
            and other.event.move in SETTLING
            and run.end.at <= other.event.sent < move.event.sent
            and other.event.deliveries < move.event.deliveries
            for other in self.moves
        )

    def moves_of(self, run: Run) -> list[Move]:
        """Return what its worker sent of a run."""
        return [move for move in self.moves if move.event.move not in BESIDE and self.run_of(move) is run]

    def answered(self, run: Run) -> bool:
        """Say whether it is known what the server made of a run's outcome."""
        return any(move.word != "UNSURE" for move in self.moves_of(run))

    def generation(self, at: float) -> int:
        """Return how often the job may have been replayed before a time."""
        return sum(move.event.sent < at for move in self.maybe("replay"))


class Stories:
    """A whole history, job by job."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.jobs: dict[str, Story] = {}
        self.fates: list[Fate] = []
        self.latest: dict[tuple[str, str], list[Fate]] = {}
        """The calls whose arguments replace older ones, by queue and key."""
        self.guarded: dict[str, list[tuple[Run, Guarded]]] = {}
        """What runs did with each guarded effect, run by run."""
        self.died: dict[Process, Died] = {}
        self.stopping: dict[Process, Stopping] = {}
        """Since when the last worker of a process has been stopping."""
        self.signals: list[Signalled] = []
        self.faults: list[Fault] = []
        self.losses: list[Loss] = []
        self.strays: list[Move] = []
        """Moves that name an entry of which nothing else is known."""
        self._nameless: list[Move] = []
        self._deaths: list[Died] = []
        for process in history:
            self._gather(process)
        self._name()
        self._pids()
        for story in self.jobs.values():
            if len(story.runs) > 1:
                story.runs.sort(key=_begins)
            if len(story.moves) > 1:
                story.moves.sort(key=_replies)

    def story(self, job: str) -> Story:
        """Return the story of a job, a new one if it has none yet."""
        story = self.jobs.get(job)
        if story is None:
            story = self.jobs[job] = Story(job)
        return story

    def runs(self) -> Iterator[Run]:
        for story in self.jobs.values():
            yield from story.runs

    def _gather(self, process: Process) -> None:
        runs: dict[int, Run] = {}
        calls: dict[int, Fate] = {}
        for event in process.events:
            if isinstance(event, Started):
                run = runs[event.run] = Run(process, event)
                story = self.story(event.job)
                story.runs.append(run)
                story.cron = event.cron
            elif isinstance(event, Ended):
                runs[event.run].end = event
            elif isinstance(event, Settled):
                if event.job:
                    self.story(event.job).moves.append(Move(process, event))
                else:
                    self._nameless.append(Move(process, event))
            elif isinstance(event, Called):
                fate = calls[event.call] = Fate(process, event)
                self.fates.append(fate)
                if event.mode == "latest":
                    self.latest.setdefault((event.queue, event.key), []).append(fate)
            elif isinstance(event, Answered):
                calls[event.call].answers.append(event)
            elif isinstance(event, Did):
                runs[event.run].effects += 1
            elif isinstance(event, Guarded):
                self.guarded.setdefault(event.effect, []).append((runs[event.run], event))
            else:
                self._rarer(process, event)

    def _rarer(self, process: Process, event: object) -> None:
        match event:
            case Working():
                self.stopping.pop(process, None)
            case Stopping():
                self.stopping.setdefault(process, event)
            case Died():
                self._deaths.append(event)
            case Signalled():
                self.signals.append(event)
            case Fault():
                self.faults.append(event)
            case Loss():
                self.losses.append(event)

    def _name(self) -> None:
        """Give moves that named an entry alone to the jobs that had it."""
        if not self._nameless:
            return
        of_entry: dict[str, Story] = {}
        for story in self.jobs.values():
            of_entry.update({move.event.entry: story for move in story.moves})
            of_entry.update({run.start.entry: story for run in story.runs})
        for move in self._nameless:
            entry = move.event.entry
            # An entry that nobody started is, but for promoted ones, named like its job.
            known = of_entry.get(entry) or self.jobs.get(entry)
            (self.strays if known is None else known.moves).append(move)

    def _pids(self) -> None:
        for death in self._deaths:
            # A pid may be used again: the death is of the last one that had it before.
            if process := self.process(death.pid, death.at):
                self.died.setdefault(process, death)

    def process(self, pid: int, at: float) -> Process | None:
        """Return which process had a pid at a time."""
        return next((one for one in reversed(self.history) if one.pid == pid and one.events[0].at <= at), None)


def token(event: Started | Settled) -> tuple[int, int, int]:
    """Return entry and delivery as numbers that can be compared."""
    ms, _, number = event.entry.rpartition(":")[2].partition("-")
    return int(ms), int(number), event.deliveries


def id_ms(job: str) -> int:
    """Return the server time that an id begins with."""
    return int(job.rpartition(":")[2].lstrip("d").partition("-")[0])


def _begins(run: Run) -> float:
    return run.start.at


def _replies(move: Move) -> float:
    return move.event.at
