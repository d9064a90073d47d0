"""Numbers, sizes, spans of time, errors and ends of processes as people read them. Pure."""

from signal import Signals


def count(number: int) -> str:
    """Return a number as people read it: 12,418."""
    return f"{number:,}"


def short(number: int) -> str:
    """Return a number that takes little room: exact below 100,000, then 124k, 1.2M, 35M, 2.1G."""
    if number < 100_000:
        return count(number)
    amount, power = number / 1000, 0
    while amount >= 999.5 and power < 2:
        amount, power = amount / 1000, power + 1
    return f"{amount:.0f}{'kMG'[power]}" if not power or amount >= 9.95 else f"{amount:.1f}{'kMG'[power]}"


def plural(number: int, noun: str) -> str:
    """Return `1 job`, `12,418 jobs`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def how_ended(code: int) -> str:
    """Return how a process ended: by its exit code, or minus the signal that killed it."""
    return f"was killed by {Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def error_text(error: BaseException) -> str:
    """Return type and text of an error, even where its own text fails: it must not take anybody along."""
    try:
        return valid(f"{type(error).__name__}: {error}")
    except BaseException:  # such as the SystemExit of a class that nobody expects
        return type(error).__name__


def valid(text: str) -> str:
    """Return a text that any log and any encoder takes: a lone surrogate becomes its escape."""
    return text.encode("utf-8", "backslashreplace").decode()


def size(count_bytes: int) -> str:
    """Return a size as people read it: 512B, 1.9M, 4.0G."""
    amount, power = float(count_bytes), 0
    while amount >= 1024 and power < 4:
        amount, power = amount / 1024, power + 1
    return f"{amount:.0f}{'BKMGT'[power]}" if not power or amount >= 100 else f"{amount:.1f}{'BKMGT'[power]}"


def ago(ms: int) -> str:
    """Return how long ago something was: 0s ago, 4s ago, 3h05m ago."""
    return f"{age(max(0, ms) // 1000 * 1000).replace('.0', '')} ago"


def age(ms: int) -> str:
    """Return a time span as people read it: 0s, 4.2s, 18m02s, 3h05m, 12d04h."""
    total = max(0, ms) // 1000
    minutes, hours, days = total // 60, total // 3600, total // 86_400
    if total < 60:
        return f"{max(0, ms) / 1000:.1f}s" if 0 < ms < 10_000 else f"{total}s"
    if minutes < 60:
        return f"{minutes}m{total % 60:02}s"
    if hours < 24:
        return f"{hours}h{minutes % 60:02}m"
    return f"{days}d{hours % 24:02}h"


def brief(ms: int) -> str:
    """Return a time span without its noughts: 5m, 1h, 18m02s."""
    text = age(ms).replace(".0s", "s")
    for noughts in ("00s", "00m", "00h"):
        text = text.removesuffix(noughts)
    return text


def span(ms: float) -> str:
    """Return a short time as people read it: 450us, 1.2ms, 80ms, then as `age`."""
    if ms < 0.9995:
        return f"{ms * 1000:.0f}us"
    if ms < 999.5:
        return f"{ms:.1f}ms" if ms < 9.95 else f"{ms:.0f}ms"
    return age(round(ms))


def rate(per_second: float) -> str:
    """Return how many in a second, in five characters at most: 0, 0.3, 14, 1,930, 12k."""
    if per_second < 9.95:
        # What is less than one in 20 s is not nothing.
        return "0" if not per_second else "<0.1" if per_second < 0.05 else f"{per_second:.1f}".removesuffix(".0")
    number = round(per_second)
    return short(number) if number < 10_000 or number >= 100_000 else f"{number / 1000:.0f}k"
