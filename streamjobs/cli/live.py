"""Which live jobs a command means: the same options everywhere."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamjobs.cli import params

if TYPE_CHECKING:
    from streamjobs.operate.live import Live, Selection

F = TypeVar("F", bound=Callable[..., Any])


def selecting(*states: str) -> Callable[[F], F]:
    """Add the options that select live jobs in some of these states; the command makes a `Selection` of them."""
    options = [
        click.option("--state", "states", type=click.Choice(states), multiple=True, help="In this state; default all."),
        click.option("--kind", "kinds", multiple=True, help="Of this kind."),
        click.option("--since", type=params.when, help="Enqueued no longer ago than this (4h), or since this instant."),
        click.option("--until", type=params.when, help="Enqueued at least so long ago, or until this instant."),
    ]

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def selection(
    kinds: tuple[str, ...], since: datetime | float | None, until: datetime | float | None, now_ms: int
) -> "Selection":
    """Return what the options select; `now_ms` is the server's time."""
    from streamjobs.operate.live import Selection

    return Selection(kinds, params.instant_ms(since, now_ms), params.instant_ms(until, now_ms))


def chosen(states: Sequence[str], among: Sequence[str]) -> "list[Live]":
    """Return the states that were asked for, in their order here; all of them if none was."""
    from streamjobs.operate.live import Live

    return [Live(state) for state in among if not states or state in states]
