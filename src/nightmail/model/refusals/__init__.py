"""Every no, with a wire code, a word for programs, its fields and a sentence for people.

    Refusal
    ├── of a send     OutOfOrder · IdReused · NumberVoided · UnknownRecipient · StaleDevices · MailboxFull
    │                 ShareFull
    ├── of an ack     AckAboveHead
    ├── of an account HandleTaken · HandleConfusable · UnknownAccount · UnknownDevice · NotAllowed · ListConflict
    │                 TooManyBlocked · TooManyDevices · TooManyLinked
    │                 PinNeeded · PinWrong · PinLocked
    ├── of keys       NoKeys · IdentityFixed
    ├── of a group    UnknownGroup · GroupIdTaken · StaleGroup · NotMember · NotGroupAdmin · AlreadyMember
    │                 UnknownMember · RemovesItself · LastAdmin · GroupFull
    ├── of schedules  UnknownSchedule · AlreadySent · InProgress · AlreadyEnded · TooManySchedules · SchedulesFull
    │                 TooFarOff · TimePast · KeyReused
    ├── of letters    UnknownLetter · LetterSettled · NotReplayable
    ├── of blobs      UnknownBlob · BlobTooLarge · BlobQuota · TooManyBlobs · TooManyUploads · TooManyAddressed
    │                 BlobUnfinished · BackupPrivate
    ├── of form       Malformed
    └── of the moment Unavailable · Overloaded · DiskFull · DeadLettered · RateLimited · NotYet

`retry` tells whether the same record may succeed later without the sender changing anything.
"""

from __future__ import annotations

from typing import TypeAlias

from .blobs import (
    BackupPrivate,
    BlobQuota,
    BlobTooLarge,
    BlobUnfinished,
    TooManyAddressed,
    TooManyBlobs,
    TooManyUploads,
    UnknownBlob,
)
from .groups import (
    AlreadyMember,
    GroupFull,
    GroupIdTaken,
    LastAdmin,
    NotGroupAdmin,
    NotMember,
    RemovesItself,
    StaleGroup,
    UnknownGroup,
    UnknownMember,
)
from .refusal import Refusal
from .schedules import (
    AlreadyEnded,
    AlreadySent,
    InProgress,
    KeyReused,
    LetterSettled,
    NotReplayable,
    SchedulesFull,
    TimePast,
    TooFarOff,
    TooManySchedules,
    UnknownLetter,
    UnknownSchedule,
)


class OutOfOrder(Refusal, frozen=True, tag=0x10):
    """The sender skipped a number of its stream; `expected` must come first."""

    word = "out_of_order"
    retry = True
    expected: int

    @property
    def sentence(self) -> str:
        return f"out of order: number {self.expected} must come first"


class IdReused(Refusal, frozen=True, tag=0x11):
    """The number or id was taken by another message, or came with other content."""

    word = "id_reused"
    id: str

    @property
    def sentence(self) -> str:
        return f"the id or number of {self.id} was used for something else before"


class NumberVoided(Refusal, frozen=True, tag=0x12):
    """The sender itself gave this number up earlier."""

    word = "number_voided"
    id: str

    @property
    def sentence(self) -> str:
        return f"{self.id} was given up by its sender before it was accepted"


class UnknownRecipient(Refusal, frozen=True, tag=0x13):
    """There is no such account."""

    word = "unknown_recipient"
    to: int

    @property
    def sentence(self) -> str:
        return f"there is no account {self.to:x}"


class StaleDevices(Refusal, frozen=True, tag=0x14):
    """The sender sealed for another set of devices than there is. It repairs its device list and seals again."""

    word = "stale_devices"
    version: int
    missing: tuple[int, ...]
    extra: tuple[int, ...]
    rekeyed: tuple[int, ...]

    @property
    def sentence(self) -> str:
        return (
            f"the device list is now version {self.version}: {len(self.missing)} missing, "
            f"{len(self.extra)} extra, {len(self.rekeyed)} with new keys"
        )


