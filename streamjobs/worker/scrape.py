"""The counts of an app as metrics of prometheus-client, which is imported only where somebody asks for them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from streamjobs.core.errors import MissingExtra
from streamjobs.core.exposition import TYPE
from streamjobs.core.meter import EDGES_S, Labels, Meter, Times
from streamjobs.worker.site import Page, Render

if TYPE_CHECKING:
    from prometheus_client import Metric

_EDGES = [*(f"{edge:g}" for edge in EDGES_S), "+Inf"]
_JOB = ("queue", "kind")


def families(meter: Meter) -> "Iterator[Metric]":
    """Yield the metrics of an app, as of now."""
    rows, shifts = list(meter.rows.items()), list(meter.shifts)
    finished = {(*labels, outcome): n for labels, row in rows for outcome, n in list(row.outcomes.items())}
    running = Counter(meter.labels(*job) for shift in shifts for job in shift.running())
    errors = {(cause,): n for cause, n in meter.errors.items()}
    lag_s = max((one.loop_lag_s for one in shifts), default=0.0)
    yield _counter("jobs_enqueued", "What came of enqueues.", meter.enqueued, *_JOB, "outcome")
    yield _counter("jobs_finished", "How claims ended here.", finished, *_JOB, "outcome")
    yield _histogram("job_duration_seconds", "How long handlers ran.", {labels: row.runs for labels, row in rows})
    yield _histogram(
        "job_wait_seconds", "How long jobs were ready before they ran.", {key: row.waits for key, row in rows}
    )
    yield _gauge("jobs_running", "Jobs whose handlers run now.", running, *_JOB)
    yield _gauge("worker_slots", "Jobs that can run here at once.", {(): sum(one.slots for one in shifts)})
    yield _counter("jobs_reclaimed", "Claims taken over from workers that had fallen silent.", {(): meter.reclaimed})
    yield _counter("leases_lost", "Claims that ended elsewhere before they were settled here.", {(): meter.leases_lost})
    yield _counter("redis_errors", "Requests that failed and were made again.", errors, "class")
    yield _gauge("event_loop_lag_seconds", "How late the loop came at worst, of late: within 30 to 60 s.", {(): lag_s})


def metrics_pages(meter: Meter) -> dict[str, Render]:
    """Return `/metrics`: those of the app, and whatever else this process has in prometheus-client's own registry.

    Raises:
        MissingExtra: prometheus-client is not installed.
    """
    client = prometheus_client()
    meter.on = True

    class Everything:
        """A registry, as far as its text needs one."""

        def collect(self) -> "Iterator[Metric]":
            names = set()
            for family in client.REGISTRY.collect():
                names.add(family.name)
                yield family
            # What was registered there for this app is not said twice.
            yield from (family for family in families(meter) if family.name not in names)

    async def metrics() -> Page:
        return Page(client.generate_latest(Everything()), type=TYPE)

    return {"/metrics": metrics}


def prometheus_client() -> Any:
    """Import prometheus-client.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import prometheus_client as client
    except ImportError as error:
        raise MissingExtra("metrics need prometheus-client: pip install 'streamjobs[prometheus]'") from error
    return client


def _counter(name: str, help: str, counts: Mapping[Any, int], *labels: str) -> "Metric":
    from prometheus_client.core import CounterMetricFamily

    return _filled(CounterMetricFamily(f"streamjobs_{name}", help, labels=labels), counts)


def _gauge(name: str, help: str, values: Mapping[Any, float], *labels: str) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    return _filled(GaugeMetricFamily(f"streamjobs_{name}", help, labels=labels), values)


def _filled(family: Any, values: Mapping[Any, float]) -> "Metric":
    for labels, value in values.items():
        family.add_metric(labels, value)
    metric: Metric = family
    return metric


def _histogram(name: str, help: str, times: Mapping[Labels, Times]) -> "Metric":
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(f"streamjobs_{name}", help, labels=_JOB)
    for labels, one in times.items():
        buckets: Sequence[tuple[str, float]] = list(zip(_EDGES, accumulate(one.counts), strict=True))
        if buckets[-1][1]:
            family.add_metric(labels, buckets, one.sum_s)
    return family
