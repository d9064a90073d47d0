"""What monitors are told of a worker; what it did is counted only where somebody has asked."""

from collections import Counter
from collections.abc import Callable, Iterator

from streamjobs.core.meter import Labels, Meter
from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.run import Runner
from streamjobs.worker.settle import Settler
from streamjobs.worker.station import Station
from streamjobs.worker.times import Ended


def counting(meter: Meter) -> Callable[[Ended], None]:
    """Return what counts the batches of a settler: outcomes, and the times of what ran."""

    def count(batch: Ended) -> None:
        if not batch.count:
            return
        row = meter.row(batch.keys.queue, batch.kind)
        row.outcomes[batch.outcome] += batch.count
        row.runs.add([us / 1_000_000 for us in batch.run_us])
        row.waits.add([max(0, ms) / 1000 for ms in batch.wait_ms])

    return count


class AtWork:
    """One worker at work: the counts that its parts keep anyhow, and what it does now."""

    def __init__(self, station: Station, settler: Settler, runner: Runner, fetcher: Fetcher) -> None:
        self._station = station
        self._settler = settler
        self._runner = runner
        self._fetcher = fetcher

    @property
    def reclaimed(self) -> int:
        return self._fetcher.reclaimed

    @property
    def leases_lost(self) -> int:
        return self._settler.lost + self._runner.dropped

    @property
    def errors(self) -> Counter[str]:
        return self._station.complaints.errors

    @property
    def slots(self) -> int:
        return self._station.options.concurrency

    @property
    def loop_lag_s(self) -> float:
        return self._station.pulse.lag_s

    def running(self) -> Iterator[Labels]:
        """Yield queue and kind of each job whose handler runs."""
        for queue in self._station.queues:
            for execution in list(queue.held.values()):
                if execution.runs:
                    yield queue.keys.queue, execution.kind
