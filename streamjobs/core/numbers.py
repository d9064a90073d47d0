"""Numbers that somebody else may have written: what is none must not hide all that stands beside it."""

import math

FAR_MS = 10**15
"""Later than every instant that has a name: in place of one that has none."""


def whole(text: str | bytes, instead: int = 0) -> int:
    """Return a whole number; `instead` for what is none, or has more than 18 digits."""
    digits = text.removeprefix("-") if isinstance(text, str) else text.removeprefix(b"-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else instead


def milliseconds(score: str | bytes) -> int:
    """Return a score as milliseconds; what is beyond every instant is moved to the nearest one."""
    value = float(score)
    return 0 if math.isnan(value) else int(min(max(value, -FAR_MS), FAR_MS))