class MailboxFull(Refusal, frozen=True, tag=0x15):
    """Every device of the recipient holds `limit` undelivered entries, or as many bytes as may wait for it.

    If only some do, the message is accepted and those fail alone. `limit` counts entries, also if bytes fill the
    mailboxes.
    """

    word = "mailbox_full"
    retry = True
    limit: int

    @property
    def sentence(self) -> str:
        return f"every device of the recipient is full: limit {self.limit} entries, fewer if they are large"


class ShareFull(Refusal, frozen=True, tag=0x16):
    """On every device of the recipient that is not full, the sender's account holds as much as it may.

    If only some refuse it, the message is accepted and those fail alone, as `mailbox_full`.
    """

    word = "share_full"
    retry = True
    limit: int

    @property
    def sentence(self) -> str:
        return f"too much of yours waits for the recipient: limit {self.limit} entries, fewer if they are large"


class AckAboveHead(Refusal, frozen=True, tag=0x20):
    """A device acknowledged more than it was ever handed."""

    word = "ack_above_head"
    head: int

    @property
    def sentence(self) -> str:
        return f"nothing above {self.head} was ever handed out"


class HandleTaken(Refusal, frozen=True, tag=0x30):
    """The handle is somebody's, and the one who asks has not shown that it is theirs."""

    word = "handle_taken"
    handle: str

    @property
    def sentence(self) -> str:
        return f"{self.handle!r} is taken"


class UnknownAccount(Refusal, frozen=True, tag=0x31):
    """There is no such account."""

    word = "unknown_account"
    account: int

    @property
    def sentence(self) -> str:
        return f"there is no account {self.account:x}"


class UnknownDevice(Refusal, frozen=True, tag=0x32):
    """There is no such device, or no longer."""

    word = "unknown_device"
    device: int

    @property
    def sentence(self) -> str:
        return f"there is no device {self.device:x}"


class NotAllowed(Refusal, frozen=True, tag=0x33):
    """Only a device of the account itself may do this; to list or revoke devices, it must be listed."""

    word = "not_allowed"

    @property
    def sentence(self) -> str:
        return "only a device of the account itself may do this"


class ListConflict(Refusal, frozen=True, tag=0x34):
    """Another device list came first, or this one names a device that is not linked.

    The next one must be built on `version`.
    """

    word = "list_conflict"
    version: int

    @property
    def sentence(self) -> str:
        return f"the device list is at version {self.version}: the next one must be built on it"


class TooManyBlocked(Refusal, frozen=True, tag=0x35):
    """The block list is full."""

    word = "too_many_blocked"
    limit: int

    @property
    def sentence(self) -> str:
        return f"the block list is full: limit {self.limit} accounts"


class TooManyDevices(Refusal, frozen=True, tag=0x36):
    """The account has used up the device numbers of its life."""

    word = "too_many_devices"
    limit: int

    @property
    def sentence(self) -> str:
        return f"an account can have {self.limit} devices over its life"


class NoKeys(Refusal, frozen=True, tag=0x37):
    """The device has published no keys. It may do so at any moment."""

    word = "no_keys"
    retry = True
    device: int

    @property
    def sentence(self) -> str:
        return f"device {self.device:x} has published no keys yet"


class IdentityFixed(Refusal, frozen=True, tag=0x38):
    """A device keeps the identity keys and the registration that it published first. With others it is another one."""

    word = "identity_fixed"

    @property
    def sentence(self) -> str:
        return "a device keeps the identity that it published first: with other keys it is another device"


class PinNeeded(Refusal, frozen=True, tag=0x39):
    """The account has a registration lock, and no PIN was given."""

    word = "pin_needed"
    handle: str

    @property
    def sentence(self) -> str:
        return f"{self.handle!r} has a registration lock: its PIN is needed"


class PinWrong(Refusal, frozen=True, tag=0x3A):
    """Not the PIN of the registration lock; so many tries are left. It was counted."""

    word = "pin_wrong"
    tries: int
    """How many are left."""

    @property
    def sentence(self) -> str:
        return f"that is not the PIN; tries left: {self.tries}"


