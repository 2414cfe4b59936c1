"""What clients saw, and nothing else: the only evidence that the checkers accept."""

from __future__ import annotations

from dataclasses import dataclass, field

from nightmail.model.words import Lane, Reason

from .world import Broken, World


@dataclass
class Message:
    """One message that a person wrote, as its sending device knows it."""

    id: str
    by: int
    to: int
    lane: Lane
    n: int
    of: str | None
    """The message that this one seals again."""
    answers: str | None
    """The message that its author had just read."""
    answers_at: int
    envelopes: dict[int, frozenset[int]] = field(default_factory=dict)
    """List version → devices of the recipient that it was sealed for under that list."""
    own: frozenset[int] | None = None
    """Devices of its author that every attempt was sealed for: which attempt was accepted is not known."""
    life_ms: int = 0
    """Its own timer; 0: none."""
    sealed_at: int = 0
    """When it was sealed for the first time."""
    at: int = 0
    """Its stamp, once accepted."""
    version: int = 0
    accepted_at: int = 0
    fate: str = "waiting"
    """waiting, sent or voided."""

    @property
    def original(self) -> str:
        return self.of or self.id


@dataclass
class Shown:
    id: str
    by: int
    at: int
    seq: int
    lane: Lane


@dataclass
class Seen:
    """What one device knows for sure: it is in its own durable store."""

    shown: dict[str, Shown] = field(default_factory=dict)
    """Original id → how it was shown."""
    stored: set[tuple[int, int, Lane, int]] = field(default_factory=set)
    """(by, to, lane, n) of every entry it acknowledged as stored."""
    unreadable: set[tuple[int, int, Lane, int]] = field(default_factory=set)
    read: set[tuple[int, Lane, int]] = field(default_factory=set)
    """(by, lane, n) that its person has read, and the server confirmed."""
    read_hidden: set[tuple[int, Lane, int]] = field(default_factory=set)
    """Read while receipts may have been off, or the peer blocked: may or may not be told."""
    delivered_at: dict[tuple[int, int, Lane, int], set[int]] = field(default_factory=dict)
    """(by, to, lane, n) → devices it was told to be delivered on."""
    read_at: dict[tuple[int, int, Lane, int], set[int]] = field(default_factory=dict)
    failed_at: dict[tuple[int, int, Lane, int], dict[int, Reason]] = field(default_factory=dict)
    expired_gaps: int = 0


class History:
    """Collects across all devices, and judges what can be judged at once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.messages: dict[str, Message] = {}
        self.by_number: dict[tuple[int, int, Lane, int], Message] = {}
        self.resealed: set[str] = set()
        self.seen: dict[int, Seen] = {}
        self.removed: set[int] = set()
        self.blocks: list[tuple[int, int, int, int | None]] = []
        """(account, peer, from, until): widest interval in which a block may have been in force."""
        self.sure_blocks: list[tuple[int, int, int, int | None]] = []
        """(account, peer, from, until): narrowest interval in which a block was certainly in force."""
        self.listed: dict[int, list[tuple[int, int]]] = {}
        """Account → (when, version) of each device list that the server confirmed."""
        self.receipts_off: set[int] = set()
        """Accounts that ever had read receipts switched off."""

    def add(self, message: Message) -> None:
        self.messages[message.id] = message
        self.by_number[message.by, message.to, message.lane, message.n] = message
        if message.of:
            self.resealed.add(message.of)

    def of(self, device: int) -> Seen:
        return self.seen.setdefault(device, Seen())

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
        return max((version for when, version in lists if when < message.sealed_at), default=0)

    def may_be_blocked(self, message: Message) -> bool:
        sender = message.by >> 12
        return any(
            account == message.to
            and peer == sender
            and since <= message.accepted_at
            and (until is None or until >= message.sealed_at)
            for account, peer, since, until in self.blocks
        )
