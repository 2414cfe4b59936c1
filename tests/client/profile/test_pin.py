from __future__ import annotations

from pathlib import Path

import pytest

from nightmail.client.errors import Misused
from nightmail.client.profile.pin import pin_token
from nightmail.model.ids import account_id

ALICE = account_id("alice")


def test_a_token_is_what_the_protocol_says_it_is() -> None:
    """Another client, or a later version of this one, must make the same of the same PIN."""
    page = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
    assert f"`{pin_token(account_id('ada'), '2468').hex()}`" in page


def test_a_token_is_of_one_pin_and_one_account() -> None:
    assert len({pin_token(account, pin) for account in (ALICE, ALICE + 2) for pin in ("2468", "2469")}) == 4


def test_a_pin_is_the_same_however_a_keyboard_writes_it() -> None:
    assert pin_token(ALICE, " ２４６８ ") == pin_token(ALICE, "2468")


@pytest.mark.parametrize("bad", ["", "123", "    ", "1" * 65])
def test_a_pin_has_4_to_64_characters(bad: str) -> None:
    with pytest.raises(Misused, match="4 to 64 characters"):
        pin_token(ALICE, bad)
