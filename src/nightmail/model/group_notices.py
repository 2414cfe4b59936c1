"""Notices: what happened to a group, filed for its members like a message that nobody wrote.

A notice is what the server says: it proves nothing. A client believes a change only by its signature.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec
from msgspec import Struct


class NoticeKind(IntEnum):
    CHANGED = 1
    """The chain has grown by `blob`."""
    JOINED = 2
    """The account has joined. Told to it, and to the account that added it."""
    REFUSED = 3
    """The account did not join."""
    SUSPENDED = 4
    """The account was registered again: it is no member before an admin adds it under its new key."""
    CLOSED = 5
    """The account ended."""


class GroupNotice(Struct, frozen=True, array_like=True, gc=False):
    """The content of an entry that has no author."""

    kind: NoticeKind
    account: int
    """Whom it is about; of a change: who made it."""
    index: int
    """Of the newest change of the chain."""
    since: int = 0
    """Of a join: the first number that the account is addressed with."""
    blob: bytes = b""


encode_notice = msgspec.msgpack.Encoder().encode
decode_notice = msgspec.msgpack.Decoder(GroupNotice).decode
