"""What an app is told. Everything is durable on this device before the app is told of it, except presence and typing.

A `Message` (messages.py) is an event, too: one per message, however often it was delivered.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from nightmail.model.words import Lane, PresenceState, Reason

from .group_events import (
    GroupBroken,
    GroupChangeRefused,
    GroupReceipt,
    GroupUpdated,
    MemberJoined,
    MemberMissing,
    MembersDiffer,
)
from .media_events import FileChanged, FileProgress
from .messages import Message, Tick
from .schedule_events import CancelRefused, ScheduleChanged


class ClientEvent(Struct, frozen=True):
    """Something an app may want to know."""


# --- the connection ---------------------------------------------------------------------------


class Connected(ClientEvent, frozen=True):
    node: str
    at: int
    """The server's clock."""


class Disconnected(ClientEvent, frozen=True):
    why: str
    code: int


class Retrying(ClientEvent, frozen=True):
    """The next attempt to connect."""

    address: str
    in_ms: int
    why: str = ""
    """Why the last one failed; empty if a connection had been open."""


class QueueEmpty(ClientEvent, frozen=True):
    """Everything that waited has been handed out."""


class Ended(ClientEvent, frozen=True):
    """The server refuses this client for good: another connection replaced it, or it does not speak this version."""

    code: int
    sentence: str


class DeviceRemoved(Ended, frozen=True):
    """The device was revoked, or its account was closed."""


# --- own messages -----------------------------------------------------------------------------


class SentAck(ClientEvent, frozen=True):
    """✓: durable at the server."""

    message_id: str
    conversation_id: str
    at: int


class DeliveryReceipt(ClientEvent, frozen=True):
    """✓✓ on one device of the other person; or it failed there (`state` FAILED)."""

    message_id: str
    conversation_id: str
    delivered_at: int
    device: int
    state: Tick
    reason: str = ""


class ReadReceipt(ClientEvent, frozen=True):
    """Blue ✓✓, for one or more messages at once."""

    conversation_id: str
    read_up_to: str
    """The newest message that was read."""
    read_at: int
    device: int
    messages: tuple[str, ...]
    """All that became read by this."""


class MessageFailed(ClientEvent, frozen=True):
    """It will arrive on no device of the other person."""

    message_id: str
    conversation_id: str
    reason: str
    at: int


class Disappeared(ClientEvent, frozen=True):
    """The life of these messages is over: their content was deleted here. Of own messages that no device was known to
    have by then the rows are left, without content."""

    conversation_id: str
    message_ids: tuple[str, ...]


class WaitingForNetwork(ClientEvent, frozen=True):
    """Still trying; the person may want to know."""

    conversation_id: str
    message_ids: tuple[str, ...]


# --- the mailbox ------------------------------------------------------------------------------


class Gap(ClientEvent, frozen=True):
    """Numbers of this device's mailbox whose entries are gone."""

    lane: Lane
    low: int
    high: int
    reason: Reason


class TimerChanged(ClientEvent, frozen=True):
    """Somebody has set the timer of a conversation; the message that did so is in the history."""

    message_id: str
    peer: int
    handle: str
    own: bool
    """Set on another device of this account."""
    life_ms: int
    """0: messages stay."""
    at: int


class LifeDiffers(ClientEvent, frozen=True):
    """The server said another life of this message than its author sealed. The shorter one counts."""

    message_id: str
    peer: int
    said_ms: int
    sealed_ms: int


class Unreadable(ClientEvent, frozen=True):
    """An entry that could not be opened. Its sender is told and will seal it again."""

    message_id: str
    by: int
    why: str = ""


# --- keys and devices -------------------------------------------------------------------------


class SecurityCodeChanged(ClientEvent, frozen=True):
    """An account has another key: its person set up a new device, or somebody intercepts.

    If its safety number had been verified, nothing is sealed for it until the person accepts the new key.
    """

    account: int
    handle: str
    verified: bool
    """The former key had been verified, so new messages wait for `Client.accept`."""


class ListRefused(ClientEvent, frozen=True):
    """The server's device list of an account is not what the account signed. Nothing is sealed by it."""

    account: int
    handle: str
    why: str


class ListUnsigned(ClientEvent, frozen=True):
    """An account has not signed a list of its devices yet: messages to it wait until one of its devices has."""

    account: int
    handle: str


class KeysRefused(ClientEvent, frozen=True):
    """The server handed out keys of a device that are not that device's; or it refused this device's own keys."""

    account: int
    handle: str
    device: int
    why: str


class DeviceLinked(ClientEvent, frozen=True):
    """A new device of this account is on the list and provisioned."""

    device: int


class DeviceNotLinked(ClientEvent, frozen=True):
    """A device was not linked. It needs a new code."""

    device: int
    why: str


class Reachable(ClientEvent, frozen=True):
    """This device's keys are published, and its account's signed list names it: others can write to it."""


class Moved(ClientEvent, frozen=True):
    """The account has moved to this device, with its history; the old device revokes itself."""

    device: int


class ReadElsewhere(ClientEvent, frozen=True):
    """The person has read these on another device of this account."""

    messages: tuple[str, ...]


class ContactsChanged(ClientEvent, frozen=True):
    """Contacts, their names or blocks, or the handles of people were changed on another device of this account."""

    accounts: tuple[int, ...]


class Provisioned(ClientEvent, frozen=True):
    """This device was told its account's key: it can send and open from now on."""


# --- other people -----------------------------------------------------------------------------


class Sight(Struct, frozen=True):
    """What this account may know of another's presence."""

    state: PresenceState
    last_seen: int
    """If it is offline: when it was last seen, in milliseconds since 1970; 0: never, or not told."""


class PresenceChanged(ClientEvent, frozen=True):
    """A watched account came online, went offline, or is shown to this one no more. Not durable."""

    account: int
    handle: str
    sight: Sight


class TypingChanged(ClientEvent, frozen=True):
    """A person began or stopped writing to this account, or in a group. Not durable."""

    account: int
    handle: str
    typing: bool
    group: int | None = None
    """None: to this account."""


# --- backups ----------------------------------------------------------------------------------


class BackedUp(ClientEvent, frozen=True):
    """A backup of this profile was written."""

    file: str
    at: int
    messages: int
    """How many there are in it."""
    size: int
    """Of the file, in bytes."""


class BackupFailed(ClientEvent, frozen=True):
    """An automatic backup could not be written. It is tried again."""

    file: str
    why: str


# --- the server -------------------------------------------------------------------------------


class ServerBehind(ClientEvent, frozen=True):
    """The server says that it never handed out what is stored here: it may have been restored from a backup."""

    lane: Lane | None
    """None: receipts."""
    head: int
    cursor: int


Event: TypeAlias = (
    Message
    | Connected | Disconnected | Retrying | QueueEmpty | Ended | DeviceRemoved
    | SentAck | DeliveryReceipt | ReadReceipt | MessageFailed | WaitingForNetwork
    | Disappeared | TimerChanged | LifeDiffers
    | Gap | Unreadable | ServerBehind
    | SecurityCodeChanged | ListRefused | ListUnsigned | KeysRefused
    | DeviceLinked | DeviceNotLinked | Provisioned | Reachable | Moved | ReadElsewhere
    | ContactsChanged | PresenceChanged | TypingChanged
    | ScheduleChanged | CancelRefused | BackedUp | BackupFailed | FileChanged | FileProgress
    | GroupUpdated | GroupChangeRefused | GroupBroken | MembersDiffer | MemberMissing | MemberJoined | GroupReceipt
)  # fmt: skip
