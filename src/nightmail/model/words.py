"""The small closed vocabularies. Their numbers are on the wire and on disk: only ever add."""

from __future__ import annotations

from enum import IntEnum


class Lane(IntEnum):
    """Which queue of a mailbox. High drains first; it never changes where a message is displayed."""

    NORMAL = 0
    HIGH = 1


class Kind(IntEnum):
    """All that the server is told about what an envelope is for."""

    TEXT = 1
    MEDIA = 2
    CONTROL = 3


class State(IntEnum):
    """What has become of a message on one device. Never goes backward."""

    SENT = 1
    DELIVERED = 2
    READ = 3
    FAILED = 4


class Reason(IntEnum):
    """Why an entry will never be shown, or why a message failed on a device."""

    NONE = 0
    MAILBOX_FULL = 1
    EXPIRED = 2
    DEVICE_REMOVED = 3
    UNDECRYPTABLE = 4
    STALE_DEVICES = 5
    """A device of the sender's own that no copy was sealed for: the sender seals one for it."""
    ACKNOWLEDGED = 6
    """The device itself acknowledged it, and has forgotten that."""


class Platform(IntEnum):
    CLI = 0
    IOS = 1
    ANDROID = 2
    WEB = 3
