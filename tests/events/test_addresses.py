from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeline.events.addresses import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("@152", Address(152)),
        ("cards@152", Address(152, "cards")),
        ("me@home@152", Address(152, "me@home")),
        ("@me@152", Address(152, "@me")),
        ("two\nlines@7", Address(7, "two\nlines")),
        ("@0", Address(0)),
    ],
)
def test_an_address_is_read(text: str, address: Address) -> None:
    """The last @ parts a conversation's id from the version."""
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    ["", "@", "152", "@-1", "@1.5", "@ 152", "@152 ", "@١٥٢", "@1_0", "cards@", "cards@v1", "@9999999999999999999"],
)
def test_any_other_text_is_no_address(text: str) -> None:
    """Paths, bare numbers and numbers that no log reaches."""
    assert parse_address(text) is None


@given(st.integers(0, 10**18 - 1), st.text())
def test_what_is_printed_is_read_back(version: int, conversation: str) -> None:
    """Whatever the conversation's id holds."""
    address = Address(version, conversation)
    assert parse_address(str(address)) == address
    assert str(address.bare) == f"@{version}"
