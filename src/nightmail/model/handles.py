"""What can be a handle: a name that people can tell apart, or a phone number.

    zoë/the 2nd            a name: as it is
    +49 171 123-45-67      a phone number: kept as +491711234567, however it was written

Both sides ask here, because an account's id follows from its handle: the same number must be the same text.
"""

from __future__ import annotations

import re
import unicodedata

ME = "me"
"""In a path: the account that asks."""

PLUS = "+"
PHONE = re.compile(r"\+[1-9][0-9]{6,14}")
"""E.164, and not shorter than any number that people have."""
BETWEEN = re.compile(r"[ \u00a0./()-]")
"""What people write between digits."""


def normal_handle(text: str) -> str:
    """A handle as it is kept. Raises ValueError, with one sentence, if it cannot be one."""
    if text.startswith(PLUS):
        return _phone(text)
    if unicodedata.normalize("NFC", text) != text or not text.isprintable() or text.strip() != text:
        raise ValueError("a handle is printable text in Unicode's composed form, without space around it")
    if text == ME:
        raise ValueError(f"{ME!r} means the account that asks, and cannot be a handle")
    return text


def spelled(text: str) -> str:
    """A handle as it is kept; what cannot be one stays as it is, and the server says why."""
    try:
        return normal_handle(text)
    except ValueError:
        return text


def _phone(text: str) -> str:
    if "(0)" in text:
        # Whether it is dialled depends on where one calls from: nobody but its owner knows what is meant.
        raise ValueError("a phone number after + has no (0) in it: leave it out")
    digits = BETWEEN.sub("", text)
    if not PHONE.fullmatch(digits):
        raise ValueError("only phone numbers begin with +: country and number, 7 to 15 digits")
    return digits
