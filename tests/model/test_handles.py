from __future__ import annotations

import pytest

from nightmail.model.handles import normal_handle


@pytest.mark.parametrize("name", ["ada", "zoë/the 2nd", "Ada Lovelace", "a+b", "007", "名前"])
def test_a_name_stays_as_it_is(name: str) -> None:
    assert normal_handle(name) == name


@pytest.mark.parametrize(
    "written",
    [
        "+491711234567",
        "+49 171 1234567",
        "+49 (171) 123-45-67",
        "+49.171.1234567",
        "+49/171/1234567",
        "+49\u00a01711234567",
    ],
)
def test_a_phone_number_is_one_text_however_it_was_written(written: str) -> None:
    assert normal_handle(written) == "+491711234567"
    assert normal_handle(normal_handle(written)) == "+491711234567"


@pytest.mark.parametrize("good", ["+1234567", "+123456789012345"])
def test_a_phone_number_has_7_to_15_digits(good: str) -> None:
    assert normal_handle(good) == good


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("+49 (0) 171 1234567", r"has no \(0\) in it"),
        ("+49(0)1711234567", r"has no \(0\) in it"),
        ("+ada", "only phone numbers begin with +"),
        ("+", "only phone numbers begin with +"),
        ("+0491711234567", "only phone numbers begin with +"),
        ("+123456", "only phone numbers begin with +"),
        ("+1234567890123456", "only phone numbers begin with +"),
        ("++491711234567", "only phone numbers begin with +"),
        ("+49171\u0661234567", "only phone numbers begin with +"),
        ("+491711234567\n", "only phone numbers begin with +"),
        (" +491711234567", "without space around it"),
        (" ada", "without space around it"),
        ("a\u200bda", "printable"),
        ("e\u0301ve", "composed form"),
        ("me", "the account that asks"),
    ],
)
def test_what_cannot_be_told_apart_or_dialled_is_no_handle(bad: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        normal_handle(bad)
