"""What can be a handle: a name that people can tell apart, or a phone number.

    Zoë.2nd                a name: kept as zoë.2nd, by the profile UsernameCaseMapped of RFC 8265 (PRECIS)
    +49 171 123-45-67      a phone number: kept as +491711234567, however it was written

Both sides ask here, because an account's id follows from its handle: the same handle must be the same text.

A handle that was registered before names were mapped keeps its text, whatever the rules say today. So what a person
types may mean two handles (`spellings`): the text itself, which only such an account can have, or the mapped one.
"""

from __future__ import annotations

import re

from precis_i18n import get_profile

ME = "me"
"""In a path: the account that asks."""

PLUS = "+"
PHONE = re.compile(r"\+[1-9][0-9]{6,14}")
"""E.164, and not shorter than any number that people have."""
BETWEEN = re.compile(r"[ \u00a0./()-]")
"""What people write between digits."""
IN_PATHS = re.compile(r"[/\\]")

_USERNAME = get_profile("UsernameCaseMapped")


def normal_handle(text: str) -> str:
    """A handle as it is kept. Raises ValueError, with one sentence, if it cannot be one."""
    return _phone(text) if text.startswith(PLUS) else _name(text)


def spelled(text: str) -> str:
    """A handle as it is kept; what cannot be one stays as it is, and the server says why."""
    try:
        return normal_handle(text)
    except ValueError:
        return text


def spellings(text: str) -> tuple[str, ...]:
    """The handles that a typed text may mean, the likelier one last: see above."""
    kept = spelled(text)
    # However a number is written, no other text was ever kept for it.
    return (kept,) if kept == text or kept.startswith(PLUS) else (text, kept)


def _name(text: str) -> str:
    if not text:
        raise ValueError("a handle is not empty")
    try:
        name = _USERNAME.enforce(text)
    except UnicodeEncodeError as error:
        raise ValueError(_why_not(text, error)) from None
    if found := IN_PATHS.search(name):
        raise ValueError(f"a name has no {found[0]} in it")
    if not name[0].isalnum():
        raise ValueError("a name begins with a letter or a digit")
    if name == ME:
        raise ValueError(f"{ME!r} means the account that asks, and cannot be a handle")
    return name


def _why_not(text: str, error: UnicodeEncodeError) -> str:
    if error.reason.endswith("/bidi_rule"):
        return "a name does not mix letters that are written from the left with letters that are written from the right"
    where = f"U+{ord(text[error.start]):04X}" if error.start < len(text) else "a character of it"
    return f"a name has letters, digits and simple punctuation, without spaces: {where} cannot be in one"


def _phone(text: str) -> str:
    if "(0)" in text:
        # Whether it is dialled depends on where one calls from: nobody but its owner knows what is meant.
        raise ValueError("a phone number after + has no (0) in it: leave it out")
    digits = BETWEEN.sub("", text)
    if not PHONE.fullmatch(digits):
        raise ValueError("only phone numbers begin with +: country and number, 7 to 15 digits")
    return digits
