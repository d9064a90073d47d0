"""`streamjobs queue purge` and `queue delete`: end what has not started, and forget a queue."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Command
from streamjobs.cli.endings import REFUSED, Failed
from streamjobs.cli.live import chosen, selecting, selection
from streamjobs.cli.selection import confirmed
from streamjobs.cli.settings import settings
from streamjobs.core.errors import Refused

if TYPE_CHECKING:
    from streamjobs.operate.delete import Contents
    from streamjobs.operate.live import Live, Selection
    from streamjobs.operate.purge import Purged
    from streamjobs.protocol.keys import QueueKeys

STATES = ("scheduled", "retrying", "waiting")
REASON = "purged from the command line"
_yes = click.option("--yes", is_flag=True, help="Do it without asking.")
_dry_run = click.option("--dry-run", is_flag=True, help="Only say what would be done.")


@click.command(cls=Command)
@click.argument("name", type=params.queue, metavar="QUEUE")
@selecting(*STATES)
@click.option("--limit", type=params.numbers(1), metavar="N", help="At most so many; default all.")
@_dry_run
@_yes
def purge(
    name: str,
    states: tuple[str, ...],
    kinds: tuple[str, ...],
    since: datetime | float | None,
    until: datetime | float | None,
    limit: int | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """End jobs of a queue that have not started, as cancelled: all, or those selected.

    Running jobs go on. Dead ones are left alone: streamjobs dead purge deletes them.
    """
    from streamjobs.client.talk import talk
    from streamjobs.operate.queues import known

    executor, now_ms = settings().reach()
    keys = talk(executor, known(settings().namespace, name))
    # What is enqueued from now on is not meant.
    means = selection(kinds, since, until if until is not None else 0.0, now_ms)
    every = chosen(states, STATES)
    plain = not kinds and since is None and until is None
    count = _count(keys, every, None if plain else means, limit or 0) if dry_run or not yes else -1
    what = f"{show.plural(count, 'job')} of {name}"
    if dry_run or count == 0:
        _say(name, f"would purge {what}" if count else f"nothing to purge in {name}", count, dry_run=dry_run)
    elif not confirmed(f"purge {what}", yes=yes):
        raise Failed("not confirmed; nothing was changed", REFUSED)
    else:
        _purge(keys, every, means, limit or 0, max(0, count))


def _count(keys: "QueueKeys", states: "list[Live]", means: "Selection | None", limit: int) -> int:
    """Count the jobs that are meant: without looking at each where all of these states are."""
    from streamjobs.client.talk import talk
    from streamjobs.operate.live import Selection
    from streamjobs.operate.purge import count
    from streamjobs.operate.stats import snapshot

    executor, _ = settings().reach()
    [now] = talk(executor, snapshot(keys.namespace, [keys.queue])).queues
    if means is not None or now.unreadable:
        return talk(executor, count(keys, states, means or Selection(), limit))
    found = sum(int(getattr(now, state.value)) for state in states)
    return min(limit, found) if limit else found


def _purge(keys: "QueueKeys", states: "list[Live]", means: "Selection", limit: int, length: int) -> None:
    from streamjobs.client.talk import talk
    from streamjobs.operate.purge import Purged, purge

    whole = Purged()

    def tell(so_far: "Purged") -> None:
        nonlocal whole
        whole = so_far
        advance(so_far.jobs)

    try:
        with show.progress(length, "purged") as advance:
            executor, _ = settings().reach()
            talk(executor, purge(keys, states, means, REASON, limit=limit, tell=tell))
    except BaseException:
        if whole.jobs:
            show.note(f"purged {show.plural(whole.jobs, 'job')} before it ended")
        raise
    left = f"; {show.plural(whole.running, 'job')} left running" if whole.running else ""
    text = f"purged {show.plural(whole.jobs, 'job')} of {keys.queue}{left}"
    _say(keys.queue, text, whole.jobs, running=whole.running)


def _say(queue: str, text: str, jobs: int, *, dry_run: bool = False, running: int = 0) -> None:
    if settings().as_json:
        show.document("queue.purge", queue=queue, dry_run=dry_run, jobs=jobs, left_running=running)
    else:
        show.line(text)


@click.command(cls=Command)
@click.argument("name", type=params.queue, metavar="QUEUE")
@click.option("--force", is_flag=True, help="Also with jobs, which are ended, and while workers serve it.")
@_dry_run
@_yes
def delete(name: str, force: bool, dry_run: bool, yes: bool) -> None:
    """Delete a queue, with its settings and counts; refused while it holds jobs or workers serve it.

    With --force its jobs end as cancelled, those that run included, and its dead ones are gone for good.
    """
    from streamjobs.client.talk import talk
    from streamjobs.operate import delete as operate

    executor, _ = settings().reach()
    found = talk(executor, operate.contents(settings().namespace, name))
    if dry_run:
        needs = " (that needs --force)" if (found.jobs or found.stats.workers) and not force else ""
        _tell(name, found, f"would delete {_with(name, found)}{needs}", done=False)
        return
    if not force and (found.jobs or found.stats.workers):
        raise Refused(f"{_with(name, found)}: not deleted; stop and purge that first, or add --force")
    if not confirmed(f"delete {_with(name, found)}", yes=yes):
        raise Failed("not confirmed; nothing was changed", REFUSED)
    talk(executor, operate.delete(settings().namespace, name, force=force))
    _tell(name, found, f"deleted {name}", done=True)
    if found.stats.workers:
        show.note(f"{show.plural(found.stats.workers, 'worker')} that serve it make it anew")


def _with(name: str, found: "Contents") -> str:
    """Return the queue, and what goes with it."""
    parts = [show.plural(number, noun) for number, noun in found.parts]
    if workers := found.stats.workers:
        parts.append(f"{show.plural(workers, 'live worker')}")
    return f"queue {name}{' with ' if parts else ''}{', '.join(parts)}"


def _tell(name: str, found: "Contents", text: str, *, done: bool) -> None:
    if not settings().as_json:
        show.line(text)
        return
    now = found.stats
    fields: dict[str, Any] = {state: getattr(now, state) for state in ("waiting", "running", "retrying", "scheduled")}
    fields |= {"dead": now.dead, "workers": now.workers, "limits": found.limits, "crons": found.crons}
    show.document("queue.delete", queue=name, dry_run=not done, deleted=done, **fields)
