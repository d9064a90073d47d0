"""`streamjobs worker`."""

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from streamjobs.cli import params
from streamjobs.cli.commands import Command
from streamjobs.cli.logs import logging_to_stderr
from streamjobs.cli.params import Names, flat
from streamjobs.cli.settings import settings
from streamjobs.core.cpus import cpus
from streamjobs.core.errors import InvalidOption

if TYPE_CHECKING:
    from streamjobs.app import StreamJobs

_PASSED_ON = tuple(
    "concurrency lease sweep grace pool max_jobs_per_process max_process_bytes allow_eviction health_port"
    " metrics_port loop".split()
)
_QUEUES = "Queues to serve, by name or pattern, each perhaps with its weight."
_FORMATS = click.Choice(["text", "json"])
_POOL = "Processes at most for process=True handlers; default one a CPU, shared out under -w."
_LOOPS = click.Choice(["auto", "asyncio", "uvloop"])
_EACH = "Processes that each run so many; auto: one a CPU; default 1."


@click.command(cls=Command)
@click.option("-A", "--app", "app_path", metavar="MODULE:APP", help="The app, such as jobs:app.")
@click.option("-Q", "--queue", "queues", type=params.subscriptions, multiple=True, metavar="Q[:W][,Q…]", help=_QUEUES)
@click.option("-c", "--concurrency", type=params.number, metavar="N", help="Jobs that run at once; default 100.")
@click.option("-w", "--processes", type=params.processes, metavar="N|auto", help=_EACH)
@click.option("--lease", type=params.duration, help="How long a job's worker may be silent; default 15s.")
@click.option("--sweep", type=params.duration, help="How often silent workers' jobs are looked for; default 5s.")
@click.option("--grace", type=params.duration, help="What running jobs get to end when stopped; default 25s.")
@click.option("--pool", type=params.number, metavar="N", help=_POOL)
@click.option(
    "--max-jobs-per-process", type=params.number, metavar="N", help="Replace each after so many; default 1000."
)
@click.option("--max-process-bytes", type=params.size, metavar="SIZE", help="Replace one that holds more, such as 2G.")
@click.option("--strict", is_flag=True, help="Read a queue when those before it in -Q have no more.")
@click.option("--burst", is_flag=True, help="End when nothing waits, runs or retries.")
@click.option("--allow-eviction", is_flag=True, default=None, help="Start on a server that deletes when it is full.")
@click.option("--health-port", type=params.address, metavar="[HOST:]PORT", help="Serve /livez and /readyz there.")
@click.option("--metrics-port", type=params.address, metavar="[HOST:]PORT", help="Serve /metrics there.")
@click.option("--loop", type=_LOOPS, help="The event loop; default auto: uvloop where it is installed.")
@click.option("--log-format", type=_FORMATS, help="Default text.")
@click.option("--line", type=params.number, hidden=True, help="The socket to the supervisor that started this.")
@click.option("--quarantine", is_flag=True, hidden=True, help="Run nothing but suspects.")
def worker(
    app_path: str | None, queues: Names, burst: bool, strict: bool, line: int | None, quarantine: bool, **given: Any
) -> int:
    """Run jobs until told to stop.

    SIGTERM or Ctrl-C: nothing more is started, running jobs get the grace time. A second one: at once.
    Exit code 0 after a clean end, 1 if the grace ran out, 130 or 143 after a second signal.
    """
    chosen = {name: _setting(name) if value is None else value for name, value in given.items()}
    options = {name: chosen[name] for name in _PASSED_ON if chosen[name] is not None}
    options |= {"burst": burst, "strict": strict}
    names = flat(queues) or list(_setting("queues") or ())
    if app_path is None and not settings().get("app"):
        raise InvalidOption("which app? Name it with -A MODULE:APP, such as -A jobs:app")
    level = logging.DEBUG if settings().verbose else logging.WARNING if settings().quiet else logging.INFO
    with logging_to_stderr(chosen["log_format"] or "text", level):
        if line is None and (chosen["processes"] or 1) > 1:
            return _supervise(settings().words, chosen, burst=burst)
        app = settings().app(app_path, short=False)
        if line is None:
            return app.run_worker(names or None, **options)
        # The children are on one machine.
        options.setdefault("pool", max(1, cpus() // (chosen["processes"] or 1)))
        return _run_child(app, line, names or None, options, quarantine=quarantine)


def _supervise(words: tuple[str, ...], chosen: dict[str, Any], *, burst: bool) -> int:
    """Run this same command line in several children."""
    import asyncio

    from streamjobs.worker.front import Front
    from streamjobs.worker.supervise import Supervisor

    async def work() -> int:
        command, processes = [sys.executable, "-m", "streamjobs", *words], chosen["processes"]
        front = Front(chosen["health_port"], chosen["metrics_port"], processes=processes)
        async with front.serving():
            return await Supervisor(command, processes, burst=burst, front=front).run()

    return asyncio.run(work())


def _run_child(
    app: "StreamJobs", line: int, queues: list[str] | None, options: dict[str, Any], *, quarantine: bool
) -> int:
    """Run one of the children that `_supervise` starts."""
    from streamjobs.core.options import WorkerOptions
    from streamjobs.worker.duty import Duty

    return app.run_child(line, Duty.SUSPECTS if quarantine else Duty.ORDINARY, queues, WorkerOptions(**options))


_READ: dict[str, Callable[[str], Any]] = {
    "queues": params.subscriptions,
    "concurrency": params.number,
    "processes": params.processes,
    "pool": params.number,
    "max_jobs_per_process": params.number,
    "max_process_bytes": params.size,
    "health_port": params.address,
    "metrics_port": params.address,
    "allow_eviction": lambda text: click.BOOL.convert(text, None, None),
    "loop": lambda text: _LOOPS.convert(text, None, None),
    "log_format": lambda text: _FORMATS.convert(text, None, None),
}


def _setting(name: str) -> Any:
    """Return an option's value from its variable or the file, read as the flag would be."""
    value, where = settings().found(name)
    if value is None:
        return None
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    try:
        return _READ.get(name, params.duration)(text)
    except click.UsageError as error:
        raise InvalidOption(f"{where}: {error.message}") from error
