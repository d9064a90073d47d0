"""How counts are said in messages."""


def plural(number: int, noun: str) -> str:
    """Return `1 job`, `12,418 jobs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
