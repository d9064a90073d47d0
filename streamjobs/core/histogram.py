"""Histograms of whole numbers in buckets that are an eighth of an octave wide. Pure.

Numbers below 16 have a bucket each; from there on eight buckets divide the way to each doubling. So the
middle of a bucket is off by at most 6.25 % (1/16) from anything in it. docs/protocol.md has the edges.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

SUB_BITS = 3
"""Three bits behind the first one tell the eight buckets of an octave apart."""


def bucket(value: int) -> int:
    """Return the bucket of a number, 0 or more; negative ones are in that of 0."""
    if value < 1 << SUB_BITS:
        return max(value, 0)
    shift = value.bit_length() - 1 - SUB_BITS
    return (shift << SUB_BITS) + (value >> shift)


def edges(index: int) -> tuple[int, int]:
    """Return the least number of a bucket, and the least beyond it."""
    if index < 1 << SUB_BITS:
        return index, index + 1
    shift = (index >> SUB_BITS) - 1
    low = index - (shift << SUB_BITS) << shift
    return low, low + (1 << shift)


def middle(index: int) -> float:
    """Return the number that stands for all of a bucket."""
    low, high = edges(index)
    return (low + high - 1) / 2


def folded(values: Iterable[int]) -> dict[int, int]:
    """Return how many of these are in each bucket."""
    found: dict[int, int] = {}
    # Of a full batch most are alike, and to count those is quicker than to find a bucket for each.
    for value, count in Counter(values).items():
        index = bucket(value)
        found[index] = found.get(index, 0) + count
    return found


def percentile(counts: Mapping[int, float], share: float) -> float | None:
    """Return the number that this share (0 to 1) of all do not exceed, off by at most 6.25 %; None for no numbers.

    Args:
        counts: how many are in each bucket; fractions are taken as they are.
        share: 0.5 for the median.
    """
    left = share * sum(counts.values())
    found = None
    for index in sorted(counts):
        if counts[index] > 0:
            found, left = middle(index), left - counts[index]
            # Sums of fractions are not exact: what is off by that must not go into the next bucket.
            if left <= 1e-9:
                break
    return found
