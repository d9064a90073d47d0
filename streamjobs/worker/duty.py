"""What a worker is for: one process that does all, or one of a group."""

from enum import Enum


class Duty(Enum):
    """Which claims a worker starts."""

    ALL = "all"
    """A process of its own: suspects too, alone, while everything else waits."""
    ORDINARY = "ordinary"
    """All but suspects: another process of the group runs those."""
    SUSPECTS = "suspects"
    """Nothing else."""
