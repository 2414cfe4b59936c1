"""Mailboxes: acknowledged by their device, and looked at when time has passed."""

from __future__ import annotations

from typing import TypeAlias

from nightmail.model.answers import Done
from nightmail.model.forms import NUMBER_MAX, Complaint, Form, out_of
from nightmail.model.ids import account_of
from nightmail.model.words import Lane

from .body import Author, Body, Pace


class Acked(Body, frozen=True, tag=3):
    """Everything up to `upto` is durable on the device, except what it could not open."""

    said_by = Author.DEVICE
    since = 1
    pace = Pace.ITEM
    frees_space = True
    answered_by = (Done,)

    lane: Lane
    upto: int
    unreadable: tuple[int, ...] = ()

    def home(self, by: int) -> int:
        return account_of(by)

    def form(self, by: int, limits: Form) -> Complaint:
        if len(self.unreadable) > limits.unreadable:
            return f"more than {limits.unreadable} unreadable numbers"
        return out_of(self.upto, 0, NUMBER_MAX, "upto")


class Expired(Body, frozen=True, tag=49):
    """One due item: a mailbox whose oldest entries may be too old (`seq` 0), or one entry with a timer."""

    said_by = Author.FOLD
    since = 1

    device: int
    lane: Lane
    seq: int
    planned: int = 0
    """When, by elapsed time; 0: before fold 4."""

    def home(self, by: int) -> int:
        return account_of(self.device)


class Watched(Body, frozen=True, tag=52):
    """A mailbox's clock is set again, by the oldest entry that it still holds; or, with `seq`, one entry's timer."""

    said_by = Author.FOLD
    since = 1

    device: int
    lane: Lane = Lane.NORMAL
    seq: int = 0
    planned: int = 0
    """When the timer was first planned, by elapsed time; 0: before fold 4."""

    def home(self, by: int) -> int:
        return account_of(self.device)


class Swept(Body, frozen=True, tag=58):
    """A page of a mailbox, from `seq` on, is looked through for entries of accounts that are blocked: they end."""

    said_by = Author.FOLD
    since = 2

    device: int
    lane: Lane
    seq: int

    def home(self, by: int) -> int:
        return account_of(self.device)


__all__ = ("Acked", "Expired", "Swept", "Watched")
Bodies: TypeAlias = Acked | Expired | Watched | Swept
DeviceBodies: TypeAlias = Acked
