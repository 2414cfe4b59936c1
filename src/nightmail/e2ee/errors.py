"""What can go wrong. Verification raises; nothing here answers with a bool.

    SealingError
    ├── PrimitiveMissing          this machine lacks a primitive
    ├── Rejected                  what a peer or the server handed us is not to be believed
    │   ├── BadEncoding           bytes of no known form
    │   │   └── UnknownVersion    perhaps from a newer program
    │   ├── BadSignature
    │   ├── WeakKey               a key agreement without a secret in it
    │   ├── IdentityChanged       not the key that is known: the security code has changed
    │   ├── WrongDevice           keys of one device, offered as those of another
    │   ├── NotLasting            one-time keys, offered for a message that is delivered later
    │   ├── NotListed             a device that its account's list does not name
    │   ├── ListRolledBack, ListForked, AccountKeyChanged
    │   ├── HandleChanged         a list names another handle than the one before it, or none
    │   ├── HandleDiffers         a list names another handle than the person asked for
    │   ├── ChainBroken           a group's change that does not follow the known one
    │   ├── GroupRefused          a group that did not begin as its members say
    │   ├── OtherKey              a stream that was sealed under another key
    │   ├── StreamBroken          a chunk that is not the one that was sealed for its place
    │   ├── WrongBackupSecret     a passphrase or a recovery code that does not open this backup
    │   ├── BadRecoveryCode       words that are no recovery code
    │   └── CannotOpen            this device cannot open it: acknowledged as unreadable, so that it is sealed again
    │       ├── NoSession
    │       ├── PrekeyGone        sealed to a key that was used up or deleted
    │       ├── KeySpent          opened before, or its key was deleted
    │       ├── TooFarAhead
    │       ├── Undecipherable    no key fits: forged, damaged, or a state that was lost
    │       ├── NotAsAnnounced    what was sealed is not what the server says it is (tag, id, kind)
    │       └── MembershipDiffers sealed for other members of a group than this device knows
    └── StateError                our own stored state
        ├── StateTooNew
        └── StateDamaged

Never:   puts a key, a plaintext or a part of one into a text. Ids, counts and purposes may be shown.
"""

from __future__ import annotations


class SealingError(Exception):
    """The root of this room's errors."""


class PrimitiveMissing(SealingError):
    """A primitive that everything rests on is missing."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} is not available: install cryptography 48 or newer from its wheels")


class Rejected(SealingError):
    """Somebody else's mistake, or attack. Nothing was changed."""


class BadEncoding(Rejected):
    def __init__(self, what: str, why: str) -> None:
        self.what, self.why = what, why
        super().__init__(f"not a {what}: {why}")


class UnknownVersion(BadEncoding):
    def __init__(self, what: str, version: int) -> None:
        self.version = version
        super().__init__(what, f"version {version} is not known here")


class BadSignature(Rejected):
    def __init__(self, purpose: str) -> None:
        self.purpose = purpose
        super().__init__(f"the signature of a {purpose} does not verify")


class WeakKey(Rejected):
    def __init__(self) -> None:
        super().__init__("the key agreement gave no secret: the other key is of low order")


class IdentityChanged(Rejected):
    def __init__(self, device: int) -> None:
        self.device = device
        super().__init__(f"device {device:x} shows an identity key other than the known one")


class WrongDevice(Rejected):
    def __init__(self, wanted: int, got: int) -> None:
        self.wanted, self.got = wanted, got
        super().__init__(f"keys of device {got:x} were offered for device {wanted:x}")


class NotLasting(Rejected):
    def __init__(self, device: int) -> None:
        self.device = device
        super().__init__(f"one-time keys of device {device:x} were offered where none may be taken")


class NotListed(Rejected):
    def __init__(self, device: int, version: int) -> None:
        self.device, self.version = device, version
        super().__init__(f"device {device:x} is not on version {version} of its account's list")


class ListRolledBack(Rejected):
    def __init__(self, account: int, known: int, got: int) -> None:
        self.account, self.known, self.got = account, known, got
        super().__init__(f"device list of {account:x} went back from version {known} to {got}")


class ListForked(Rejected):
    def __init__(self, account: int, version: int) -> None:
        self.account, self.version = account, version
        super().__init__(f"device list of {account:x} has two contents for version {version}")


class AccountKeyChanged(Rejected):
    def __init__(self, account: int) -> None:
        self.account = account
        super().__init__(f"the account key of {account:x} is not the known one: the security code has changed")


class HandleChanged(Rejected):
    def __init__(self, account: int, known: str, got: str) -> None:
        self.account, self.known, self.got = account, known, got
        named = repr(got) if got else "no handle"
        super().__init__(f"the device list of {known!r} ({account:x}) names {named}")


class HandleDiffers(Rejected):
    def __init__(self, account: int, wanted: str, named: str) -> None:
        self.account, self.wanted, self.named = account, wanted, named
        whose = f"belongs to {named!r}" if named else "names no handle"
        super().__init__(f"{wanted!r} was asked for, and the list of account {account:x} {whose}")


class ChainBroken(Rejected):
    def __init__(self, group: int) -> None:
        self.group = group
        super().__init__(f"a change of group {group:x} does not follow the last one that is known here")


class GroupRefused(Rejected):
    def __init__(self, group: int, why: str) -> None:
        self.group, self.why = group, why
        super().__init__(f"group {group:x} is not what it should be: {why}")


class OtherKey(Rejected):
    def __init__(self) -> None:
        super().__init__("a sealed stream commits to another key")


class StreamBroken(Rejected):
    def __init__(self, chunk: int) -> None:
        self.chunk = chunk
        super().__init__(f"chunk {chunk} of a sealed stream is not the one that belongs there")


class WrongBackupSecret(Rejected):
    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__(f"the {kind} does not open this backup")


class BadRecoveryCode(Rejected):
    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"not a recovery code: {why}")


class CannotOpen(Rejected):
    """This device cannot open it. No state was changed by trying."""


class NoSession(CannotOpen):
    def __init__(self, device: int) -> None:
        self.device = device
        super().__init__(f"there is no session with device {device:x}")


class PrekeyGone(CannotOpen):
    def __init__(self, purpose: str, key_id: int) -> None:
        self.purpose, self.key_id = purpose, key_id
        super().__init__(f"{purpose} {key_id} was deleted, or never existed")


class KeySpent(CannotOpen):
    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"the key of message {number} in its chain was used before, or was deleted")


class TooFarAhead(CannotOpen):
    def __init__(self, skipped: int, limit: int) -> None:
        self.skipped, self.limit = skipped, limit
        super().__init__(f"a message skips {skipped} others: limit {limit}")


class Undecipherable(CannotOpen):
    def __init__(self) -> None:
        super().__init__("no key fits this message")


class NotAsAnnounced(CannotOpen):
    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"the sealed {what} is not the one that was announced")


class MembershipDiffers(CannotOpen):
    def __init__(self, group: int, device: int) -> None:
        self.group, self.device = group, device
        super().__init__(f"device {device:x} sealed for other members of group {group:x} than are known here")


class StateError(SealingError):
    """What this device stored about its keys cannot be used."""


class StateTooNew(StateError):
    def __init__(self, what: str, version: int, known: int) -> None:
        self.what, self.version, self.known = what, version, known
        super().__init__(f"{what} was stored in form {version} by a newer program: this one knows up to {known}")


class StateDamaged(StateError):
    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"stored {what} cannot be read: it is damaged, or of another kind")
