"""What clients saw, and nothing else: the only evidence that the checkers accept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

from nightmail.model.answers import Accepted
from nightmail.model.words import Lane, Reason
from sim.world.world import Broken, World


@dataclass
class Message:
    """One message that a person wrote, as its sending device knows it."""

    id: str
    by: int
    to: int
    lane: Lane
    n: int
    of: str | None
    """The message that this one seals again; or, of a word between devices, an id that nothing has."""
    seen: int
    """The newest stamp in the conversation that its author had seen."""
    body: bytes = b""
    written_at: int = 0
    envelopes: dict[int, frozenset[int]] = field(default_factory=dict)
    """List version → devices of the recipient that it was sealed for under that list."""
    own: frozenset[int] | None = None
    """Devices of its author that every attempt was sealed for: which attempt was accepted is not known."""
    life_ms: int = 0
    """Its own timer; 0: none."""
    links: set[int] = field(default_factory=set[int])
    """The connections over which it was sent."""
    sealed_at: int = 0
    """When it left its device for the first time."""
    given_up: str = ""
    """Why its device gave it up."""
    answer: Accepted | None = None
    at: int = 0
    """Its stamp, once accepted."""
    version: int = 0
    accepted_at: int = 0
    is_control: bool = False
    """A word from device to device, which nobody is shown."""
    sets_timer: bool = False
    """It sets the timer of its conversation."""
    sealed: dict[int, tuple[int, bytes]] = field(default_factory=dict[int, tuple[int, bytes]])
    """Device → how often the recipient had changed its key when it was sealed for it, and the digest of it."""
    fate: str = "waiting"
    """waiting, sent or voided: what the server has said of it, as far as its device heard."""

    @property
    def key(self) -> Key:
        return self.by, self.to, self.lane, self.n

    @property
    def addressed(self) -> frozenset[int]:
        """Every device of the recipient that it was ever sealed for."""
        return frozenset[int]().union(*self.envelopes.values())

    @property
    def original(self) -> str:
        return self.of or self.id


Key: TypeAlias = tuple[int, int, Lane, int]
"""(by, to, lane, n): one number of one stream."""


@dataclass
class Fate:
    """One thing that became of a message, by one device's word."""

    when: int
    device: int
    what: str
    times: int = 1


@dataclass
class Shown:
    id: str
    by: int
    at: int
    lane: Lane
    nth: int
    """Among everything that this device has shown."""


@dataclass
class Seen:
    """What one device knows: it is in its own durable store, or the server has told it."""

    shown: dict[str, Shown] = field(default_factory=dict[str, Shown])
    """Original id → how it was shown."""
    told: set[str] = field(default_factory=set[str])
    """What its app was told of."""
    stored: set[Key] = field(default_factory=set[Key])
    """Every entry that is safe on it, by its number."""
    arrived: dict[Key, int] = field(default_factory=dict[Key, int])
    """Every entry that it was handed → its sequence number."""
    acked: tuple[list[tuple[int, int]], list[tuple[int, int]]] = field(default_factory=lambda: ([], []))
    """Per lane, rising: (when somebody was told of a delivery, the sequence number that it had)."""
    owed: dict[Key, int] = field(default_factory=dict[Key, int])
    """What was accepted for it and has not arrived → since when."""
    reading: set[Key] = field(default_factory=set[Key])
    """What its person has ever read."""
    read: set[Key] = field(default_factory=set[Key])
    """Likewise, and the server confirmed it."""
    read_hidden: set[Key] = field(default_factory=set[Key])
    """Read while receipts may have been off, or the peer blocked: may or may not be told."""
    delivered_at: dict[Key, set[int]] = field(default_factory=dict[Key, set[int]])
    """Number → devices it was told to be delivered on."""
    read_at: dict[Key, set[int]] = field(default_factory=dict[Key, set[int]])
    failed_at: dict[Key, dict[int, Reason]] = field(default_factory=dict[Key, dict[int, Reason]])
    gaps: int = 0
    """Numbers that it was told will never bring anything."""


