"""Devices: linked, listed, renamed, revoked."""

from __future__ import annotations

from typing import TypeAlias

from nightmail.model.answers import Done, Joined
from nightmail.model.forms import ACCOUNT_MAX, DEVICE_MAX, NUMBER_MAX, Complaint, Form, out_of, too_long_a_label
from nightmail.model.ids import account_of
from nightmail.model.words import Platform

from .accounts import joins
from .body import Author, Body, Pace


class Linked(Body, frozen=True, tag=17):
    """Another device of an account. It is addressed only once a device list names it."""

    said_by = Author.DEVICE
    since = 1
    pace = Pace.LINK
    frees_space = False
    answered_by = (Joined,)

    account: int
    registration: int
    token: bytes
    label: str
    platform: Platform

    def home(self, by: int) -> int:
        return self.account

    def form(self, by: int, limits: Form) -> Complaint:
        return joins(self.account, self.registration, self.token, self.label, limits)


class Listed(Body, frozen=True, tag=18):
    """The account's next device list. Linked devices that it no longer names are removed."""

    said_by = Author.DEVICE
    since = 1
    pace = Pace.ITEM
    frees_space = False
    answered_by = (Done,)

    account: int
    version: int
    devices: tuple[int, ...]
    signed: bytes

    def home(self, by: int) -> int:
        return self.account

    def form(self, by: int, limits: Form) -> Complaint:
        if len(self.devices) > limits.envelopes or len(set(self.devices)) < len(self.devices):
            return f"more than {limits.envelopes} devices, or one twice"
        if len(self.signed) > limits.list_bytes:
            return f"a list of more than {limits.list_bytes} bytes"
        return out_of(self.account, 1, ACCOUNT_MAX, "account") or out_of(self.version, 1, NUMBER_MAX, "version")


class Unlinked(Body, frozen=True, tag=19):
    """A device is revoked: its mailbox ends now, and senders are told."""

    said_by = Author.DEVICE | Author.SERVER | Author.FOLD
    since = 1
    pace = Pace.ITEM
    frees_space = False
    answered_by = (Done,)

    device: int

    def home(self, by: int) -> int:
        return account_of(self.device)

    def form(self, by: int, limits: Form) -> Complaint:
        return out_of(self.device, 1, DEVICE_MAX, "device")


class Relabelled(Body, frozen=True, tag=25):
    """A device gets another name."""

    said_by = Author.SERVER
    since = 1
    answered_by = (Done,)

    device: int
    label: str

    def home(self, by: int) -> int:
        return account_of(self.device)

    def form(self, by: int, limits: Form) -> Complaint:
        return too_long_a_label(self.label, limits) or out_of(self.device, 1, DEVICE_MAX, "device")


__all__ = ("Linked", "Listed", "Relabelled", "Unlinked")
Bodies: TypeAlias = Linked | Listed | Unlinked | Relabelled
DeviceBodies: TypeAlias = Linked | Listed | Unlinked
