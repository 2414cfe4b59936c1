"""Accounts: registered, closed, and what each of them wishes."""

from __future__ import annotations

from typing import TypeAlias

from nightmail.model.answers import Done, Joined
from nightmail.model.forms import (
    ACCOUNT_MAX,
    CLAIM_MAX,
    NUMBER_MAX,
    PIN_BYTES,
    PIN_SALT_BYTES,
    TOKEN_BYTES,
    Complaint,
    Form,
    out_of,
    too_long_a_label,
)
from nightmail.model.ids import DEVICES_EVER, account_ids
from nightmail.model.words import Platform

from .body import Author, Body, Pace


class Registered(Body, frozen=True, tag=16):
    """An account begins, with its first device; or the owner of its handle takes it over, and its former devices end.

    `token` is the SHA-256 of the device's token: the token itself is never stored. `verified` says that the operator's
    verification has shown whose the handle is. `pin` is compared with the registration lock; empty: none was given.
    `claim` is the number under which the handle was claimed; 0: it needs no claim, or was registered in fold 1.
    """

    said_by = Author.SERVER
    since = 1
    answered_by = (Joined,)

    account: int
    handle: str
    registration: int
    token: bytes
    label: str
    platform: Platform
    verified: bool = False
    pin: bytes = b""
    claim: int = 0

    def home(self, by: int) -> int:
        return self.account

    def form(self, by: int, limits: Form) -> Complaint:
        if complaint := _not_a_handle(self.handle, self.account, limits):
            return complaint
        if len(self.pin) not in (0, PIN_BYTES):
            return f"pin is not a digest of {PIN_BYTES} bytes"
        return out_of(self.claim, 0, CLAIM_MAX, "claim") or joins(
            self.account, self.registration, self.token, self.label, limits
        )


class HandleClaimed(Body, frozen=True, tag=27):
    """A handle is to be registered, and no other that looks like it may be."""

    said_by = Author.SERVER
    since = 2
    answered_by = (Done,)

    number: int
    """Of the claim: all handles that look alike have the same."""
    handle: str
    account: int
    index: int
    """The number that the account's next device gets. A release from before does not count."""

    def home(self, by: int) -> int:
        return self.number

    def form(self, by: int, limits: Form) -> Complaint:
        return (
            _not_a_handle(self.handle, self.account, limits)
            or out_of(self.number, 1, CLAIM_MAX, "number")
            or out_of(self.index, 1, DEVICES_EVER + 1, "index")
        )


class HandleReleased(Body, frozen=True, tag=28):
    """An account was closed: from `until` on, its handle and all that look like it are to be had again."""

    said_by = Author.SHARD | Author.FOLD
    since = 2

    number: int
    account: int
    index: int
    until: int

    def home(self, by: int) -> int:
        return self.number


class Closed(Body, frozen=True, tag=20):
    """An account ends, with all its devices."""

    said_by = Author.DEVICE | Author.SERVER
    since = 1
    pace = Pace.ITEM
    frees_space = False
    answered_by = (Done,)

    account: int

    def home(self, by: int) -> int:
        return self.account

    def form(self, by: int, limits: Form) -> Complaint:
        return out_of(self.account, 1, ACCOUNT_MAX, "account")


class Blocked(Body, frozen=True, tag=21):
    """`account` wants (not) to hear from `peer`."""

    said_by = Author.DEVICE
    since = 1
    pace = Pace.ITEM
    frees_space = False
    answered_by = (Done,)

    account: int
    peer: int
    on: bool

    def home(self, by: int) -> int:
        return self.account

    def form(self, by: int, limits: Form) -> Complaint:
        return out_of(self.account, 1, ACCOUNT_MAX, "account") or out_of(self.peer, 1, ACCOUNT_MAX, "peer")


class Known(Body, frozen=True, tag=30):
    """`account` knows `peer` (or does not): the person has written to them, or saved them. Ids only, never names."""

    said_by = Author.DEVICE
    since = 2
    pace = Pace.ITEM
    frees_space = False
    answered_by = (Done,)

    account: int
    peer: int
    on: bool

    def home(self, by: int) -> int:
        return self.account

    def form(self, by: int, limits: Form) -> Complaint:
        return out_of(self.account, 1, ACCOUNT_MAX, "account") or out_of(self.peer, 1, ACCOUNT_MAX, "peer")


class KnownForgotten(Body, frozen=True, tag=59):
    """An account has ended: nobody needs to know any more whom it knew."""

    said_by = Author.FOLD
    since = 2

    account: int

    def home(self, by: int) -> int:
        return self.account


class ReceiptsSet(Body, frozen=True, tag=22):
    """Read receipts, in both directions, on or off."""

    said_by = Author.DEVICE
    since = 1
    pace = Pace.ITEM
    frees_space = False
    answered_by = (Done,)

    account: int
    on: bool

    def home(self, by: int) -> int:
        return self.account

    def form(self, by: int, limits: Form) -> Complaint:
        return out_of(self.account, 1, ACCOUNT_MAX, "account")


class PinSet(Body, frozen=True, tag=26):
    """The account's registration lock, from here on; both empty: none. Only the server makes a digest."""

    said_by = Author.SERVER
    since = 1
    answered_by = (Done,)

    account: int
    salt: bytes
    digest: bytes

    def home(self, by: int) -> int:
        return self.account

    def form(self, by: int, limits: Form) -> Complaint:
        if (len(self.salt), len(self.digest)) not in ((0, 0), (PIN_SALT_BYTES, PIN_BYTES)):
            return f"a lock has a salt of {PIN_SALT_BYTES} and a digest of {PIN_BYTES} bytes, or neither"
        return out_of(self.account, 1, ACCOUNT_MAX, "account")


__all__ = (
    "Blocked", "Closed", "HandleClaimed", "HandleReleased", "Known", "KnownForgotten", "PinSet", "ReceiptsSet",
    "Registered",
)  # fmt: skip
Bodies: TypeAlias = (
    Registered | HandleClaimed | HandleReleased | Closed | Blocked | Known | KnownForgotten | ReceiptsSet | PinSet
)
DeviceBodies: TypeAlias = Closed | Blocked | Known | ReceiptsSet


def _not_a_handle(handle: str, account: int, limits: Form) -> Complaint:
    if not 1 <= len(handle) <= limits.handle_chars:
        return f"a handle has 1 to {limits.handle_chars} characters"
    return None if account in account_ids(handle) else "account is not what follows from the handle"


def joins(account: int, registration: int, token: bytes, label: str, limits: Form) -> Complaint:
    """What is wrong with a new device, the first one of its account or another."""
    if len(token) != TOKEN_BYTES:
        return f"token is not a digest of {TOKEN_BYTES} bytes"
    return (
        too_long_a_label(label, limits)
        or out_of(account, 1, ACCOUNT_MAX, "account")
        or out_of(registration, 0, NUMBER_MAX, "registration")
    )