class PinLocked(Refusal, frozen=True, tag=0x3B):
    """Too many wrong PINs; none is compared before that time."""

    word = "pin_locked"
    retry = True
    retry_ms: int

    @property
    def sentence(self) -> str:
        return f"too many wrong PINs: try again in {self.retry_ms} ms"


class TooManyLinked(Refusal, frozen=True, tag=0x3C):
    """The account has as many devices as it may have at once. One must be removed first."""

    word = "too_many_linked"
    limit: int

    @property
    def sentence(self) -> str:
        return f"an account can have {self.limit} devices at once"


class HandleConfusable(Refusal, frozen=True, tag=0x3D):
    """The handle looks like another one that is somebody's."""

    word = "handle_confusable"
    handle: str

    @property
    def sentence(self) -> str:
        return f"{self.handle!r} looks like a handle that is taken"


class Malformed(Refusal, frozen=True, tag=0x40):
    """The record breaks a limit of form, or is no record."""

    word = "malformed"
    what: str

    @property
    def sentence(self) -> str:
        return f"malformed: {self.what}"


class Unavailable(Refusal, frozen=True, tag=0x50):
    """The outcome is unknown: it may have been written down or not. The same record again finds out."""

    word = "unavailable"
    retry = True

    @property
    def sentence(self) -> str:
        return "the server could not write this down; try again"


class Overloaded(Refusal, frozen=True, tag=0x51):
    """Too much is waiting to be saved. Acknowledgements are still taken."""

    word = "overloaded"
    retry = True

    @property
    def sentence(self) -> str:
        return "the server has too much to save; try again soon"


class DiskFull(Refusal, frozen=True, tag=0x52):
    """No space to write. Acknowledgements are still taken, because they free space."""

    word = "disk_full"
    retry = True

    @property
    def sentence(self) -> str:
        return "the server's disk is full; try again later"


class DeadLettered(Refusal, frozen=True, tag=0x53):
    """The record is durable but could not be applied; it was set aside for the operator."""

    word = "dead_lettered"

    @property
    def sentence(self) -> str:
        return "the server could not apply this; it was set aside for the operator"


class RateLimited(Refusal, frozen=True, tag=0x54):
    """The device sends faster than it may."""

    word = "rate_limited"
    retry = True
    retry_ms: int

    @property
    def sentence(self) -> str:
        return f"too fast: try again in {self.retry_ms} ms"


class NotYet(Refusal, frozen=True, tag=0x55):
    """The shard folds with an older version, which does not know this kind of record: some node is not upgraded yet."""

    word = "not_yet"
    retry = True

    @property
    def sentence(self) -> str:
        return "the server is being upgraded and does not take this yet; try again later"


AnyRefusal: TypeAlias = (
    OutOfOrder | IdReused | NumberVoided | UnknownRecipient | StaleDevices | MailboxFull | ShareFull
    | AckAboveHead
    | HandleTaken | HandleConfusable | UnknownAccount | UnknownDevice | NotAllowed | ListConflict
    | TooManyBlocked | TooManyDevices | TooManyLinked
    | NoKeys | IdentityFixed
    | UnknownGroup | GroupIdTaken | StaleGroup | NotMember | NotGroupAdmin | AlreadyMember
    | UnknownMember | RemovesItself | LastAdmin | GroupFull
    | PinNeeded | PinWrong | PinLocked
    | UnknownSchedule | AlreadySent | InProgress | AlreadyEnded | TooManySchedules | SchedulesFull
    | TooFarOff | TimePast | KeyReused
    | UnknownLetter | LetterSettled | NotReplayable
    | UnknownBlob | BlobTooLarge | BlobQuota | TooManyBlobs | TooManyUploads | TooManyAddressed
    | BlobUnfinished | BackupPrivate
    | Malformed
    | Unavailable | Overloaded | DiskFull | DeadLettered | RateLimited | NotYet
)  # fmt: skip
