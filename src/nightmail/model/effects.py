"""What the fold asks for. Effects run only after the record that justifies them is durable.

They may repeat after a crash, so each must be harmless twice.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from .answers import Said
from .records import Told
from .words import Lane


class Answer(Struct, frozen=True, gc=False):
    """Send this answer to the address `via`."""

    via: int
    said: Said


class Grew(Struct, frozen=True, gc=False):
    """A queue has something its device has not been offered yet."""

    device: int
    lane: Lane


class ReceiptsGrew(Struct, frozen=True, gc=False):
    """A device has a receipt it has not been offered yet."""

    device: int


class Dismissed(Struct, frozen=True, gc=False):
    """A device is no more: close its connections."""

    device: int


class Low(Struct, frozen=True, gc=False):
    """A device has few keys left to be handed out: ask it for more."""

    device: int


class Call(Struct, frozen=True, gc=False):
    """Call a webhook, and say by `CallEnded` what became of it. While `(account, serial, attempt)` is being called,
    the same one again is to be ignored: it is repeated until its outcome is known."""

    account: int
    serial: int
    attempt: int
    """From 1 on. After the letter of a failed call is replayed it goes on from where it was."""
    id: str
    """The idempotency key for whom it is for."""
    url: str
    content_type: str
    content: bytes


class Wake(Struct, frozen=True, gc=False):
    """Something waits for this device: if it is not connected, push. Said again until the device has fetched it, or
    `Pushed` says what became of the push."""

    device: int


class RemoveBytes(Struct, frozen=True, gc=False):
    """A blob is no more: its bytes may go. If they do not, a sweep finds them."""

    owner: int
    secret: bytes


class LookForBytes(Struct, frozen=True, gc=False):
    """A day has passed: are the bytes of this blob still there? If not, say so by `BlobRemoved`."""

    owner: int
    secret: bytes


class Forward(Struct, frozen=True, gc=False):
    """Append this to another shard's log, as the `k`-th thing it is told by us."""

    shard: int
    k: int
    body: Told


Effect: TypeAlias = Answer | Grew | ReceiptsGrew | Dismissed | Low | Call | Wake | RemoveBytes | LookForBytes
