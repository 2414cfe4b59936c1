"""Who is connected where, over all nodes: the `Registry` of a cluster.

Knows:   the seats of this node; what it has not been able to say of them; whom it has woken, or let others wake.
Touches: the seats that all nodes share; where those are away or not whole, the other nodes.
Never:   wakes a device of which some node may hold a connection, however long nobody can tell.

A node knows its own connections for certain. So it says them again whenever what is shared may have lost them, and
signs there only while all of them are said. A wake needs the signature of every node, or its word (`Peers`). If
nothing is shared, the other nodes are asked each time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from msgspec import Struct

from nightmail.engine.memory import WAKE_MS, Wakes
from nightmail.engine.ports import HELD, Failed, Seat

from .ports import Peers, SharedSeats, WakeClaim
from .wake_votes import WakeVotes


class RegistryLimits(Struct, frozen=True):
    seat_ms: int = 90_000
    """A seat that is not renewed for so long is free; a node that says nothing for so long holds nobody."""
    sign_ms: int = 1_000
    """How often a node signs."""
    vote_ms: int = 2_000
    """How long the other nodes have to answer."""
    unknown_ms: int = 1_000
    """If nobody knows whether a device is connected, it is asked again after so long."""
    again: int = 500
    """Seats that are said again at a time."""


class HeldSeat(Struct):
    """A connection of this node."""

    seat: Seat
    since: int
    """By which it is stored."""


class ClusterRegistry:
    """`Registry`. Call `tick` several times a second."""

    def __init__(
        self, node: int, seats: SharedSeats | None, peers: Peers, pace: Callable[[], int],
        limits: RegistryLimits | None = None,
    ) -> None:  # fmt: skip
        self._node, self._seats, self._peers, self._pace = node, seats, peers, pace
        self._limits = limits or RegistryLimits()
        self._on_displaced: Callable[[int, Seat], None] = lambda _device, _seat: None
        self._here: dict[int, HeldSeat] = {}
        self._unsaid: dict[int, HeldSeat] = {}
        """Those of `_here` that are perhaps not in what is shared."""
        self._unleft: dict[tuple[int, int], tuple[Seat, int]] = {}
        """(Device, connection) → what is perhaps still there though it was left, and when; the longest ago first."""
        self._wakes, self._granted = Wakes(), Wakes(WAKE_MS + self._limits.vote_ms)
        """Whom this node has pushed to, and whom it has let others push to, which they may still do."""
        self._votes = WakeVotes(peers, self._limits.vote_ms, self._limits.seat_ms)
        self._epoch = ""
        self._signing = False
        self._sign_at = 0
        self.lost_at: int | None = None
        self.away = seats is not None
        """Whether what is shared did not answer last time."""

    def attend(self, on_displaced: Callable[[int, Seat], None]) -> None:
        self._on_displaced = on_displaced

    def holds(self, device: int) -> bool:
        return device in self._here

    @property
    def held(self) -> int:
        """How many devices this node holds."""
        return len(self._here)

    @property
    def unsaid(self) -> int:
        return len(self._unsaid)

    # --- coming and going -------------------------------------------------------------------------

    def take(self, device: int, seat: Seat, now: int) -> None:
        held = self._here.get(device)
        is_new = held is None or held.seat != seat
        if held is None or is_new:
            held = self._here[device] = HeldSeat(seat, seat.since)
        self._say(device, held, wins=is_new)

    def _say(self, device: int, held: HeldSeat, *, wins: bool) -> None:
        if self._seats is not None:
            seat = held.seat._replace(since=held.since)
            self._seats.take(device, seat, partial(self._said, device, held), wins=wins)

    def _said(self, device: int, held: HeldSeat, since: int | Failed) -> None:
        if self._here.get(device) is not held:
            return  # It has left, or come again, meanwhile.
        if isinstance(since, Failed):
            self._unsaid[device] = held
            return
        self._unsaid.pop(device, None)
        if since:
            held.since = since
        else:
            del self._here[device]
            self._on_displaced(device, held.seat)

    def find(self, device: int, now: int, then: Callable[[Seat | None], None]) -> None:
        if held := self._here.get(device):
            then(held.seat)
        elif self._seats is None:
            then(None)
        else:
            self._seats.find(device, lambda found: then(None if isinstance(found, Failed) else found))

    def leave(self, device: int, seat: Seat, then: Callable[[bool], None]) -> None:
        held = self._here.get(device)
        if held is not None and held.seat == seat:
            del self._here[device]
            self._unsaid.pop(device, None)
        if self._seats is None:
            then(True)
        else:
            self._get_up(device, seat, then)

    def _get_up(self, device: int, seat: Seat, then: Callable[[bool], None]) -> None:
        assert self._seats is not None
        place = device, seat.connection

        def left(was_mine: bool | Failed) -> None:
            if isinstance(was_mine, Failed):
                self._unleft.setdefault(place, (seat, self._pace()))
                then(True)
            else:
                self._unleft.pop(place, None)
                then(was_mine)

        self._seats.leave(device, seat, left)

    # --- time -------------------------------------------------------------------------------------

    def tick(self) -> None:
        now = self._pace()
        self._votes.tick(now)
        if self._seats is None or self._signing or now < self._sign_at:
            return
        self._sign_at, self._signing = now + self._limits.sign_ms, True
        # What is on its way arrives before the signature, or neither does.
        self._seats.sign(self._node, self._epoch, is_whole=not self._unsaid, done=self._signed)

    def _signed(self, epoch: str | Failed) -> None:
        self._signing = False
        self.away = isinstance(epoch, Failed)
        if isinstance(epoch, Failed):
            return
        if epoch != self._epoch:
            if self._epoch:
                self.lost_at = self._pace()
            self._epoch, self._unsaid = epoch, dict(self._here)
        if self._unsaid or self._unleft:
            self._say_again()
            self._sign_at = 0  # As soon as they are said: until then nobody knows of them.

    def _say_again(self) -> None:
        for device, held in list(self._unsaid.items())[: self._limits.again]:
            self._say(device, held, wins=False)
        ended = self._pace() - self._limits.seat_ms
        for place, (seat, at) in list(self._unleft.items())[: self._limits.again]:
            if at <= ended:
                del self._unleft[place]
            else:
                self._get_up(place[0], seat, lambda _: None)

    # --- who wakes a device -----------------------------------------------------------------------

    def claim_wake(self, device: int, now: int, then: Callable[[int], None]) -> None:
        if wait_ms := self._known(device, now):
            then(wait_ms)
        elif self._seats is None or not self._epoch:
            self._vote(device, self._peers.nodes, then)
        else:
            self._seats.claim(device, self._epoch, self._peers.nodes, partial(self._claimed, device, then))

    def _known(self, device: int, now: int) -> int:
        """By what this node knows itself: held here, or somebody may be pushing to it just now."""
        if device in self._here:
            return HELD
        return self._wakes.wait_ms(device, now) or self._granted.wait_ms(device, now)

    def _claimed(self, device: int, then: Callable[[int], None], claim: WakeClaim | Failed) -> None:
        if isinstance(claim, Failed):
            self._vote(device, self._peers.nodes, then)
        elif claim.wait_ms:
            then(claim.wait_ms)
        else:
            self._vote(device, claim.unsigned, then)

    def _vote(self, device: int, nodes: Collection[int], then: Callable[[int], None]) -> None:
        """What is shared cannot say it of these nodes: each of them is asked."""
        self._votes.begin(device, nodes, self._pace(), partial(self._voted, device, then))

    def _voted(self, device: int, then: Callable[[int], None], wait_ms: int | None) -> None:
        now = self._pace()
        if wait_ms is None:
            then(self._limits.unknown_ms)
        else:
            # Meanwhile the device may have come here, or another node have been let go first.
            then(wait_ms or self._known(device, now) or self._wakes.claim(device, now))

    def asked(self, node: int, device: int) -> int:
        """Another node wants to wake a device: what this one knows of it.

        Of two that ask each other the one with the smaller number goes first, and the other waits for it.
        """
        now = self._pace()
        if device in self._here:
            return HELD
        if self._votes.is_open(device) and self._node < node:
            return WAKE_MS
        if not (wait_ms := self._wakes.wait_ms(device, now)):
            self._granted.note(device, now)
        return wait_ms
