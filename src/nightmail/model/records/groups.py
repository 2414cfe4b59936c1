"""Groups, as devices speak of them: made, changed, written to, read."""

from __future__ import annotations

from typing import TypeAlias

from nightmail.model.answers import Bundle, Done, GroupAccepted, GroupHead, Settled
from nightmail.model.forms import (
    ACCOUNT_MAX,
    DEVICE_MAX,
    NUMBER_MAX,
    TAG_BYTES,
    Complaint,
    Form,
    out_of,
    wrong_number,
)
from nightmail.model.group_chain import HEAD_BYTES, decode_change, is_group
from nightmail.model.ids import MESSAGE_ID_CHARS, account_of
from nightmail.model.roster import Creation
from nightmail.model.words import Kind, Lane

from .body import Author, Body, Pace
from .messages import Envelope, enveloped


class GroupMade(Body, frozen=True, tag=64):
    """A group begins: the first change of its chain, signed by its creator."""

    said_by = Author.DEVICE
    since = 4
    pace = Pace.SEND
    frees_space = False
    answered_by = (GroupHead,)

    group: int
    """Even, and drawn by the client."""
    blob: bytes

    def home(self, by: int) -> int:
        return self.group

    def form(self, by: int, limits: Form) -> Complaint:
        return _chained(self, by, creates=True)


class GroupChanged(Body, frozen=True, tag=65):
    """The next change of a group's chain, signed by the device that says it."""

    said_by = Author.DEVICE
    since = 4
    pace = Pace.SEND
    frees_space = False
    answered_by = (GroupHead,)

    group: int
    blob: bytes

    def home(self, by: int) -> int:
        return self.group

    def form(self, by: int, limits: Form) -> Complaint:
        return _chained(self, by, creates=False)


class GroupSent(Body, frozen=True, tag=66):
    """A message to a group: one ciphertext for everybody, the author's other devices included."""

    said_by = Author.DEVICE
    since = 4
    pace = Pace.SEND
    frees_space = False
    answered_by = (GroupAccepted, Settled)

    group: int
    lane: Lane
    n: int
    """Its number in the author's stream to the group, in this lane. Starts at 1, grows by 1."""
    floor: int
    """The lowest number whose answer the author still waits for."""
    seen: int
    """The newest stamp that the author had displayed in this group."""
    id: str
    tag: bytes
    kind: Kind
    epoch: int
    """Of the group, as the author knows it."""
    head: bytes
    """Of the group's chain, as the author knows it."""
    life_ms: int
    """Drop it this long after it was accepted; 0 means the mailbox's own limit. A shorter timer of the group counts."""
    ciphertext: bytes

    def home(self, by: int) -> int:
        return self.group

    def form(self, by: int, limits: Form) -> Complaint:
        return (
            _numbered(self, by, limits)
            or out_of(self.seen, 0, NUMBER_MAX, "seen")
            or (self.life_ms and out_of(self.life_ms, limits.lifetime_ms_min, limits.lifetime_ms, "life_ms"))
            or out_of(self.epoch, 0, NUMBER_MAX, "epoch")
            or (len(self.head) != HEAD_BYTES and f"head is not {HEAD_BYTES} bytes")
            or (len(self.tag) != TAG_BYTES and f"tag is not {TAG_BYTES} bytes")
            or (len(self.ciphertext) > limits.body_bytes and f"a body of more than {limits.body_bytes} bytes")
            or None
        )


class GroupVoided(Body, frozen=True, tag=67):
    """A number in a group whose message was given up: consumed, so that the next one can be accepted."""

    said_by = Author.DEVICE
    since = 4
    pace = Pace.SEND
    frees_space = False
    answered_by = (GroupAccepted, Settled)

    group: int
    lane: Lane
    n: int
    floor: int
    id: str

    def home(self, by: int) -> int:
        return self.group

    def form(self, by: int, limits: Form) -> Complaint:
        return _numbered(self, by, limits)


