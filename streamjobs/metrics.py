"""For programs that serve metrics themselves: what an app does in this process, as prometheus-client takes it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamjobs.app import StreamJobs
from streamjobs.worker.scrape import families, prometheus_client

if TYPE_CHECKING:
    from prometheus_client import Metric


class Metrics:
    """The metrics of an app's producers and workers in this process, a collector: `REGISTRY.register(Metrics(app))`.

    What costs each job is counted from now on, in producers at once, in workers that start later. A worker with
    a `metrics_port` needs none of this, and says nothing twice where it is there.
    """

    def __init__(self, app: StreamJobs) -> None:
        """Begin to count.

        Raises:
            MissingExtra: prometheus-client is not installed.
        """
        prometheus_client()
        self._meter = app.registry.meter
        self._meter.on = True

    def collect(self) -> "Iterator[Metric]":
        """Yield the metrics, as of now."""
        return families(self._meter)
