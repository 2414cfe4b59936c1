"""What devices say to each other behind the person's back: which control messages there are, and their data.

Knows:   the forms, as docs/e2ee.md has them. Numbers are never used again for another.
"""

from __future__ import annotations

from enum import IntEnum

from nightmail.e2ee.content import Content, encode_content
from nightmail.model.words import Kind


class Control(IntEnum):
    PROVISION = 1
    """To a new device of the own account: whose it is (`e2ee/provision.py`)."""


def control(number: Control, data: bytes) -> bytes:
    """As it is sealed."""
    return encode_content(Content(Kind.CONTROL, data=data, control=number))
