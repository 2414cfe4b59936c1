"""Keys that devices publish, and that senders claim before their first message."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from nightmail.model.answers import Bundle, Stocked
from nightmail.model.forms import (
    DEVICE_MAX,
    IDENTITY_BYTES,
    KEM_BYTES,
    LAST_RESORT,
    NUMBER_MAX,
    ONE_TIME_BYTES,
    ONE_TIME_KEM,
    SIGNED_BYTES,
    Complaint,
    Form,
    kem_id,
    key_id,
    not_long,
    out_of,
)
from nightmail.model.ids import account_of

from .body import Author, Body, Pace


class Published(Body, frozen=True, tag=23):
    """A device's public keys, for senders that have no session with it. Each is opaque, but for its id.

    `signed` is the signed prekey, `last_resort` the KEM key that is handed out when there is no other. The keys of
    `one_time` and `one_time_kem` are handed out once each, by ascending id.
    """

    said_by = Author.DEVICE
    since = 1
    pace = Pace.ITEM
    frees_space = False
    answered_by = (Stocked,)

    registration: int
    identity: bytes
    signed: bytes
    last_resort: bytes
    one_time: tuple[bytes, ...]
    one_time_kem: tuple[bytes, ...]

    def home(self, by: int) -> int:
        return account_of(by)

    def form(self, by: int, limits: Form) -> Complaint:
        return (
            out_of(self.registration, 0, NUMBER_MAX, "registration")
            or not_long(self.identity, IDENTITY_BYTES, "identity")
            or not_long(self.signed, SIGNED_BYTES, "signed")
            or not_long(self.last_resort, KEM_BYTES, "last_resort")
            or (self.last_resort[0] != LAST_RESORT and "last_resort does not say that it is one")
            or _not_ascending(self.one_time, limits.stock_one_time, ONE_TIME_BYTES, key_id, "one_time")
            or _not_ascending(self.one_time_kem, limits.stock_kem, KEM_BYTES, kem_id, "one_time_kem")
            or (any(key[0] != ONE_TIME_KEM for key in self.one_time_kem) and "one_time_kem has a last-resort key")
            or None
        )


class Claimed(Body, frozen=True, tag=24):
    """A sender takes one key of each kind of `device`. The same `request` gets the same ones."""

    said_by = Author.DEVICE
    since = 1
    pace = Pace.CLAIM
    frees_space = False
    answered_by = (Bundle,)

    device: int
    request: int

    def home(self, by: int) -> int:
        return account_of(self.device)

    def form(self, by: int, limits: Form) -> Complaint:
        return out_of(self.device, 1, DEVICE_MAX, "device") or out_of(self.request, 1, NUMBER_MAX, "request")


class KeysAsked(Body, frozen=True, tag=140):
    """A sender asks for the keys of `device` that everybody gets, and takes none: for a message that is sealed now and
    delivered later."""

    said_by = Author.DEVICE
    since = 5
    pace = Pace.CLAIM
    frees_space = False
    answered_by = (Bundle,)

    device: int

    def home(self, by: int) -> int:
        return account_of(self.device)

    def form(self, by: int, limits: Form) -> Complaint:
        return out_of(self.device, 1, DEVICE_MAX, "device")


__all__ = ("Claimed", "KeysAsked", "Published")
Bodies: TypeAlias = Published | Claimed | KeysAsked
DeviceBodies: TypeAlias = Published | Claimed | KeysAsked


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