class History:
    """Collects across all devices, and judges what can be judged at once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.messages: dict[str, Message] = {}
        self.by_number: dict[Key, Message] = {}
        self.resealed: set[str] = set()
        self.seen: dict[int, Seen] = {}
        self.removed: set[int] = set()
        self.forgotten: set[int] = set()
        """Devices that were lost with all others of their account: nobody is left who was told of what they sent."""
        self.blocks: list[tuple[int, int, int, int | None]] = []
        """(account, peer, from, until): widest interval in which a block may have been in force."""
        self.sure_blocks: list[tuple[int, int, int, int | None]] = []
        """(account, peer, from, until): narrowest interval in which a block was certainly in force."""
        self.listed: dict[int, list[tuple[int, int, frozenset[int]]]] = {}
        """Account → (when, version, devices) of each device list that the server confirmed."""
        self.known: dict[tuple[int, int], int] = {}
        """(account, peer) → when the server confirmed that the account knows the peer."""
        self.may_be_known: set[tuple[int, int]] = set()
        """(account, peer): a device of the account has said so, at least."""
        self.sealed_for: dict[int, dict[str, Message]] = {}
        """Device → everything that was ever sealed for it, copies for own devices included."""
        self.liars: set[int] = set()
        """Devices that say what is not so."""
        self.fates: dict[str, list[Fate]] = {}
        """Message → what became of it, as its devices said and heard."""
        self.gaps: dict[int, list[Fate]] = {}
        """Device → what it was told will never come: nobody tells it whose that was."""
        self.names: dict[int, str] = {}
        self.attacks: Counter[int] = Counter()
        """Device → how much a liar has sealed for it."""
        self.signed: set[bytes] = set()
        """Every list that a device of its account signed."""
        self.calm = False
        """All is healed: from now on everything opens at once."""
        self.set_back: set[int] = set()
        """Devices whose sessions were once those of an older copy."""
        self.started_over: set[int] = set()
        """Accounts that ever had another key."""
        self.one_time: dict[tuple[int, bytes], tuple[int, int]] = {}
        """(device, one-time key) → (who, request): whom it was handed out to."""
        self.receipts_off: set[int] = set()
        """Accounts that ever had read receipts switched off."""

    def add(self, message: Message) -> None:
        before = self.by_number.setdefault(message.key, message)
        if before is not message:
            raise self.broke("one id per number", f"{message.id} has the number of {before.id}: {message.key}")
        self.messages[message.id] = message
        self.note(message.id, message.by, f"is written, {message.lane.name} {message.n} to {message.to:x}")
        if message.of:
            self.resealed.add(message.of)

    def of(self, device: int) -> Seen:
        seen = self.seen.get(device)
        if seen is None:
            seen = self.seen[device] = Seen()
        return seen

    def note(self, message: str, device: int, what: str) -> None:
        """Something of what becomes of a message. What happens again and again is counted."""
        fates = self.fates.setdefault(message, [])
        if fates and (fates[-1].device, fates[-1].what) == (device, what):
            fates[-1].times += 1
        else:
            fates.append(Fate(self._world.now, device, what))

    def name(self, device: int) -> str:
        return self.names.get(device, f"{device:x}")

    def delivered(self, key: Key, device: int) -> None:
        """Somebody is told so: whatever stood before it in the device's lane is acknowledged as well."""
        seen, lane = self.of(device), key[2]
        seq, known = seen.arrived.get(key, 0), seen.acked[lane]
        if seq > (known[-1][1] if known else 0):
            known.append((self._world.now, seq))

    def broke(self, promise: str, what: str) -> Broken:
        self._world.tell("checker", f"{promise}: {what}")
        return Broken(promise, what)

    def block(self, account: int, peer: int) -> None:
        self.blocks.append((account, peer, self._world.now, None))

    def unblocked(self, account: int, peer: int) -> None:
        """The server confirmed that the block is lifted."""
        self.blocks = [
            (a, p, since, self._world.now if (a, p, until) == (account, peer, None) else until)
            for a, p, since, until in self.blocks
        ]

    def surely_blocked(self, account: int, peer: int) -> None:
        """The server confirmed the block."""
        self.sure_blocks.append((account, peer, self._world.now, None))

    def unblocks(self, account: int, peer: int) -> None:
        """From now on the block may be lifted at any moment."""
        self.sure_blocks = [
            (a, p, since, self._world.now if (a, p, until) == (account, peer, None) else until)
            for a, p, since, until in self.sure_blocks
        ]

    def must_be_blocked(self, message: Message) -> bool:
        sender = message.by >> 12
        return any(
            (account, peer) == (message.to, sender)
            and since < message.sealed_at
            and (until is None or message.accepted_at < until)
            for account, peer, since, until in self.sure_blocks
        )

    def list_version_before(self, message: Message) -> int:
        """The newest device list of its recipient that was confirmed before it was sealed at all."""
        lists = self.listed.get(message.to, ())
        return max((version for when, version, _ in lists if when < message.sealed_at), default=0)

    def own_devices_before(self, message: Message) -> frozenset[int]:
        """The other devices of its author that were on a confirmed list before it was written."""
        lists = self.listed.get(message.by >> 12, ())
        known = {version: devices for when, version, devices in lists if when < message.written_at}
        return known[max(known)] - {message.by} if known else frozenset()

    def may_be_blocked(self, message: Message) -> bool:
        """Whether its author may have been blocked when it was accepted or, while it waited, later."""
        sender = message.by >> 12
        return any(
            (account, peer) == (message.to, sender) and (until is None or until >= message.sealed_at)
            for account, peer, _, until in self.blocks
        )
