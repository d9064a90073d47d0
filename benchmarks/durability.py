"""Scenario `durability`: what it costs to return when a job is on disk, and what the server's own setting costs.

Jobs are added in bulk, and by 100 tasks at once that each wait for theirs, on servers without an append-only file, and
with one that is synced every second, or always; at the levels `memory` and `fsync`. A server that is named is taken
as it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from .document import Result
from .duel import Size, Void
from .lab import Lab
from .measure import Order, Sample
from .server import running
from .trial import trials

CALLERS = 100
SERVERS = {
    "off": ("--appendonly", "no"),
    "everysec": ("--appendonly", "yes", "--appendfsync", "everysec"),
    "always": ("--appendonly", "yes", "--appendfsync", "always"),
}
"""By name of the setting; each is a server of its own."""
WAYS = {
    # variant: side, and by how much fewer jobs: where nothing waits for the disk, where it is a call's own, or a second
    "many": ("enqueue_many", 2, 20, 100),
    f"callers_{CALLERS}": ("enqueue_together", 8, 40, 250),
}


@contextmanager
def opened(url: str | None, binary: Path | None = None) -> Iterator[Mapping[str, Lab]]:
    """Give a lab for each server, of this binary: one alone, without a name, where its URL is given."""
    with ExitStack() as stack:
        if url is not None:
            yield {"": stack.enter_context(closing(Lab(url)))}
            return
        urls = {name: stack.enter_context(running(*settings, binary=binary)) for name, settings in SERVERS.items()}
        yield {name: stack.enter_context(closing(Lab(url))) for name, url in urls.items()}


def run(labs: Mapping[str, Lab], size: Size) -> Iterator[Result]:
    """Yield a result for each way, server and level."""
    variants: dict[str, Callable[[], Sample]] = {}
    for way, (side, freely, waiting, slowly) in WAYS.items():
        for name, lab in labs.items():
            for level in _levels(lab):
                # A server that is named may sync every second too.
                divisor = freely if level == "memory" else waiting if name == "always" else slowly
                variant = "_".join(part for part in (way, name, level) if part)
                jobs = max(1, size.jobs // divisor)
                variants[variant] = _once(lab, side, jobs, fsync=float(level == "fsync"))
    yield from trials("durability", variants, size.repeats)


def _levels(lab: Lab) -> Sequence[str]:
    """Return the levels that a server can give: before Redis 7.2 none can say when a job is on disk."""
    appends = int(lab.server.info("persistence").get("aof_enabled", 0))
    known: Any = lab.server.execute_command("COMMAND INFO", "WAITAOF")  # type: ignore[no-untyped-call]
    return ("memory", "fsync") if appends and known[0] else ("memory",)


def _once(lab: Lab, side: str, jobs: int, *, fsync: float) -> Callable[[], Sample]:
    def once() -> Sample:
        with lab.ordered(jobs, fsync=fsync, callers=CALLERS) as order:
            sample = lab.run(side, order)
            _check(lab, order, sample)
            return sample

    return once


def _check(lab: Lab, order: Order, sample: Sample) -> None:
    waiting = lab.waiting(order)
    if not waiting == sample.jobs == order.jobs:
        raise Void(f"{order.jobs} jobs were sent, {sample.jobs} arrived, {waiting} are there")
