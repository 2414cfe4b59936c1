"""Receipts: what a person has read, what became of a message, and that its sender's devices know."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from nightmail.model.answers import Done
from nightmail.model.forms import ACCOUNT_MAX, DEVICE_MAX, NUMBER_MAX, Complaint, Form, out_of
from nightmail.model.ids import account_of
from nightmail.model.words import Lane, MessageState, Reason

from .body import Author, Body, Pace


class Span(Struct, frozen=True, array_like=True, gc=False):
    """Numbers `low` to `high` (both included) of one device's stream in one lane."""

    by: int
    lane: Lane
    low: int
    high: int


class ReceiptsAcked(Body, frozen=True, tag=4):
    """Every receipt up to `upto` is durable on the device."""

    said_by = Author.DEVICE
    since = 1
    pace = Pace.ITEM
    frees_space = True
    answered_by = (Done,)

    upto: int

    def home(self, by: int) -> int:
        return account_of(by)

    def form(self, by: int, limits: Form) -> Complaint:
        return out_of(self.upto, 0, NUMBER_MAX, "upto")


class Read(Body, frozen=True, tag=5):
    """What a person has looked at in the conversation with `peer`: the numbers, exactly."""

    said_by = Author.DEVICE
    since = 1
    pace = Pace.ITEM
    frees_space = False
    answered_by = (Done,)

    peer: int
    spans: tuple[Span, ...]

    def home(self, by: int) -> int:
        return account_of(by)

    def form(self, by: int, limits: Form) -> Complaint:
        if len(self.spans) > limits.spans:
            return f"more than {limits.spans} spans"
        if len({span.by for span in self.spans}) > limits.authors:
            return f"messages of more than {limits.authors} devices"
        for span in self.spans:
            if wrong := out_of(span.by, 1, DEVICE_MAX, "by") or out_of(span.high, span.low, NUMBER_MAX, "high"):
                return wrong
        return out_of(self.peer, 1, ACCOUNT_MAX, "peer")


class Receipted(Body, frozen=True, tag=33):
    """From shard to shard: what became, on `device`, of messages that `by` sent to `to`."""

    said_by = Author.SHARD | Author.FOLD
    since = 1

    by: int
    to: int
    lane: Lane
    device: int
    state: MessageState
    reason: Reason
    at: int
    numbers: tuple[tuple[int, int], ...]

    def home(self, by: int) -> int:
        return account_of(self.by)


__all__ = ("Read", "Receipted", "ReceiptsAcked", "Span")
Bodies: TypeAlias = ReceiptsAcked | Read | Receipted
DeviceBodies: TypeAlias = ReceiptsAcked | Read
