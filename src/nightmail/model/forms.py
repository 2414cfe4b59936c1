"""Is it well formed? Asked of everything a peer says, before it costs anything.

Knows:   the limits of form, and the checks that several records share; each record's own are in its class.

The fold takes these answers for granted: what is in the log has passed here. Rights are another
question, and so is whether it fits what went before.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from .ids import ACCOUNT_BITS, CLAIM_BITS, DEVICE_BITS, MESSAGE_ID_CHARS, MessageId
from .limits import FoldLimits, FormLimits
from .refusals import Malformed

ACCOUNT_MAX = (1 << ACCOUNT_BITS) - 1
DEVICE_MAX = (1 << ACCOUNT_BITS + DEVICE_BITS) - 1
CLAIM_MAX = (1 << CLAIM_BITS) - 1
NUMBER_BITS = 53
NUMBER_MAX = (1 << NUMBER_BITS) - 1
"""Numbers, sequences and stamps: what every language can count to."""
TAG_BYTES = 16
TOKEN_BYTES = 32
PIN_SALT_BYTES = 16
PIN_BYTES = 32

IDENTITY_BYTES = 128
SIGNED_BYTES = 100
ONE_TIME_BYTES = 36
KEM_BYTES = 1_637
"""Keys as devices publish them (docs/e2ee.md): their bytes are opaque here, except for flag and id."""
ONE_TIME_KEM, LAST_RESORT = 0, 1
"""The flag in front of a KEM key."""

Complaint: TypeAlias = str | None


class Formed(Protocol):
    """Something that a peer says, and that knows its own form."""

    def form(self, by: int, limits: Form) -> Complaint: ...


class Form:
    """The limits that a record's form is checked against."""

    def __init__(self, form: FormLimits | None = None, fold: FoldLimits | None = None) -> None:
        form, fold = form or FormLimits(), fold or FoldLimits()
        self.window = fold.ring_acks
        """Messages of one stream and lane that may wait for their answer."""
        self.stock_one_time, self.stock_kem = fold.stock_one_time, fold.stock_kem
        self.body_bytes, self.envelopes = form.body_bytes, form.envelopes
        self.lifetime_ms, self.lifetime_ms_min = form.lifetime_ms, form.lifetime_ms_min
        self.spans, self.authors, self.unreadable = form.spans, form.authors, form.unreadable
        self.call_bytes, self.url_chars = form.call_bytes, form.url_chars
        self.push_token_chars = form.push_token_chars
        self.handle_chars, self.label_chars, self.list_bytes = form.handle_chars, form.label_chars, form.list_bytes

    def check(self, by: int, body: Formed) -> Malformed | None:
        """What is wrong with something that device `by` says; None if nothing is."""
        complaint = body.form(by, self)
        return Malformed(complaint) if complaint else None


def out_of(number: int, low: int, high: int, name: str) -> Complaint:
    return None if low <= number <= high else f"{name} is not between {low} and {high}"


def not_long(key: bytes, size: int, name: str) -> Complaint:
    return None if len(key) == size else f"{name} is not {size} bytes"


def too_long_a_label(label: str, limits: Form) -> Complaint:
    most = limits.label_chars
    return f"a label has at most {most} characters" if len(label) > most else None


def wrong_id(by: int, text: str) -> Complaint:
    """A message id begins with the device that made it, in its one spelling: nobody can use up another's ids."""
    if len(text) > MESSAGE_ID_CHARS:
        return f"an id has at most {MESSAGE_ID_CHARS} characters"
    try:
        MessageId.parse(text)
    except ValueError as error:
        return str(error)
    return None if text.startswith(f"{by:x}:") else "the id begins with another device"


def wrong_number(by: int, n: int, floor: int, ident: str, limits: Form) -> Complaint:
    """A message's number, the lowest one that its sender waits for, and its id."""
    return (
        out_of(n, 1, NUMBER_MAX, "n")
        or out_of(floor, max(1, n - limits.window + 1), n, "floor")
        or wrong_id(by, ident)
    )  # fmt: skip


def key_id(key: bytes) -> int:
    """The id in front of a signed or one-time X25519 key."""
    return int.from_bytes(key[:4], "big")


def kem_id(key: bytes) -> int:
    """The id behind the flag of a KEM key."""
    return int.from_bytes(key[1:5], "big")
