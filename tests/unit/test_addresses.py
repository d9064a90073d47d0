"""Where a process listens: read once, when options are made."""

from typing import Any

import pytest

from streamjobs.core.addresses import Address, parse_address
from streamjobs.core.errors import InvalidOption


@pytest.mark.parametrize(
    ("value", "address"),
    [
        (8080, Address("127.0.0.1", 8080)),
        ("8080", Address("127.0.0.1", 8080)),
        ("0", Address("127.0.0.1", 0)),
        (":8080", Address("", 8080)),
        ("0.0.0.0:8080", Address("0.0.0.0", 8080)),
        ("localhost:1", Address("localhost", 1)),
        ("[::1]:65535", Address("::1", 65535)),
        ("fd://3", Address(descriptor=3)),
    ],
)
def test_forms(value: int | str, address: Address) -> None:
    assert parse_address(value, "port") == address


@pytest.mark.parametrize(
    "value",
    ["", "x", "80 80", "8080\n", "-1", "65536", "::1:80", "http://x:80", "a_b:80", "fd://x", True, None, 1.5, b"1"],
)
def test_what_is_no_address_is_refused_by_its_name(value: Any) -> None:
    with pytest.raises(InvalidOption, match=r"health_port=.*: use PORT"):
        parse_address(value, "health_port")
