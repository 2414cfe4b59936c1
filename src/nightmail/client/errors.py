"""Everything that can go wrong, as one tree.

    ClientError
    ├── Misused              the caller's mistake: a closed client, an empty profile
    ├── NumberDiffers        the peer's safety number is another one than the person compared; nothing has changed
    ├── TooLarge             a body above the limit; nothing was queued
    ├── DeliveryFailed       a message will not arrive; says why
    ├── Lagging              a listener left too many events unread
    ├── ProfileError
    │   ├── ProfileInUse     another process has this profile open
    │   ├── ProfileDamaged   not a profile, or not what was written
    │   ├── ProfileTooNew    written by a newer version
    │   └── ProfileLocked    sealed, and its passphrase, key file or keyring entry is not here
    │       └── WrongSecret  the given secret does not open it; nothing has changed
    ├── StoreFailed          the disk did not take a write; nothing of it was sent or shown
    ├── Stopped              the server refuses this device for good
    ├── Misbehaved           the server sent something that it may not send
    ├── PresenceRefused      the server did not answer a question about presence, or did not store a choice
    │   └── NoPresence       the server tells nothing of presence: it is of an older version, or set up so
    ├── BackupError          a backup that cannot be written or read
    │   ├── BackupLocked     the passphrase or recovery code does not open it; nothing has changed
    │   ├── BackupDamaged    not a backup, or not what was written
    │   ├── BackupTooNew     written by a newer version
    │   ├── BackupOfAnother  of another account than this profile's
    │   └── BackupOlder      an own device knows of a newer one
    ├── GroupError           a group, or a change of one: see group_errors.py
    ├── ScheduleError        a message for later: see schedule_errors.py
    ├── MediaError           a file: see media_errors.py
    └── HttpError
        ├── Unreachable      no server answered
        │   └── Untrusted    a server answered, and its certificate is not trusted
        └── Refused          the server answered with a problem
No text in this tree holds a token, a key or content.
"""

from __future__ import annotations


class ClientError(Exception):
    """The root: its text is one sentence for a person."""


class Misused(ClientError):
    pass


class NumberDiffers(ClientError):
    def __init__(self) -> None:
        super().__init__("the safety number has changed in the meantime; nothing was accepted")


class TooLarge(ClientError):
    """`size` and `limit` are of the content; if `content_bytes` is given, of the envelope in which it would travel."""

    def __init__(self, size: int, limit: int, content_bytes: int = 0) -> None:
        self.size, self.limit, self.content_bytes = size, limit, content_bytes or size
        super().__init__(
            f"the message has {content_bytes} bytes and would travel as {size}, compressed and encrypted; "
            f"the server accepts at most {limit}"
            if content_bytes
            else f"the message has {size} bytes, and a message may have at most {limit}, even if it can be compressed"
        )


class DeliveryFailed(ClientError):
    def __init__(self, message_id: str, reason: str) -> None:
        self.message_id, self.reason = message_id, reason
        super().__init__(f"{message_id} failed: {reason}")


class Lagging(ClientError):
    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} events were left unread; what they told is in the history")


class ProfileError(ClientError):
    pass


class ProfileInUse(ProfileError):
    pass


class ProfileDamaged(ProfileError):
    pass


class ProfileTooNew(ProfileError):
    pass


class ProfileLocked(ProfileError):
    """`kept_by` is "passphrase", "key_file" or "keyring": what is needed."""

    def __init__(self, kept_by: str, sentence: str) -> None:
        self.kept_by = kept_by
        super().__init__(sentence)


class WrongSecret(ProfileLocked):
    pass


class StoreFailed(ClientError):
    pass


class Stopped(ClientError):
    def __init__(self, code: int, sentence: str) -> None:
        self.code, self.sentence = code, sentence
        super().__init__(f"the server closed for good ({code}): {sentence}")


class Misbehaved(ClientError):
    pass


class PresenceRefused(ClientError):
    pass


class NoPresence(PresenceRefused):
    pass


class BackupError(ClientError):
    pass


class BackupLocked(BackupError):
    pass


class BackupDamaged(BackupError):
    pass


class BackupTooNew(BackupError):
    pass


class BackupOfAnother(BackupError):
    pass


class BackupOlder(BackupError):
    def __init__(self, at: int, newest: int) -> None:
        self.at, self.newest = at, newest
        """When it was made, and when the newest one was that an own device knows of; in ms since 1970."""
        super().__init__("this is not the newest backup: a device of this account knows of a newer one")


class HttpError(ClientError):
    pass


class Unreachable(HttpError):
    pass


class Untrusted(Unreachable):
    pass


class Refused(HttpError):
    """`code` is the refusal's code in hex, as `docs/reference.md` lists it; empty if there is none."""

    def __init__(self, status: int, title: str, detail: str = "", code: str = "") -> None:
        self.status, self.title, self.detail, self.code = status, title, detail, code
        super().__init__(f"{status} {title}" + (f": {detail}" if detail else ""))
