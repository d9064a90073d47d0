"""Name the downstream class of an error: what an operator groups failures by.

The classes: timeout, connection, rate_limited, http_4xx, http_5xx, validation, bug, crash, other.
"""

from collections.abc import Callable

import msgspec

from streamjobs.core.errors import OutcomeUnknown, RateLimited, Unavailable

Rule = Callable[[BaseException], str | None]
"""Returns a class for the errors it knows and None for all others."""

_BUGS = (
    TypeError,
    AttributeError,
    NameError,
    LookupError,
    AssertionError,
    NotImplementedError,
    RecursionError,
)
_VALIDATION = (ValueError, msgspec.ValidationError, SyntaxError)


def classify(error: BaseException, rules: tuple[Rule, ...] = ()) -> str:
    """Return the class of `error`; the caller's own rules are asked first."""
    for rule in rules:
        if found := rule(error):
            return found
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return "timeout"
    if isinstance(error, RateLimited):
        return "rate_limited"
    if status := _http_status(error):
        return "rate_limited" if status == 429 else f"http_{status // 100}xx"
    if isinstance(error, ConnectionError | Unavailable | OutcomeUnknown) or "Connect" in type(error).__name__:
        return "connection"
    if isinstance(error, _VALIDATION) or "Validation" in type(error).__name__:
        return "validation"
    return "bug" if isinstance(error, _BUGS) else "other"


def _http_status(error: BaseException) -> int:
    """Return the HTTP status that the common client libraries hang on their errors, or 0."""
    response = getattr(error, "response", None)
    for holder in (response, error):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 400 <= value <= 599:
                return value
    return 0
