"""What somebody may be to a namespace. Its rights are in core/rights.py."""

from enum import StrEnum


class Role(StrEnum):
    """What somebody does with a namespace."""

    PRODUCER = "producer"
    """Enqueues."""
    WORKER = "worker"
    """Runs jobs, whose handlers may enqueue others and wait for them."""
    OPERATOR = "operator"
    """Looks at everything, and changes it."""
    MONITOR = "monitor"
    """Counts."""
