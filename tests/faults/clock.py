"""How the server's clock went beside ours, by the ids that it gave: they begin with its time.

Delays, windows and rates are the server's. They can be compared with what we saw while its clock kept
pace with ours, more or less, as it does where somebody sets it right little by little. Where it was set
at once, or the machine stood still, leases end early or late: that is a fault like any other.
"""

from collections.abc import Iterable, Iterator

from tests.faults.history import Fault
from tests.faults.stories import Fate, id_ms

PACE = 0.01
"""By so much its clock may run faster or slower than ours."""
ROUNDED_S = 0.001


def jumps(fates: Iterable[Fate]) -> Iterator[Fault]:
    """Yield when it was set, as far as the answers of calls tell: between two of them."""
    told = [fate for fate in fates if fate.job and len(fate.answers) == 1 and fate.answers[0].job == fate.job]
    told.sort(key=lambda fate: fate.called.at)
    least, most, seen = -float("inf"), float("inf"), 0.0
    for fate in told:
        sent, answered, ms = fate.called.at, fate.answers[0].at, id_ms(fate.job) / 1000
        # By how much its clock is ahead of ours: it looked at it between the two.
        low, high = ms - answered, ms + ROUNDED_S - sent
        drift = PACE * max(0.0, answered - seen)
        least, most = max(least - drift, low), min(most + drift, high)
        if least > most:
            yield Fault(answered, seen, "clock")
            least, most = low, high
        seen = sent