class GroupSealed(Body, frozen=True, tag=68):
    """Something for single devices of a group: keys, a welcome, or a message that is sealed again.

    It is numbered in the stream of the messages that need it, so their order stays.
    """

    said_by = Author.DEVICE
    since = 4
    pace = Pace.SEND
    frees_space = False
    answered_by = (GroupAccepted, Settled)

    group: int
    lane: Lane
    n: int
    floor: int
    seen: int
    id: str
    tag: bytes
    kind: Kind
    epoch: int
    of: str | None
    """For a re-seal: the id of the message that is sealed again."""
    of_seq: int
    """Its `group_seq`; 0: it is no re-seal."""
    life_ms: int
    """Of a re-seal: what is left."""
    envelopes: tuple[Envelope, ...]

    def home(self, by: int) -> int:
        return self.group

    def form(self, by: int, limits: Form) -> Complaint:
        return (
            _numbered(self, by, limits)
            or out_of(self.seen, 0, NUMBER_MAX, "seen")
            or (self.life_ms and out_of(self.life_ms, 1, limits.lifetime_ms, "life_ms"))
            or out_of(self.epoch, 0, NUMBER_MAX, "epoch")
            or out_of(self.of_seq, 0, NUMBER_MAX, "of_seq")
            or (len(self.tag) != TAG_BYTES and f"tag is not {TAG_BYTES} bytes")
            or ((self.of is None) is not (self.of_seq == 0) and "a re-seal names id and number of its original")
            or (self.of is not None and len(self.of) > MESSAGE_ID_CHARS and "of is too long")
            or (not self.envelopes and "it is sealed for nobody")
            or enveloped(self.envelopes, limits)
            or None
        )


class GroupRead(Body, frozen=True, tag=69):
    """A person has looked at everything in a group up to `upto`.

    `authors` are the accounts that wrote what is newly read: the group does not store who wrote which number.
    """

    said_by = Author.DEVICE
    since = 4
    pace = Pace.ITEM
    frees_space = False
    answered_by = (Done,)

    group: int
    upto: int
    authors: tuple[int, ...]

    def home(self, by: int) -> int:
        return account_of(by)

    def form(self, by: int, limits: Form) -> Complaint:
        if len(self.authors) > limits.authors:
            return f"messages of more than {limits.authors} accounts"
        for author in self.authors:
            if wrong := out_of(author, 1, ACCOUNT_MAX, "author"):
                return wrong
        return _not_a_group(self.group) or out_of(self.upto, 1, NUMBER_MAX, "upto")


class GroupAcked(Body, frozen=True, tag=70):
    """Everything in a group's log up to `upto` is durable on the device, except what it could not open."""

    said_by = Author.DEVICE
    since = 4
    pace = Pace.ITEM
    frees_space = True
    answered_by = (Done,)

    group: int
    upto: int
    unreadable: tuple[int, ...] = ()

    def home(self, by: int) -> int:
        return self.group

    def form(self, by: int, limits: Form) -> Complaint:
        if len(self.unreadable) > limits.unreadable:
            return f"more than {limits.unreadable} unreadable numbers"
        return _not_a_group(self.group) or out_of(self.upto, 0, NUMBER_MAX, "upto")


class FellowClaimed(Body, frozen=True, tag=71):
    """`Claimed`, for a device of a member of the same group. It has a budget of its own: groups are large."""

    said_by = Author.DEVICE
    since = 4
    pace = Pace.CLAIM
    frees_space = False
    answered_by = (Bundle,)

    group: int
    device: int
    request: int

    def home(self, by: int) -> int:
        return account_of(self.device)

    def form(self, by: int, limits: Form) -> Complaint:
        return (
            _not_a_group(self.group)
            or out_of(self.device, 1, DEVICE_MAX, "device")
            or out_of(self.request, 1, NUMBER_MAX, "request")
        )


__all__ = (
    "FellowClaimed", "GroupAcked", "GroupChanged", "GroupMade", "GroupRead", "GroupSealed", "GroupSent", "GroupVoided",
)  # fmt: skip
Bodies: TypeAlias = (
    GroupMade | GroupChanged | GroupSent | GroupVoided | GroupSealed | GroupRead | GroupAcked | FellowClaimed
)
DeviceBodies: TypeAlias = (
    GroupMade | GroupChanged | GroupSent | GroupVoided | GroupSealed | GroupRead | GroupAcked | FellowClaimed
)


def _not_a_group(number: int) -> Complaint:
    return None if is_group(number) else "group is not the number of a group"


def _numbered(body: GroupSent | GroupVoided | GroupSealed, by: int, limits: Form) -> Complaint:
    return _not_a_group(body.group) or wrong_number(by, body.n, body.floor, body.id, limits)


def _chained(body: GroupMade | GroupChanged, by: int, *, creates: bool) -> Complaint:
    """The fold takes the change from these bytes: here it is made sure that they can be read."""
    try:
        chained = decode_change(body.blob)
    except ValueError as error:
        return f"blob: {error}"
    if chained.group != body.group:
        return "blob is of another group"
    if chained.device != by:
        return "blob names another device as its author"
    if isinstance(chained.change, Creation) is not creates:
        return "a group is made by a creation, and changed by every other change"
    return None
