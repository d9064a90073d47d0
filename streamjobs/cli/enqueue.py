"""`streamjobs enqueue`."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Command
from streamjobs.cli.endings import Failed, exit_code
from streamjobs.cli.settings import settings
from streamjobs.core.errors import OutcomeUnknown, ResultTimeout, StreamJobsError, UsageError

if TYPE_CHECKING:
    from streamjobs.app import StreamJobs
    from streamjobs.core.job import Job
    from streamjobs.handle import Handle

RESULT_S = 300.0
"""How long the result of a job that is waited for is kept."""
MOST = 10_000_000
_WHEN_EXPIRED = click.Choice(["dead", "drop"])


@click.command(cls=Command)
@click.argument("kind", required=False, shell_complete=params.kind.shell_complete)
@click.argument("arguments", nargs=-1, metavar="[ARG]...")
@click.option("-A", "--app", "app_path", metavar="MODULE:APP", help="Check arguments by the app's handlers.")
@click.option("--arg", "named", multiple=True, metavar="NAME=VALUE", help="One argument; JSON, else text.")
@click.option("--args-json", metavar="JSON", help="Arguments as one JSON object.")
@click.option("--file", "file", metavar="FILE", help="Jobs from a file, one JSON object a line; - is stdin.")
@click.option("--delay", type=params.duration, help="Run no sooner than so long from now.")
@click.option("--at", type=params.time, help="Run no sooner than this, such as 2030-01-31T12:00:00Z.")
@click.option("--expires", type=params.when, help="Not started within so long, or by this instant: never start it.")
@click.option("--when-expired", type=_WHEN_EXPIRED, default="dead", help="What becomes of it then; default dead.")
@click.option("--dedupe-key", metavar="KEY", help="At most one job with this key is under way.")
@click.option(
    "--dedupe", callback=params.dedupe, metavar="MODE", help="One of done, started, latest, a window (5m), none."
)
@click.option("--durability", metavar="LEVEL", help="Return when it is there: memory, fsync, or replicas:N.")
@click.option("-Q", "--queue", type=params.queue, help="Another queue than the kind's.")
@click.option("--count", type=params.numbers(1, MOST), default=1, metavar="N", help="Send the same job so many times.")
@click.option("--wait", is_flag=True, help="Wait for the job to end, and print its result as JSON.")
def enqueue(
    kind: str | None,
    arguments: tuple[str, ...],
    app_path: str | None,
    named: tuple[str, ...],
    args_json: str | None,
    file: str | None,
    count: int,
    wait: bool,
    **options: Any,
) -> int:
    """Send jobs of KIND, or the jobs in a file; print their ids.

    With -A, ARGs are taken in the order of the handler's signature, and KIND may be the last part of
    its name. A line of a file is {"kind": …, "args": {…}}, and may hold queue, delay, at, expires, when_expired,
    dedupe_key, dedupe, headers, result_ttl and durability; what it leaves out is taken from the command line.
    """
    from streamjobs.cli.arguments import Given
    from streamjobs.core.options import EnqueueOptions

    _check(kind, file, wait, count, bool(arguments or named or args_json), options["dedupe_key"])
    given = Given(arguments, named, args_json)
    chosen = EnqueueOptions(**options, result_ttl=RESULT_S if wait else None)
    by_signature = app_path is not None or bool(settings().get("app"))
    app = settings().app(app_path, short=True)
    if file is not None:
        return _send_file(app, file, kind, chosen, by_signature)
    assert kind is not None
    job = given.job(app, kind, chosen, by_signature=by_signature)
    if count > 1:
        return _send_many(_Bulk(app, ((n, job) for n in range(1, count + 1)), "job"), count)
    return _send_one(app, job, wait)


def _check(kind: str | None, file: str | None, wait: bool, count: int, arguments: bool, dedupe_key: str | None) -> None:
    if file is None and kind is None:
        raise UsageError("which kind? Name it (streamjobs enqueue KIND), or give jobs with --file")
    if wait and (file is not None or count > 1):
        raise UsageError("--wait is for one job: leave out --file and --count")
    if file is not None and (arguments or count > 1 or dedupe_key):
        raise UsageError("--file has its arguments and keys in its lines: leave out ARG, --arg, --args-json,"
                         " --count and --dedupe-key")  # fmt: skip


def _send_one(app: "StreamJobs", job: "Job", wait: bool) -> int:
    from streamjobs.protocol import scripts

    [outcome] = app.enqueue_many_sync([job])
    if isinstance(outcome, StreamJobsError):
        raise outcome
    if outcome.duplicate:
        show.note(f"duplicate: {outcome.id} holds this dedupe key; nothing was enqueued")
    if not wait:
        if settings().as_json:
            sums = {"enqueued": int(not outcome.duplicate), "duplicates": int(outcome.duplicate)}
            show.listing("enqueue", "jobs", [_row(outcome)], lambda: sums)
        else:
            show.line(outcome.id)
        return 0
    # Now: Ctrl-C, which ends the wait, must find no file open.
    scripts.load("lookup")
    if settings().verbose:
        show.note(f"waiting for {outcome.id}")
    result = _result(outcome)
    if settings().as_json:
        show.document("result", id=outcome.id, state="done", result=result)
    else:
        show.value(result)
    return 0


def _result(handle: "Handle[Any]") -> Any:
    while True:
        try:
            return handle.result_sync(timeout=3600)
        except ResultTimeout:
            continue


def _row(handle: "Handle[Any]") -> dict[str, Any]:
    return {"id": handle.id, "queue": handle.queue, "duplicate": handle.duplicate}


def _send_file(app: "StreamJobs", file: str, kind: str | None, options: Any, by_signature: bool) -> int:
    from streamjobs.cli.lines import Lines

    with _lines(file) as lines:
        jobs = Lines(app, kind, options, by_signature=by_signature).jobs(lines)
        bulk = _Bulk(app, jobs, "line")
        if file == "-":
            return _send_many(bulk, 0)
        return _send_many(bulk, os.fstat(lines.fileno()).st_size, lines.tell)


@contextmanager
def _lines(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        if sys.stdin is None:
            raise UsageError("--file -: stdin is closed")
        yield sys.stdin.buffer
        return
    try:
        opened = open(file, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UsageError(f"--file {file}: {error.strerror}") from error
    with opened:
        yield opened


class _Bulk:
    """Sends many jobs up to the first error, and knows what came of them."""

    def __init__(self, app: "StreamJobs", jobs: "Iterator[tuple[int, Job]]", noun: str) -> None:
        """`noun`: what the numbers of the jobs count."""
        self._app = app
        self._jobs = jobs
        self._noun = noun
        self.enqueued = 0
        self.duplicates = 0
        self.error: StreamJobsError | None = None

    @property
    def sent(self) -> int:
        """How many are there, those that were there before included."""
        return self.enqueued + self.duplicates

    def batches(self, after: Callable[[], None]) -> "Iterator[list[Handle[Any]]]":
        """Send; yield the handles of each batch, and call `after` behind it.

        An error ends the iteration and is kept in `error`.
        """
        from streamjobs.cli.lines import send_all

        try:
            for batch in send_all(self._app, self._jobs):
                failed = [(number, one) for number, one in batch if isinstance(one, StreamJobsError)]
                handles = [one for _, one in batch if not isinstance(one, StreamJobsError)]
                duplicates = sum(handle.duplicate for handle in handles)
                self.duplicates += duplicates
                self.enqueued += len(handles) - duplicates
                yield handles
                after()
                if failed:
                    self._stop_at(failed)
                    return
        except UsageError as error:
            self.error = type(error)(f"{error}; before it, {self.told()}; nothing after it was sent")

    def _stop_at(self, failed: list[tuple[int, StreamJobsError]]) -> None:
        (first, error), (last, _) = failed[0], failed[-1]
        where = f"{self._noun} {first}" if first == last else f"{self._noun}s {first} to {last}"
        code = exit_code(error)
        unsure = any(isinstance(one, OutcomeUnknown) for _, one in failed)
        lost = "may or may not have been" if unsure else "was not" if len(failed) == 1 else "were not"
        self.error = Failed(f"{where}: {error}; {self.told()}, {show.plural(len(failed), 'job')} {lost}", code)

    def told(self) -> str:
        """Return how many are there, as a sentence says it."""
        return f"{show.plural(self.sent, 'job')} {'was' if self.sent == 1 else 'were'} enqueued"

    def sums(self) -> dict[str, int]:
        return {"enqueued": self.enqueued, "duplicates": self.duplicates}


def _send_many(bulk: _Bulk, length: int, position: Callable[[], int] | None = None) -> int:
    """Send all, or up to the first error; what was sent is said in either case.

    Args:
        length: of the whole way, for the progress bar; 0 shows none.
        position: how much of it is done; default the number of jobs.
    """
    from streamjobs.cli.lines import BATCH

    try:
        with show.progress(length, "enqueued") as advance:
            batches = bulk.batches(lambda: advance(position() if position else bulk.sent))
            handles = (handle for batch in batches for handle in batch)
            if settings().as_json:
                show.listing("enqueue", "jobs", map(_row, handles), bulk.sums)
            else:
                for _ in handles:
                    pass
    except BaseException:
        # A batch under way when Ctrl-C came has not told what became of it.
        show.note(f"{bulk.told()} before it ended; up to {BATCH} more may have been")
        raise
    if bulk.error is None and not settings().as_json:
        held = f", {show.plural(bulk.duplicates, 'duplicate')}" if bulk.duplicates else ""
        show.line(f"enqueued {show.plural(bulk.enqueued, 'job')}{held}")
    if bulk.error is not None:
        raise bulk.error
    return 0
