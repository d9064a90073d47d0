"""What a worker serves, as users write it."""

import pytest

from streamjobs.core.errors import InvalidOption
from streamjobs.core.subscription import Subscription, subscriptions


@pytest.mark.parametrize(
    ("text", "pattern", "weight", "open_"),
    [
        ("mail", "mail", 1, False),
        ("mail:10", "mail", 10, False),
        ("mail*", "mail*", 1, True),
        ("m?il*:3", "m?il*", 3, True),
    ],
)
def test_names_patterns_and_weights(text: str, pattern: str, weight: int, open_: bool) -> None:
    found = Subscription.of(text)

    assert (found.pattern, found.weight, found.open) == (pattern, weight, open_)


@pytest.mark.parametrize(
    "text", ["", "a b", "{mail}", "mail:", "mail:0", "mail:1001", "mail:x", "mail:-1", "[ab]*", "x" * 65]
)
def test_what_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(InvalidOption, match="queue"):
        Subscription.of(text)


def test_patterns_fit_whole_names() -> None:
    pattern = Subscription.of("mail*")

    assert [name for name in ("mail", "mail-eu", "email", "Mail") if pattern.fits(name)] == ["mail", "mail-eu"]


def test_each_queue_once_as_it_is_given_first() -> None:
    assert subscriptions(["a:2", "b", "a"]) == [Subscription("a", 2), Subscription("b")]
    with pytest.raises(InvalidOption, match="expected a list"):
        subscriptions("mail")
