"""Retry policies: immutable values that say how often and after how long."""

from typing import Literal, TypeAlias

import msgspec

from streamjobs.core.errors import InvalidOption

MIN_MAX_CRASHES = 3


class Exponential(msgspec.Struct, frozen=True):
    """min(cap, base * 2**n) seconds after the n-th failure, drawn by `jitter`.

    "equal" draws evenly from the upper half, "full" from zero to the whole, "none" takes the whole.
    """

    base: float = 1.0
    cap: float = 64.0
    jitter: Literal["equal", "full", "none"] = "equal"

    def __post_init__(self) -> None:
        if self.jitter not in ("equal", "full", "none"):
            raise InvalidOption(f"jitter={self.jitter!r:.80}: use 'equal', 'full' or 'none'")
        if not 0 < self.base <= self.cap <= 30 * 86_400:
            raise InvalidOption(f"backoff base={self.base} cap={self.cap}: need 0 < base <= cap <= 30 days")

    def delay_ms(self, failures: int, draw: float) -> int:
        """Return the delay after this many failures (1 or more); `draw` is evenly from [0, 1)."""
        # 2**n overflows a float beyond n = 1023, and any cap is reached long before.
        whole = min(self.cap, self.base * 2.0 ** min(failures, 64)) * 1000
        floor = {"equal": 0.5, "full": 0.0, "none": 1.0}[self.jitter]
        return round(whole * (floor + (1 - floor) * draw))


class Fixed(msgspec.Struct, frozen=True):
    """The same number of seconds after every failure."""

    seconds: float

    def __post_init__(self) -> None:
        if not 0 <= self.seconds <= 30 * 86_400:
            raise InvalidOption(f"backoff of {self.seconds} s: use 0 s to 30 days")

    def delay_ms(self, failures: int, draw: float) -> int:
        """Return the delay; neither argument changes it."""
        return round(self.seconds * 1000)


Backoff: TypeAlias = Exponential | Fixed


class Retry(msgspec.Struct, frozen=True):
    """How a kind's failures are taken.

    A job that only fails starts exactly `max_attempts` times and is then dead (`exhausted`). A job
    whose starts end in the death of their process is dead (`crash_limit`) after `max_crashes` of
    them; fewer than 3 are refused, since the first two may be a neighbour's fault. (Those of `process=True`
    handlers, which have no neighbours, are counted apart, up to the same number.) An exception of
    a type in `permanent` makes the job dead at once.
    """

    max_attempts: int = 8
    backoff: Backoff = Exponential()
    permanent: tuple[type[BaseException], ...] = ()
    max_crashes: int = MIN_MAX_CRASHES

    def __post_init__(self) -> None:
        if not 1 <= self.max_attempts <= 1000:
            raise InvalidOption(f"max_attempts={self.max_attempts}: use 1 to 1000")
        if not MIN_MAX_CRASHES <= self.max_crashes <= 1000:
            raise InvalidOption(f"max_crashes={self.max_crashes}: use {MIN_MAX_CRASHES} to 1000")
        for item in self.permanent:
            if not (isinstance(item, type) and issubclass(item, BaseException)):
                raise InvalidOption(f"permanent={item!r:.80}: expected exception types")


RECONNECT = Exponential(base=0.025, cap=2.0)
"""Between failed tries to reach the server: 50 ms, doubling up to 2 s, the upper half drawn."""
