"""`streamjobs workers`: see who works, let workers start nothing more, stop them, forget dead ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from streamjobs.cli import crew, params, show
from streamjobs.cli.commands import Group
from streamjobs.cli.endings import FAILED, REFUSED, Failed, complain
from streamjobs.cli.params import Names, flat
from streamjobs.cli.selection import confirmed
from streamjobs.cli.settings import settings
from streamjobs.core.errors import Refused, UsageError

if TYPE_CHECKING:
    from streamjobs.operate.workers import Taken, Workers, WorkerStatus

_queues = click.option("-Q", "--queue", "queues", type=params.queues, multiple=True, metavar="Q[,Q…]",
                       help="Of these queues; default all.")  # fmt: skip
_names = click.argument("names", nargs=-1, metavar="[NAME]...")
_yes = click.option("--yes", is_flag=True, help="Do it without asking.")


@click.group("workers", cls=Group)
def workers() -> None:
    """See who works, let workers start nothing more, stop them, forget dead ones."""


def _look(queues: Sequence[str] = ()) -> "Workers":
    from streamjobs.client.talk import talk
    from streamjobs.operate.workers import look

    executor, _ = settings().reach()
    return talk(executor, look(settings().namespace, queues))


@workers.command("list")
@_queues
def list_(queues: Names) -> None:
    """List workers, live ones first; those that died are listed for 10 minutes."""
    found = _look(flat(queues))
    if settings().as_json:
        show.document("workers.list", time=show.time_of(found.at_ms),
                      workers=[crew.fields(one) for one in found.workers])  # fmt: skip
    elif found.workers:
        for text in crew.table(found, "~NAME ~HOST STATE >RUN/SLOTS >OLDEST >RSS >LAG >SEEN ~QUEUES"):
            click.echo(text, color=settings().color)
    else:
        show.note(f"no workers in namespace {settings().namespace}")


@workers.command("show")
@click.argument("name")
def show_(name: str) -> None:
    """Show one worker, and the jobs that it runs; a part of its name is enough where no other has it."""
    from streamjobs.operate.workers import find

    found = _look()
    one = find(found.workers, name)
    if settings().as_json:
        show.document("workers.show", time=show.time_of(found.at_ms), worker=crew.fields(one))
        return
    show.pairs(_about(one, found.at_ms))
    if one.note.jobs:
        show.line()
        table = show.Table("ID", "~KIND", ">RUNS FOR")
        table.print((job.id, job.kind, show.age(one.note.at_ms - job.started_ms)) for job in one.note.jobs)
    if (more := one.note.running - len(one.note.jobs)) > 0:
        show.note(f"and {show.plural(more, 'job')} more that began later")


def _about(one: "WorkerStatus", now_ms: int) -> list[tuple[str, str]]:
    note = one.note
    state = one.state + (f", ordered to {one.order}" if one.order and one.live else "")
    rest = [f"{note.claimed} claimed beside" if note.claimed else "", f"{note.stuck} do not end" if note.stuck else ""]
    running = ", ".join([f"{note.running} of {show.plural(note.slots, 'slot')}", *filter(None, rest)])
    started = show.time_of(note.started_ms)
    under = f", under supervisor {note.supervisor}" if note.supervisor else ""
    return [
        ("name", one.name),
        ("state", state),
        ("seen", show.ago(now_ms - one.seen_ms)),
        ("host", note.host),
        ("pid", f"{note.pid}{under}" if note.pid else ""),
        ("version", note.version),
        ("started", f"{started} ({show.ago(now_ms - note.started_ms)})" if started else ""),
        ("queues", ", ".join(one.queues) + (f" (of {note.serves})" if note.serves > len(one.queues) else "")),
        ("running", running if one.told else "not known: it does not tell"),
        ("done", f"{show.count(note.done)}, {show.count(note.failed)} failed" if one.told else ""),
        ("memory", show.size(note.rss_bytes) if note.rss_bytes else ""),
        ("loop lag", f"{note.lag_ms / 1000:.1f}s" if one.told else ""),
    ]  # fmt: skip


@workers.command()
@_names
@click.option("--all", "every", is_flag=True, help="All live ones.")
@click.option("--undo", is_flag=True, help="Let them start jobs again.")
@_yes
def quiet(names: tuple[str, ...], every: bool, undo: bool, yes: bool) -> None:
    """Let workers start nothing more; what runs goes on. They stay, until told to go on or to stop."""
    from streamjobs.protocol.workers import QUIET, RUN

    _order(names, every, yes, *((RUN, "start jobs again") if undo else (QUIET, "start nothing more")))


@workers.command()
@_names
@click.option("--all", "every", is_flag=True, help="All live ones.")
@_yes
def stop(names: tuple[str, ...], every: bool, yes: bool) -> None:
    """Stop workers, as SIGTERM does; a supervisor starts no others in their places."""
    from streamjobs.protocol.workers import STOP

    _order(names, every, yes, STOP, "stop")


def _order(names: Sequence[str], every: bool, yes: bool, word: str, said: str) -> None:
    """Give an order to the workers that are meant, and say what becomes of it as they take it."""
    from streamjobs.client.talk import talk
    from streamjobs.operate.workers import order

    if every == bool(names):
        raise UsageError("which workers? Name them, as streamjobs workers list does, or give --all")
    chosen = _chosen(names)
    if every and chosen and not confirmed(f"order {show.plural(len(chosen), 'worker')} to {said}", yes=yes):
        raise Failed("not confirmed; nothing was changed", REFUSED)
    if every and not chosen and not settings().as_json:
        show.note(f"no live workers in namespace {settings().namespace}")

    def tell(taken: "Taken") -> None:
        if not settings().as_json:
            show.line(f"{taken.name} {_came_of(taken)}")

    executor, _ = settings().reach()
    done = talk(executor, order(settings().namespace, chosen, word, tell=tell))
    if settings().as_json:
        rows = [{"name": one.name, "taken": one.taken, "state": _state(one)} for one in done]
        show.document("workers.order", order=word, workers=rows)
    _fail_by([one.name for one in done if not one.taken])


def _chosen(names: Sequence[str]) -> list[str]:
    """Return the full names of the workers that are meant, or of all live ones."""
    from streamjobs.operate.workers import find

    found = _look().workers
    meant = [find(found, name) for name in names] if names else [one for one in found if one.live]
    if gone := [one.name for one in meant if not one.live]:
        raise Refused(f"worker {gone[0]} is gone: it takes no orders; nothing was changed")
    return list(dict.fromkeys(one.name for one in meant))


def _state(taken: "Taken") -> str | None:
    if taken.note is None:
        return "gone" if taken.taken else None
    return taken.note.state


def _came_of(taken: "Taken") -> str:
    if taken.note is None:
        return "has stopped"
    runs = f"; {show.plural(taken.note.running, 'job')} still {'runs' if taken.note.running == 1 else 'run'}"
    return f"is {taken.note.state}{runs if taken.note.running and taken.note.state != 'running' else ''}"


def _fail_by(names: Sequence[str]) -> None:
    texts = [f"worker {name} has not taken the order in time: it may still, if it lives" for name in names]
    for text in texts[:-1]:
        complain(text)
    if texts:
        raise Failed(texts[-1], FAILED)


@workers.command()
@_queues
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
def prune(queues: Names, dry_run: bool) -> None:
    """Forget dead workers now, as others do after 10 minutes; never one whose jobs were not taken over yet."""
    from streamjobs.client.talk import talk
    from streamjobs.operate.workers import prune as operate

    executor, _ = settings().reach()
    found = talk(executor, operate(settings().namespace, flat(queues), dry_run=dry_run))
    if settings().as_json:
        rows = [{"queue": one.queue, "forgotten": one.forgotten, "holding": one.holding} for one in found]
        show.document("workers.prune", dry_run=dry_run, queues=rows)
        return
    for one in found:
        if one.forgotten or one.holding:
            kept = f"; {one.holding} kept, which hold jobs until others take those over" if one.holding else ""
            verb = "would forget" if dry_run else "forgot"
            show.line(f"{verb} {show.plural(one.forgotten, 'dead worker')} of {one.queue}{kept}")
    if not any(one.forgotten or one.holding for one in found):
        show.note("no dead workers")
