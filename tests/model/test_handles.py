from __future__ import annotations

import unicodedata
from importlib.metadata import version

import pytest

from nightmail.model.handles import normal_handle, spellings


@pytest.mark.parametrize("name", ["ada", "zoë.2nd", "ada_lovelace", "a+b", "007", "名前", "אבג", "l·l"])
def test_a_name_in_lower_case_stays_as_it_is(name: str) -> None:
    assert (normal_handle(name), spellings(name)) == (name, (name,))


@pytest.mark.parametrize(
    ("written", "kept"),
    [("Ada", "ada"), ("ＡＤＡ", "ada"), ("ZOE\u0308", "zoë"), ("ΣΑΣ", "σας"), ("STRASSE", "strasse"), ("ẞ", "ß")],
)
def test_a_name_is_one_text_however_it_was_written(written: str, kept: str) -> None:
    assert (normal_handle(written), normal_handle(kept)) == (kept, kept)


def test_a_typed_text_may_mean_a_handle_from_before_names_were_mapped() -> None:
    assert spellings("Ada") == ("Ada", "ada")
    assert spellings("Ada Lovelace") == ("Ada Lovelace",)
    assert spellings("+49 171 1234567") == ("+491711234567",)


def test_the_tables_by_which_names_are_mapped_are_the_known_ones() -> None:
    """Another version of Unicode must give every handle the same text: look at what it changed, then write it here."""
    assert unicodedata.unidata_version == "14.0.0"
    assert version("precis_i18n") == "1.1.2"


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
        (" +491711234567", "without spaces: U\\+0020"),
        (" ada", "without spaces: U\\+0020"),
        ("ada lovelace", "without spaces: U\\+0020"),
        ("a\u200bda", "U\\+200B cannot be in one"),
        ("\u3164", "U\\+3164 cannot be in one"),
        ("\u2800", "U\\+2800 cannot be in one"),
        ("ada\u202e", "U\\+202E cannot be in one"),
        ("ada\u2066", "U\\+2066 cannot be in one"),
        ("ada\x1b[2J", "U\\+001B cannot be in one"),
        ("ada\n", "U\\+000A cannot be in one"),
        ("ﬁne", "U\\+FB01 cannot be in one"),
        ("😀", "U\\+1F600 cannot be in one"),
        ("\ud800", "U\\+D800 cannot be in one"),
        ("אa", "from the left with letters"),
        ("a·b", "U\\+00B7 cannot be in one"),
        ("", "not empty"),
        ("zoë/the2nd", "has no / in it"),
        ("ａ／ｂ", "has no / in it"),
        ("a\\b", r"has no \\ in it"),
        (".", "begins with a letter or a digit"),
        ("..", "begins with a letter or a digit"),
        ("-rf", "begins with a letter or a digit"),
        ("\u0301a", "begins with a letter or a digit"),
        ("me", "the account that asks"),
        ("ME", "the account that asks"),
    ],
)
def test_what_cannot_be_told_apart_or_dialled_is_no_handle(bad: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        normal_handle(bad)
