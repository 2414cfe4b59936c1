"""What every record says about itself, in its own class.

    tag           its number in the log and on the wire, never reused
    said_by       who may say it
    since         the first fold version that takes it
    home(by)      the account whose shard decides about it
    form(by, …)   what is wrong with it, before it costs anything: for what a peer may say
    pace          which limit counts it: for what devices may say
    frees_space   it is taken even while space or time runs out: for what devices may say
    answered_by   what the author hears if it is no refusal: for what a peer may say

A class that leaves one of these out cannot be imported.
"""

from __future__ import annotations

from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, Any, ClassVar

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


PEER = Author.DEVICE | Author.SERVER


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
    since: ClassVar[int]
    pace: ClassVar[Pace]
    frees_space: ClassVar[bool] = False
    answered_by: ClassVar[tuple[type[Answer], ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        said_by = own.get("said_by")
        needed = {"said_by", "since", "home"}
        if said_by and said_by & PEER:
            needed |= {"form", "answered_by"}
        if said_by and said_by & Author.DEVICE:
            needed |= {"pace", "frees_space"}
        if left_out := sorted(needed - set(own)):
            raise TypeError(f"the record {cls.__name__} does not say its {', '.join(left_out)}")

    if TYPE_CHECKING:  # Every class has its own: `__init_subclass__` insists on it.

        def home(self, by: int) -> int:
            """The account whose shard decides about this, if device `by` (or the server) says it."""
            ...

    def form(self, by: int, limits: Form) -> Complaint:
        """What is wrong with this, if device `by` says it; None if nothing is. Asked of everything a peer says."""
        del by, limits
        return "only the server says such a thing"


__all__ = ("Author", "Body", "Pace")
