"""Every no, with a wire code, its fields and a sentence.

    Refusal
    ├── of a send     OutOfOrder · IdReused · NumberVoided · UnknownRecipient · StaleDevices · MailboxFull
    ├── of an ack     AckAboveHead
    ├── of an account HandleTaken · UnknownAccount · UnknownDevice · NotAllowed · ListConflict
    │                 TooManyBlocked · TooManyDevices · TooManyLinked
    │                 PinNeeded · PinWrong · PinLocked
    ├── of keys       NoKeys · IdentityFixed
    ├── of form       Malformed
    └── of the moment Unavailable · Overloaded · DiskFull · DeadLettered · RateLimited

`retry` tells whether the same record may succeed later without the sender changing anything.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct


class Refusal(Struct, frozen=True, array_like=True):
    retry: ClassVar[bool] = False

    @property
    def code(self) -> int:
        code = self.__struct_config__.tag
        assert isinstance(code, int)
        return code

    @property
    def sentence(self) -> str:
        """What happened, for a person. Every refusal says its own."""
        return f"refused: {type(self).__name__}"


class OutOfOrder(Refusal, frozen=True, tag=0x10):
    """The sender skipped a number; nothing was stored."""

    retry = True
    expected: int

    @property
    def sentence(self) -> str:
        return f"out of order: number {self.expected} must come first"


class IdReused(Refusal, frozen=True, tag=0x11):
    """The number was taken by another message or other content; nothing was stored."""

    id: str

    @property
    def sentence(self) -> str:
        return f"the id or number of {self.id} was used for something else before"


class NumberVoided(Refusal, frozen=True, tag=0x12):
    """The sender gave this number up earlier."""

    id: str

    @property
    def sentence(self) -> str:
        return f"{self.id} was given up by its sender before it was accepted"


class UnknownRecipient(Refusal, frozen=True, tag=0x13):
    to: int

    @property
    def sentence(self) -> str:
        return f"there is no account {self.to:x}"


class StaleDevices(Refusal, frozen=True, tag=0x14):
    """The sender sealed for another set of devices than there is; nothing was stored."""

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
    """Every device of the recipient holds `limit` undelivered entries, or as many bytes as may wait for it."""

    retry = True
    limit: int

    @property
    def sentence(self) -> str:
        return f"every device of the recipient is full: limit {self.limit} entries, fewer if they are large"


class AckAboveHead(Refusal, frozen=True, tag=0x20):
    head: int

    @property
    def sentence(self) -> str:
        return f"nothing above {self.head} was ever handed out"


class HandleTaken(Refusal, frozen=True, tag=0x30):
    handle: str

    @property
    def sentence(self) -> str:
        return f"{self.handle!r} is taken"


class UnknownAccount(Refusal, frozen=True, tag=0x31):
    account: int

    @property
    def sentence(self) -> str:
        return f"there is no account {self.account:x}"


class UnknownDevice(Refusal, frozen=True, tag=0x32):
    device: int

    @property
    def sentence(self) -> str:
        return f"there is no device {self.device:x}"


class NotAllowed(Refusal, frozen=True, tag=0x33):
    @property
    def sentence(self) -> str:
        return "only a device of the account itself may do this"


class ListConflict(Refusal, frozen=True, tag=0x34):
    """Another device list came first, or this one names a device that is not linked."""

    version: int

    @property
    def sentence(self) -> str:
        return f"the device list is at version {self.version}: the next one must be built on it"


class TooManyBlocked(Refusal, frozen=True, tag=0x35):
    limit: int

    @property
    def sentence(self) -> str:
        return f"the block list is full: limit {self.limit} accounts"


class TooManyDevices(Refusal, frozen=True, tag=0x36):
    limit: int

    @property
    def sentence(self) -> str:
        return f"an account can have {self.limit} devices over its life"


class NoKeys(Refusal, frozen=True, tag=0x37):
    """The device has not published any keys. It may do so at any moment."""

    retry = True
    device: int

    @property
    def sentence(self) -> str:
        return f"device {self.device:x} has published no keys yet"


class IdentityFixed(Refusal, frozen=True, tag=0x38):
    """A device that lost its keys is another device."""

    @property
    def sentence(self) -> str:
        return "a device keeps the identity that it published first: with other keys it is another device"


class PinNeeded(Refusal, frozen=True, tag=0x39):
    """The account has a registration lock."""

    handle: str

    @property
    def sentence(self) -> str:
        return f"{self.handle!r} has a registration lock: its PIN is needed"


class PinWrong(Refusal, frozen=True, tag=0x3A):
    tries: int
    """How many are left."""

    @property
    def sentence(self) -> str:
        return f"that is not the PIN; tries left: {self.tries}"


class PinLocked(Refusal, frozen=True, tag=0x3B):
    """Too many wrong PINs."""

    retry = True
    retry_ms: int

    @property
    def sentence(self) -> str:
        return f"too many wrong PINs: try again in {self.retry_ms} ms"


class TooManyLinked(Refusal, frozen=True, tag=0x3C):
    """The account has as many devices as it may have at once."""

    limit: int

    @property
    def sentence(self) -> str:
        return f"an account can have {self.limit} devices at once"


class Malformed(Refusal, frozen=True, tag=0x40):
    what: str

    @property
    def sentence(self) -> str:
        return f"malformed: {self.what}"


class Unavailable(Refusal, frozen=True, tag=0x50):
    """The outcome is unknown: the same record again will find out."""

    retry = True

    @property
    def sentence(self) -> str:
        return "the server could not write this down; try again"


class Overloaded(Refusal, frozen=True, tag=0x51):
    """Too much is waiting to be saved; acknowledgements are still taken."""

    retry = True

    @property
    def sentence(self) -> str:
        return "the server has too much to save; try again soon"


class DiskFull(Refusal, frozen=True, tag=0x52):
    """Acknowledgements are still taken, because they free space."""

    retry = True

    @property
    def sentence(self) -> str:
        return "the server's disk is full; try again later"


class DeadLettered(Refusal, frozen=True, tag=0x53):
    """The record is durable but could not be applied. An operator sees it."""

    @property
    def sentence(self) -> str:
        return "the server could not apply this; it was set aside for the operator"


class RateLimited(Refusal, frozen=True, tag=0x54):
    """The device sends faster than it may; nothing was stored."""

    retry = True
    retry_ms: int

    @property
    def sentence(self) -> str:
        return f"too fast: try again in {self.retry_ms} ms"


AnyRefusal: TypeAlias = (
    OutOfOrder | IdReused | NumberVoided | UnknownRecipient | StaleDevices | MailboxFull
    | AckAboveHead
    | HandleTaken | UnknownAccount | UnknownDevice | NotAllowed | ListConflict | TooManyBlocked | TooManyDevices
    | TooManyLinked
    | NoKeys | IdentityFixed
    | PinNeeded | PinWrong | PinLocked
    | Malformed
    | Unavailable | Overloaded | DiskFull | DeadLettered | RateLimited
)  # fmt: skip
