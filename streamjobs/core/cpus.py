"""How many processes can run at the same time."""

import os
import sys


def cpus() -> int:
    """Return how many CPUs this process may run on, as far as the system tells; at least 1."""
    if sys.version_info >= (3, 13):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1
