"""Messages: sent, given up, and copied to the sender's own devices."""

from __future__ import annotations

from typing import TypeAlias

from nightmail.model.answers import Accepted, Settled
from nightmail.model.envelopes import Envelope
from nightmail.model.forms import (
    ACCOUNT_MAX,
    DEVICE_MAX,
    NUMBER_BITS,
    NUMBER_MAX,
    TAG_BYTES,
    Complaint,
    Form,
    out_of,
    wrong_number,
)
from nightmail.model.ids import ACCOUNT_BITS, DEVICE_BITS, MESSAGE_ID, MESSAGE_ID_CHARS, account_of
from nightmail.model.words import Kind, Lane

from .body import Author, Body, Pace


class Sent(Body, frozen=True, tag=1):
    """A message, sealed for every device of `to` and for every other device of the sender."""

    said_by = Author.DEVICE
    since = 1
    pace = Pace.SEND
    frees_space = False
    answered_by = (Accepted, Settled)

    to: int
    lane: Lane
    n: int
    """Its number in the sender's stream to `to`, in this lane. Starts at 1, grows by 1."""
    floor: int
    """The lowest number whose answer the sender still waits for."""
    seen: int
    """The newest stamp that the sender had displayed in this conversation."""
    id: str
    tag: bytes
    """Digest of the content, made by the sender: tells a retry from a reused number."""
    kind: Kind
    of: str | None
    """For a re-seal: the id of the message that is sealed again for one device."""
    life_ms: int
    """Drop it this long after it was accepted; 0 means the mailbox's own limit."""
    list_version: int
    envelopes: tuple[Envelope, ...]
    own_envelopes: tuple[Envelope, ...]

    def home(self, by: int) -> int:
        return self.to

    def form(self, by: int, limits: Form) -> Complaint:
        envelopes, ident = self.envelopes, self.id
        if len(envelopes) == 1 and not self.own_envelopes:
            (envelope,) = envelopes
            to, device = self.to, envelope.device
            n, floor = self.n, self.floor
            if (
                # The usual message, to a single device: everything below, in one expression. Numbers are shifted
                # away: nothing is left of numbers in their bounds, and something of a negative one.
                not (n | floor | self.seen | self.list_version | envelope.registration) >> NUMBER_BITS
                and not (to | device >> DEVICE_BITS) >> ACCOUNT_BITS
                and to
                and device
                and floor
                and 0 <= n - floor < limits.window
                and (not self.life_ms or limits.lifetime_ms_min <= self.life_ms <= limits.lifetime_ms)
                and len(self.tag) == TAG_BYTES
                and self.of is None
                and len(envelope.ciphertext) <= limits.body_bytes
                and ident.startswith(f"{by:x}:")
                and MESSAGE_ID.match(ident)  # It bounds the length, too.
            ):
                return None
        return (
            _numbered(self, by, limits)
            or out_of(self.seen, 0, NUMBER_MAX, "seen")
            or self._timed(limits)
            or out_of(self.list_version, 0, NUMBER_MAX, "list_version")
            or (len(self.tag) != TAG_BYTES and f"tag is not {TAG_BYTES} bytes")
            or (self.of is not None and len(self.of) > MESSAGE_ID_CHARS and "of is too long")
            or enveloped(self.envelopes, limits)
            or enveloped(self.own_envelopes, limits)
            or None
        )

    def _timed(self, limits: Form) -> Complaint:
        """No timer, or one in its bounds. A re-seal carries what is left of one."""
        if not self.life_ms:
            return None
        return out_of(self.life_ms, 1 if self.of is not None else limits.lifetime_ms_min, limits.lifetime_ms, "life_ms")


class Voided(Body, frozen=True, tag=2):
    """A number whose message was given up: consumed, so that the next one can be accepted."""

    said_by = Author.DEVICE
    since = 1
    pace = Pace.SEND
    frees_space = False
    answered_by = (Accepted, Settled)

    to: int
    lane: Lane
    n: int
    floor: int
    id: str

    def home(self, by: int) -> int:
        return self.to

    def form(self, by: int, limits: Form) -> Complaint:
        return _numbered(self, by, limits)


class Copied(Body, frozen=True, tag=32):
    """From shard to shard: a message was accepted; file the sender's own copies."""

    said_by = Author.SHARD | Author.FOLD
    since = 1

    by: int
    to: int
    lane: Lane
    n: int
    id: str
    tag: bytes
    kind: Kind
    of: str | None
    life_ms: int
    at: int
    envelopes: tuple[Envelope, ...]

    def home(self, by: int) -> int:
        return account_of(self.by)


__all__ = ("Copied", "Envelope", "Sent", "Voided")
Bodies: TypeAlias = Sent | Voided | Copied
DeviceBodies: TypeAlias = Sent | Voided


def _numbered(body: Sent | Voided, by: int, limits: Form) -> Complaint:
    return out_of(body.to, 1, ACCOUNT_MAX, "to") or wrong_number(by, body.n, body.floor, body.id, limits)


def enveloped(envelopes: tuple[Envelope, ...], limits: Form) -> Complaint:
    if not envelopes:
        return None
    if len(envelopes) > limits.envelopes:
        return f"more than {limits.envelopes} envelopes"
    if len(envelopes) > 1 and len({envelope.device for envelope in envelopes}) < len(envelopes):
        return "two envelopes for one device"
    for envelope in envelopes:
        if len(envelope.ciphertext) > limits.body_bytes:
            return f"a body of more than {limits.body_bytes} bytes"
        if wrong := out_of(envelope.device, 1, DEVICE_MAX, "device") or out_of(
            envelope.registration, 0, NUMBER_MAX, "registration"
        ):
            return wrong
    return None
