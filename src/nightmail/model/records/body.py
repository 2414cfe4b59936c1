"""What every record says about itself, in its own class.

    tag           its number in the log and on the wire, never reused
    said_by       who may say it
    pace          which limit counts it when a device says it
    frees_space   it is taken even while space or time runs out
    answered_by   what the author hears if it is no refusal
    home(by)      the account whose shard decides about it
    form(by, …)   what is wrong with it, before it costs anything

A class that leaves one of these out fails tests/model/records/test_records.py.
"""

from __future__ import annotations

from enum import Enum, Flag, auto
from typing import ClassVar

from msgspec import Struct

from nightmail.model.answers import Answer
from nightmail.model.forms import Complaint, Form


class Author(Flag):
    """Who may say a record."""

    DEVICE = auto()
    """A device, over its connection or over HTTP."""
    SERVER = auto()
    """The HTTP interface, for a person who has no device yet, or with a digest that only the server can make."""
    SHARD = auto()
    """Another shard, by a forward."""
    FOLD = auto()
    """Nobody: it follows from another record, and is folded under the same offset."""
    TIME = auto()
    """The loop, when something is due."""
    OPERATOR = auto()
    """Settings and commands of the operator."""


class Pace(Enum):
    """Which limit of the gateway counts a record."""

    ITEM = "items"
    """As one of the items of its connection."""
    SEND = "sends"
    """As a message: it may leave a stream behind, which never expires."""
    CLAIM = "claims"
    """Per account and minute, over all its connections."""
    LINK = "links"
    """Likewise."""


class Body(Struct, frozen=True, array_like=True, gc=False):
    """The part of a record that its author wrote. Past tense: by the time anyone reads one, it has happened."""

    said_by: ClassVar[Author]
    pace: ClassVar[Pace] = Pace.ITEM
    frees_space: ClassVar[bool] = False
    answered_by: ClassVar[tuple[type[Answer], ...]] = ()

    def home(self, by: int) -> int:
        """The account whose shard decides about this, if device `by` (or the server) says it."""
        raise AssertionError(f"{type(self).__name__} does not say whose shard decides about it, for {by}")

    def form(self, by: int, limits: Form) -> Complaint:
        """What is wrong with this, if device `by` says it; None if nothing is. Asked of everything a peer says."""
        del by, limits
        return "only the server says such a thing"
