"""What is measured: one timed piece of work, and the spread of several.

A `Sample` is one repeat of one side. Time is `perf_counter`, the client's cost is the CPU time of
its whole process (all threads), the server's is the growth of `used_cpu_*` in its INFO.
"""

import time
from collections.abc import Iterable, Mapping
from statistics import median

import msgspec
import redis

TAILS = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


class Order(msgspec.Struct, frozen=True):
    """What one measured process is asked to do: `jobs` jobs in `namespace` on the server at `url`."""

    url: str
    namespace: str
    jobs: int
    how: dict[str, float] = {}
    """What else the side takes, by name."""


class Sample(msgspec.Struct, frozen=True):
    """One repeat of one side: jobs done, seconds on the clock, CPU seconds of client and server."""

    jobs: int
    seconds: float
    client_s: float
    server_s: float
    figures: dict[str, float] = {}
    """What else the side has found, by name."""

    @property
    def jobs_per_s(self) -> float:
        """Jobs per second on the clock."""
        return self.jobs / self.seconds

    @property
    def client_us(self) -> float:
        """Client CPU per job, in microseconds."""
        return self.client_s / self.jobs * 1e6

    @property
    def server_us(self) -> float:
        """Server CPU per job, in microseconds."""
        return self.server_s / self.jobs * 1e6


class Spread(msgspec.Struct, frozen=True):
    """The median of some repeats, with the least and the greatest."""

    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Iterable[float], digits: int) -> "Spread":
        """Return the spread of `values` (at least one), rounded to `digits` decimals."""
        found = sorted(values)
        return cls(*(round(value, digits) for value in (median(found), found[0], found[-1])))


def lateness(found: Iterable[float], what: str, tails: Mapping[str, float] = TAILS) -> dict[str, float]:
    """Return figures of these times (at least one, in seconds): in ms, some quantiles and the greatest."""
    ordered = sorted(found)
    figures = {
        f"ms {what}, {name}": 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * part))]
        for name, part in tails.items()
    }
    return {**figures, f"ms {what}, max": 1000 * ordered[-1]}


class Meter:
    """Measure one piece of work in this process: `start()`, the work, `stop(jobs)`."""

    def __init__(self, url: str) -> None:
        self._server = redis.Redis.from_url(url, protocol=2)

    def start(self) -> None:
        """Begin; what happens from here on is measured."""
        self._server_s = self._server_cpu()
        self._client_s = time.process_time()
        self._at = time.perf_counter()

    def stop(self, jobs: int) -> Sample:
        """End, and return what was measured, as the cost of `jobs` jobs."""
        seconds = time.perf_counter() - self._at
        client_s = time.process_time() - self._client_s
        server_s = self._server_cpu() - self._server_s
        self._server.close()
        return Sample(jobs, seconds, client_s, server_s)

    def _server_cpu(self) -> float:
        cpu = self._server.info("cpu")
        return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])
