"""What a worker serves: queues by name or by pattern, with their weights."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from streamjobs.core import names
from streamjobs.core.errors import InvalidOption

MAX_WEIGHT = 1000


class Subscription(msgspec.Struct, frozen=True):
    """One queue, or all whose name fits a pattern (`*` any letters, `?` one).

    `weight`: its share of a worker's reads, while other queues have work too.
    """

    pattern: str
    weight: int = 1

    @classmethod
    def of(cls, text: str) -> "Subscription":
        """Read `QUEUE`, `PATTERN`, or either with its weight, as in `mail:10`.

        Raises:
            InvalidOption: it is none of these.
        """
        if not isinstance(text, str):
            raise InvalidOption(f"queue {text!r:.80}: expected its name")
        pattern, parted, weight = text.partition(":")
        names.check_name(pattern.translate(_LETTERS), f"queue {pattern!r:.80}, read as")
        if not parted:
            return cls(pattern)
        if not (weight.isascii() and weight.isdigit() and 1 <= int(weight) <= MAX_WEIGHT):
            raise InvalidOption(f"queue {text!r:.80}: its weight must be a whole number from 1 to {MAX_WEIGHT}")
        return cls(pattern, int(weight))

    @property
    def open(self) -> bool:
        """Whether it is a pattern: new queues may come to fit it."""
        return "*" in self.pattern or "?" in self.pattern

    def fits(self, queue: str) -> bool:
        """Say whether it means this queue."""
        return fnmatchcase(queue, self.pattern)


_LETTERS = str.maketrans("*?", "aa")


def subscriptions(texts: Iterable[str]) -> list[Subscription]:
    """Read several; each queue or pattern once, as it is given first.

    Raises:
        InvalidOption: one cannot be read.
    """
    if isinstance(texts, str):
        raise InvalidOption(f"queues={texts!r:.80}: expected a list of names")
    found: dict[str, Subscription] = {}
    for one in map(Subscription.of, texts):
        found.setdefault(one.pattern, one)
    return list(found.values())


def weight_of(queue: str, among: Iterable[Subscription]) -> int:
    """Return the weight that a queue has by the first of these that means it; 0 if none does."""
    return next((one.weight for one in among if one.fits(queue)), 0)
