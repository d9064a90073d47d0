"""`streamjobs stats`."""

from typing import TYPE_CHECKING, NoReturn

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Command
from streamjobs.cli.endings import FAILED, complain
from streamjobs.cli.settings import settings
from streamjobs.cli.stats_json import fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamjobs.operate.conditions import Broken, Condition
    from streamjobs.operate.overview import Overview

WATCH_S = "2s"


@click.command(cls=Command)
@click.argument("queues", nargs=-1, type=params.queue, metavar="[QUEUE]...")
@click.option("--watch", is_flag=False, flag_value=WATCH_S, metavar="[2s]", help="Look again so often, until Ctrl-C.")
@click.option(
    "--by", type=click.Choice(["queue", "kind", "worker"]), default="queue", help="What a row is of; default queue."
)
@click.option(
    "--window",
    type=click.Choice(["1m", "5m", "1h", "24h"]),
    help="How far back rates, failures and times go; default 1m, by kind 5m.",
)
@click.option(
    "--assert", "asserts", multiple=True, metavar="CONDITIONS", help="Fail unless they hold: oldest<60s,dead=0."
)
@click.option(
    "--threshold",
    "thresholds",
    type=params.threshold,
    multiple=True,
    metavar="NAME=BOUNDS",
    help="From when on degraded, and critical: oldest=30s/2m, dead=off.",
)
@click.option("--prom", is_flag=True, help="Print metrics in the text format of Prometheus.")
def stats(
    queues: tuple[str, ...],
    watch: str | None,
    by: str,
    window: str | None,
    asserts: tuple[str, ...],
    thresholds: tuple[tuple[str, params.Pair | float | None], ...],
    prom: bool,
) -> int:
    """Show what each queue holds, what came and went lately, and whether it is healthy and why not.

    Reads only, and costs the same whatever the queues hold. A `*` marks a queue that no live worker takes
    jobs of. The exit code is 1 when anything is critical, or a condition does not hold.
    """
    from streamjobs.operate.conditions import parse

    if prom and (watch is not None or by != "queue" or settings().as_json):
        raise click.UsageError("--prom prints the queues once: leave out --watch, --by and --json")
    every_s, queues = _every_s(watch, queues)
    queues = tuple(dict.fromkeys(queues))
    conditions = [one for text in asserts for one in parse(text, params.seconds)]
    look = Look(queues, by, window, dict(thresholds), conditions, prom=prom)
    return look.once() if every_s is None else look.again(every_s)


def _every_s(watch: str | None, queues: tuple[str, ...]) -> tuple[float | None, tuple[str, ...]]:
    """Return how often to look, and at which queues: a name that follows --watch is one of them."""
    if watch is None:
        return None, queues
    try:
        every_s = params.seconds(watch)
    except ValueError:
        return params.seconds(WATCH_S), (params.queue(watch), *queues)
    if not 0.1 <= every_s <= 3600:
        raise click.BadParameter(f"{watch}: use 0.1s to 1h", param_hint="--watch")
    return every_s, queues


class Look:
    """One way to look at the queues, once or again and again."""

    def __init__(
        self,
        queues: tuple[str, ...],
        by: str,
        window: str | None,
        thresholds: dict[str, params.Pair | float | None],
        conditions: "Sequence[Condition]",
        *,
        prom: bool,
    ) -> None:
        from streamjobs.core.thresholds import Thresholds
        from streamjobs.operate.metrics import WINDOWS

        # A wrong one is said before anything is asked.
        Thresholds().changed(thresholds)
        self._queues = queues
        self._by = by
        self._window = WINDOWS[window or ("5m" if by == "kind" else "1m")]
        self._thresholds = thresholds
        self._conditions = conditions
        self._prom = prom

    def once(self) -> int:
        """Show it, and return the exit code."""
        from streamjobs.core.thresholds import Health

        settings().reach()
        seen, broken = self._see()
        if self._prom:
            from streamjobs.operate.prom import judged

            click.echo(judged(seen), nl=False)
        elif settings().as_json:
            show.document("stats", **fields(seen, broken))
        else:
            for line in self._lines(seen):
                click.echo(line, color=settings().color)
            if not seen.queues:
                show.note(f"no queues in namespace {settings().namespace}: nothing was enqueued and no worker came yet")
        for line in _failed(broken):
            complain(line)
        return FAILED if broken or seen.health is Health.CRITICAL else 0

    def again(self, every_s: float) -> NoReturn:
        """Show it again and again."""
        from streamjobs.cli.watch import alarm, watch

        def lines(room: int | None) -> list[str]:
            seen, broken = self._see()
            failed = [line for text in _failed(broken) for line in alarm(text)]
            heading, *rest = self._lines(seen, None if room is None else room - len(failed))
            return [heading, *failed, *rest]

        def tell() -> None:
            show.document_line("stats", **fields(*self._see()))

        watch(every_s, lines, tell if settings().as_json else None)

    def _see(self) -> "tuple[Overview, list[Broken]]":
        from streamjobs.client.talk import talk
        from streamjobs.operate.conditions import broken
        from streamjobs.operate.overview import overview

        conversation = overview(
            settings().namespace,
            self._queues,
            window=self._window,
            thresholds=self._thresholds,
            by_kind=self._by == "kind",
            by_worker=self._by == "worker",
        )
        seen = talk(settings().connections.sync(), conversation)
        return seen, broken(self._conditions, seen)

    def _lines(self, seen: "Overview", room: int | None = None) -> list[str]:
        from streamjobs.cli import screen

        match self._by:
            case "kind":
                return screen.kinds(seen, room)
            case "worker":
                return screen.workers(seen, room)
        return screen.overview(seen, room, named=bool(self._queues))


def _failed(broken: "Sequence[Broken]") -> list[str]:
    """Return a line for each condition that does not hold, with what it is instead and where."""
    found: dict[str, list[str]] = {}
    for one in broken:
        found.setdefault(one.condition.text, []).append(str(one))
    return [f"{text} does not hold: {', '.join(measured)}" for text, measured in found.items()]
