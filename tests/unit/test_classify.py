"""The downstream class of an error."""

import msgspec
import pytest

from streamjobs.core.classify import classify
from streamjobs.core.errors import OutcomeUnknown, RateLimited, Unavailable


class Response:
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


class HTTPError(Exception):
    """As the common HTTP libraries have it: the status on the response, or on the error itself."""

    def __init__(self, response: Response | None = None, **attributes: object) -> None:
        super().__init__("http")
        self.response = response
        self.__dict__.update(attributes)


class ReadTimeout(Exception):
    """Not a TimeoutError, but named like one."""


class ConnectError(Exception):
    """As httpx has it."""


class ValidationError(Exception):
    """As pydantic has it."""


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (TimeoutError(), "timeout"),
        (ReadTimeout(), "timeout"),
        (ConnectionRefusedError(), "connection"),
        (BrokenPipeError(), "connection"),
        (ConnectError(), "connection"),
        (Unavailable(""), "connection"),
        (OutcomeUnknown(""), "connection"),
        (RateLimited(), "rate_limited"),
        (HTTPError(Response(429)), "rate_limited"),
        (HTTPError(Response(404)), "http_4xx"),
        (HTTPError(Response(503)), "http_5xx"),
        (HTTPError(status=500), "http_5xx"),
        (HTTPError(code=410), "http_4xx"),
        (HTTPError(Response(200)), "other"),
        (HTTPError(code="404"), "other"),
        (ValueError(), "validation"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), "validation"),
        (SyntaxError(), "validation"),
        (msgspec.ValidationError(), "validation"),
        (ValidationError(), "validation"),
        (TypeError(), "bug"),
        (KeyError(), "bug"),
        (AssertionError(), "bug"),
        (RecursionError(), "bug"),
        (OSError(28, "No space left"), "other"),
        (Exception(), "other"),
        (KeyboardInterrupt(), "other"),
    ],
)
def test_an_error_has_its_class(error: BaseException, name: str) -> None:
    assert classify(error) == name


def test_the_callers_own_rules_are_asked_first_and_in_order() -> None:
    rules = (lambda error: None, lambda error: "quota" if "quota" in str(error) else None, lambda error: "late")

    assert classify(ValueError("over quota"), rules) == "quota"
    assert classify(ValueError("no"), rules) == "late"
    assert classify(ValueError("no"), rules[:2]) == "validation"
