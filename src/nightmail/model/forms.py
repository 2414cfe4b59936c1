"""Is it well formed? Asked of everything a peer says, before it costs anything.

The fold takes these answers for granted: what is in the log has passed here. Rights are another
question, and so is whether it fits what went before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from .ids import ACCOUNT_BITS, DEVICE_BITS, MESSAGE_ID, MESSAGE_ID_CHARS, MessageId, account_id
from .limits import FoldLimits, FormLimits
from .records import (
    Acked,
    AnyBody,
    Blocked,
    ChangesAcked,
    Claimed,
    Closed,
    Envelope,
    Linked,
    Listed,
    PinSet,
    Published,
    Read,
    ReceiptsSet,
    Registered,
    Relabelled,
    Sent,
    Unlinked,
    Voided,
)
from .refusals import Malformed

ACCOUNT_MAX = (1 << ACCOUNT_BITS) - 1
DEVICE_MAX = (1 << ACCOUNT_BITS + DEVICE_BITS) - 1
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


class Form:
    """The checks, with their limits."""

    def __init__(self, form: FormLimits | None = None, fold: FoldLimits | None = None) -> None:
        self._form, self._fold = form or FormLimits(), fold or FoldLimits()
        self._checks: dict[type[AnyBody], Callable[[int, Any], Complaint]] = {
            Sent: self._sent,
            Voided: self._voided,
            Acked: self._acked,
            ChangesAcked: lambda _, body: _out_of(body.upto, 0, NUMBER_MAX, "upto"),
            Read: self._read,
            Registered: self._joined,
            Linked: self._joined,
            Listed: self._listed,
            Unlinked: lambda _, body: _out_of(body.device, 1, DEVICE_MAX, "device"),
            Closed: lambda _, body: _out_of(body.account, 1, ACCOUNT_MAX, "account"),
            Blocked: self._blocked,
            ReceiptsSet: lambda _, body: _out_of(body.account, 1, ACCOUNT_MAX, "account"),
            Published: self._published,
            Claimed: self._claimed,
            Relabelled: self._relabelled,
            PinSet: self._pin_set,
        }

    @property
    def window(self) -> int:
        """Messages of one stream and lane that may wait for their answer."""
        return self._fold.ring_acks

    @property
    def body_bytes(self) -> int:
        return self._form.body_bytes

    def check(self, by: int, body: AnyBody) -> Malformed | None:
        """What is wrong with something that device `by` says; None if nothing is."""
        if type(body) is Sent and self._is_plain(by, body):
            return None
        check = self._checks.get(type(body))
        complaint = check(by, body) if check else "only the server says such a thing"
        return Malformed(complaint) if complaint else None

    # --- sending --------------------------------------------------------------------------------

    def _is_plain(self, by: int, sent: Sent) -> bool:
        """The usual message, to a single device: everything `_sent` asks, in one breath."""
        if len(sent.envelopes) != 1 or sent.own_envelopes:
            return False
        (envelope,) = sent.envelopes
        to, n, floor, device, ident = sent.to, sent.n, sent.floor, envelope.device, sent.id
        return (
            # Shifted away: nothing is left of numbers in their bounds, and something of a negative one.
            not (n | floor | sent.seen | sent.list_version | envelope.registration) >> NUMBER_BITS
            and not (to | device >> DEVICE_BITS) >> ACCOUNT_BITS
            and to > 0
            and device > 0
            and 0 < floor <= n < floor + self._fold.ring_acks
            and 0 <= sent.life_ms <= self._form.lifetime_ms
            and len(sent.tag) == TAG_BYTES
            and sent.of is None
            and len(envelope.ciphertext) <= self._form.body_bytes
            and len(ident) <= MESSAGE_ID_CHARS
            and ident.startswith(f"{by:x}:")
            and MESSAGE_ID.match(ident) is not None
        )

    def _sent(self, by: int, sent: Sent) -> Complaint:
        return (
            self._numbered(by, sent)
            or _out_of(sent.seen, 0, NUMBER_MAX, "seen")
            or _out_of(sent.life_ms, 0, self._form.lifetime_ms, "life_ms")
            or _out_of(sent.list_version, 0, NUMBER_MAX, "list_version")
            or (len(sent.tag) != TAG_BYTES and f"tag is not {TAG_BYTES} bytes")
            or (sent.of is not None and len(sent.of) > MESSAGE_ID_CHARS and "of is too long")
            or self._envelopes(sent.envelopes)
            or self._envelopes(sent.own_envelopes)
            or None
        )

    def _voided(self, by: int, voided: Voided) -> Complaint:
        return self._numbered(by, voided)

    def _numbered(self, by: int, body: Sent | Voided) -> Complaint:
        window = self._fold.ring_acks
        return (
            _out_of(body.to, 1, ACCOUNT_MAX, "to")
            or _out_of(body.n, 1, NUMBER_MAX, "n")
            or _out_of(body.floor, max(1, body.n - window + 1), body.n, "floor")
            or _id_of(by, body.id)
        )

    def _envelopes(self, envelopes: tuple[Envelope, ...]) -> Complaint:
        if len(envelopes) > self._form.envelopes:
            return f"more than {self._form.envelopes} envelopes"
        if len({envelope.device for envelope in envelopes}) < len(envelopes):
            return "two envelopes for one device"
        for envelope in envelopes:
            if len(envelope.ciphertext) > self._form.body_bytes:
                return f"a body of more than {self._form.body_bytes} bytes"
            if wrong := _out_of(envelope.device, 1, DEVICE_MAX, "device") or _out_of(
                envelope.registration, 0, NUMBER_MAX, "registration"
            ):
                return wrong
        return None

    # --- receiving ------------------------------------------------------------------------------

    def _acked(self, _: int, acked: Acked) -> Complaint:
        if len(acked.unreadable) > self._form.unreadable:
            return f"more than {self._form.unreadable} unreadable numbers"
        return _out_of(acked.upto, 0, NUMBER_MAX, "upto")

    def _read(self, _: int, read: Read) -> Complaint:
        if len(read.spans) > self._form.spans:
            return f"more than {self._form.spans} spans"
        if len({span.by for span in read.spans}) > self._form.authors:
            return f"messages of more than {self._form.authors} devices"
        for span in read.spans:
            if wrong := _out_of(span.by, 1, DEVICE_MAX, "by") or _out_of(span.high, span.low, NUMBER_MAX, "high"):
                return wrong
        return _out_of(read.peer, 1, ACCOUNT_MAX, "peer")

    # --- accounts -------------------------------------------------------------------------------

    def _joined(self, _: int, new: Registered | Linked) -> Complaint:
        if isinstance(new, Registered) and not 1 <= len(new.handle) <= self._form.handle_chars:
            return f"a handle has 1 to {self._form.handle_chars} characters"
        if isinstance(new, Registered) and new.account != account_id(new.handle):
            return "account is not what follows from the handle"
        if len(new.token) != TOKEN_BYTES:
            return f"token is not a digest of {TOKEN_BYTES} bytes"
        if isinstance(new, Registered) and len(new.pin) not in (0, PIN_BYTES):
            return f"pin is not a digest of {PIN_BYTES} bytes"
        if wrong := self._label(new.label):
            return wrong
        return _out_of(new.account, 1, ACCOUNT_MAX, "account") or _out_of(
            new.registration, 0, NUMBER_MAX, "registration"
        )

    def _relabelled(self, _: int, new: Relabelled) -> Complaint:
        return self._label(new.label) or _out_of(new.device, 1, DEVICE_MAX, "device")

    def _label(self, label: str) -> Complaint:
        most = self._form.label_chars
        return f"a label has at most {most} characters" if len(label) > most else None

    def _pin_set(self, _: int, new: PinSet) -> Complaint:
        if (len(new.salt), len(new.digest)) not in ((0, 0), (PIN_SALT_BYTES, PIN_BYTES)):
            return f"a lock has a salt of {PIN_SALT_BYTES} and a digest of {PIN_BYTES} bytes, or neither"
        return _out_of(new.account, 1, ACCOUNT_MAX, "account")

    def _blocked(self, _: int, wish: Blocked) -> Complaint:
        return _out_of(wish.account, 1, ACCOUNT_MAX, "account") or _out_of(wish.peer, 1, ACCOUNT_MAX, "peer")

    def _listed(self, _: int, new: Listed) -> Complaint:
        if len(new.devices) > self._form.envelopes or len(set(new.devices)) < len(new.devices):
            return f"more than {self._form.envelopes} devices, or one twice"
        if len(new.signed) > self._form.list_bytes:
            return f"a list of more than {self._form.list_bytes} bytes"
        return _out_of(new.account, 1, ACCOUNT_MAX, "account") or _out_of(new.version, 1, NUMBER_MAX, "version")

    # --- keys -----------------------------------------------------------------------------------

    def _published(self, _: int, new: Published) -> Complaint:
        return (
            _out_of(new.registration, 0, NUMBER_MAX, "registration")
            or _not_long(new.identity, IDENTITY_BYTES, "identity")
            or _not_long(new.signed, SIGNED_BYTES, "signed")
            or _not_long(new.last_resort, KEM_BYTES, "last_resort")
            or (new.last_resort[0] != LAST_RESORT and "last_resort does not say that it is one")
            or _not_ascending(new.one_time, self._fold.stock_one_time, ONE_TIME_BYTES, key_id, "one_time")
            or _not_ascending(new.one_time_kem, self._fold.stock_kem, KEM_BYTES, kem_id, "one_time_kem")
            or (any(key[0] != ONE_TIME_KEM for key in new.one_time_kem) and "one_time_kem has a last-resort key")
            or None
        )

    def _claimed(self, _: int, claimed: Claimed) -> Complaint:
        return _out_of(claimed.device, 1, DEVICE_MAX, "device") or _out_of(claimed.request, 1, NUMBER_MAX, "request")


def key_id(key: bytes) -> int:
    """The id in front of a signed or one-time X25519 key."""
    return int.from_bytes(key[:4], "big")


def kem_id(key: bytes) -> int:
    """The id behind the flag of a KEM key."""
    return int.from_bytes(key[1:5], "big")


def _not_long(key: bytes, size: int, name: str) -> Complaint:
    return None if len(key) == size else f"{name} is not {size} bytes"


def _not_ascending(
    keys: tuple[bytes, ...], most: int, size: int, id_of: Callable[[bytes], int], name: str
) -> Complaint:
    if len(keys) > most:
        return f"{name} has more than {most} keys"
    last = 0
    for key in keys:
        if len(key) != size:
            return f"{name} has a key that is not {size} bytes"
        if id_of(key) <= last:
            return f"{name} has ids that do not ascend from 1"
        last = id_of(key)
    return None


def _out_of(number: int, low: int, high: int, name: str) -> Complaint:
    return None if low <= number <= high else f"{name} is not between {low} and {high}"


def _id_of(by: int, text: str) -> Complaint:
    """A message id begins with the device that made it: nobody can use up another's ids."""
    if len(text) > MESSAGE_ID_CHARS:
        return f"an id has at most {MESSAGE_ID_CHARS} characters"
    try:
        parsed = MessageId.parse(text)
    except ValueError as error:
        return str(error)
    return None if parsed.device == by else "the id begins with another device"
