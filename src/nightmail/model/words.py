"""The small closed vocabularies. Their numbers are on the wire and on disk: only ever add."""

from __future__ import annotations

from enum import IntEnum


class Lane(IntEnum):
    """Which queue of a mailbox. High drains first; it never changes where a message is displayed."""

    NORMAL = 0
    """Messages and receipts."""
    HIGH = 1
    """Drains before normal. It changes when something arrives, never where it is displayed."""


class Kind(IntEnum):
    """All that the server is told about what an envelope is for."""

    TEXT = 1
    MEDIA = 2
    """A sealed pointer to media."""
    CONTROL = 3
    """Between clients."""


class MessageState(IntEnum):
    """What has become of a message on one device. Never goes backward."""

    SENT = 1
    """Accepted by the server."""
    DELIVERED = 2
    """Durable on the device."""
    READ = 3
    """Looked at by the person."""
    FAILED = 4
    """Will never be shown on the device; the reason says why."""


class Reason(IntEnum):
    """Why an entry will never be shown, or why a message failed on a device."""

    NONE = 0
    MAILBOX_FULL = 1
    """The device already held as many entries as it may, of everybody or of this sender's account."""
    EXPIRED = 2
    """Undelivered for too long, or past its own timer. In a gap also: its sender was blocked."""
    DEVICE_REMOVED = 3
    """The device was revoked."""
    UNDECRYPTABLE = 4
    """The device could not open it."""
    STALE_DEVICES = 5
    """No copy was sealed for this device of the sender's own; the sender seals one for it."""
    ACKNOWLEDGED = 6
    """The device itself acknowledged it, and has forgotten that: it was restored from a backup, perhaps."""
    KEPT_ELSEWHERE = 7
    """In a group's log: the number was filed in mailboxes, or everybody has it."""
    NOT_MEMBER = 8
    """In a group's log: the device was not addressed."""


class Audience(IntEnum):
    """To whom an account shows whether it is online, and when it was last seen."""

    EVERYONE = 1
    CONTACTS = 2
    """To accounts that it has said it knows (`Known`). What an account has that has not chosen."""
    NOBODY = 3
    """It then sees nobody's, either."""


class PresenceState(IntEnum):
    """What one account may know of another's presence."""

    UNAVAILABLE = 0
    """It is not shown, or there is no such account: nobody can tell which."""
    OFFLINE = 1
    ONLINE = 2
    """Some device of the account is in the foreground, and was heard recently."""


class Platform(IntEnum):
    CLI = 0
    IOS = 1
    ANDROID = 2
    WEB = 3


class PushPlatform(IntEnum):
    """By whose service a sleeping device is woken."""

    IOS = 1
    """Apple's: APNs."""
    ANDROID = 2
    """Google's: FCM."""
    WEB = 3
    """A browser's: Web Push."""
    UNIFIEDPUSH = 4
    """The person's own choice: an address that gets a POST."""
