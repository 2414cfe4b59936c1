"""Connections between simulated devices and gateways: frames in order, late, and cut at any moment.

What is on its way when a connection is cut is lost from some frame on, in each direction, and
either end may learn of it late or, when it is half open, only by its own timers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from nightmail.gateway.session import Session
from nightmail.wire.closing import CloseCode

from .world import World

if TYPE_CHECKING:
    from .front import Front

BROKEN = 1006
"""WebSocket's own number for a connection that ends without a word."""
NOTICE_MS = 200
HEADER_BYTES = 64
"""What a frame costs beyond its own bytes."""


class Near(Protocol):
    """The device at one end."""

    def opened(self, wire: Wire) -> None: ...

    def refused(self, wire: Wire, retry_ms: int) -> None: ...

    def heard(self, wire: Wire, frame: bytes) -> None: ...

    def ended(self, wire: Wire, code: int) -> None: ...


class Way:
    """One direction. Keeps its order, as TCP does."""

    __slots__ = ("_arrives", "_delay_ms", "_parcels", "_take", "_world", "broken", "size")

    def __init__(self, world: World, delay_ms: tuple[int, int], take: Callable[[bytes], None]) -> None:
        self._world, self._delay_ms, self._take = world, delay_ms, take
        self._parcels: deque[bytes | Callable[[], None]] = deque()
        self._arrives = 0
        self.size = 0
        """Bytes that nobody has confirmed."""
        self.broken = False

    def carry(self, parcel: bytes | Callable[[], None]) -> None:
        """A frame; or, in its place among them, something that is called when it arrives."""
        if isinstance(parcel, bytes):
            self.size += len(parcel) + HEADER_BYTES
        if self.broken:
            return
        world = self._world
        at = max(self._arrives, world.now + world.between(*self._delay_ms))
        self._arrives = at
        self._parcels.append(parcel)
        world.later(at - world.now, self._arrive)

    def _arrive(self) -> None:
        if not self._parcels:
            return
        parcel = self._parcels.popleft()
        if isinstance(parcel, bytes):
            self.size -= len(parcel) + HEADER_BYTES
            self._take(parcel)
        else:
            parcel()

    def cut(self) -> None:
        """Nothing more gets through, except what the other side's kernel already has."""
        if not self.broken:
            self.broken = True
            for _ in range(self._world.between(0, len(self._parcels))):
                self._parcels.pop()


class Wire:
    """One connection. For the gateway, a `Link`."""

    def __init__(self, world: World, near: Near, delay_ms: tuple[int, int], room: int) -> None:
        self._world, self._room = world, room
        self.near: Near | None = near
        """None: the device has left this connection."""
        self.front: Front | None = None
        self.session: Session | None = None
        self._up = Way(world, delay_ms, self._at_gateway)
        self._down = Way(world, delay_ms, self._at_device)
        self._closing = False
        """The gateway has said its last word."""

    # --- the device's end -----------------------------------------------------------------------

    def dial(self, find: Callable[[], Front | None]) -> None:
        """Connect to the front that `find` returns when we arrive."""
        self._up.carry(lambda: self._knock(find()))

    def say(self, frame: bytes) -> None:
        self._up.carry(frame)

    def leave(self, *, silently: bool) -> None:
        """The device is gone. If silently, the gateway goes on believing in it."""
        if self.near is None:
            return
        self.near = None
        if silently:
            self._world.hit("half-open connection")
            self._down.cut()
        else:
            self._up.carry(self._hung_up)

    def _at_device(self, frame: bytes) -> None:
        was_full = self._down.size + len(frame) + HEADER_BYTES > self._room
        if self.near is not None:
            self.near.heard(self, frame)
        if was_full and not self.unsent() and self.front is not None and not self._closing:
            self.front.wake(self)

    # --- the gateway's end ------------------------------------------------------------------------

    def _knock(self, front: Front | None) -> None:
        if front is None:
            self._down.carry(lambda: self._tell_refused(0))
        else:
            front.knock(self)

    def accept(self, front: Front, session: Session) -> None:
        self.front, self.session = front, session
        self._down.carry(self._tell_opened)

    def refuse(self, retry_ms: int) -> None:
        self._down.carry(lambda: self._tell_refused(retry_ms))

    def _tell_opened(self) -> None:
        if self.near is not None:
            self.near.opened(self)

    def _tell_refused(self, retry_ms: int) -> None:
        near, self.near = self.near, None
        if near is not None:
            near.refused(self, retry_ms)

    def _tell_ended(self, code: int) -> None:
        near, self.near = self.near, None
        if near is not None:
            near.ended(self, code)

    def _at_gateway(self, frame: bytes) -> None:
        if self.front is not None and not self._closing:
            self.front.hear(self, frame)

    def _hung_up(self) -> None:
        """The device said goodbye."""
        if self.front is not None and not self._closing:
            self.front.hung_up(self)

    def send(self, frame: bytes) -> None:
        if not self._closing:
            self._down.carry(frame)

    def close(self, code: int, sentence: str) -> None:
        if not self._closing:
            self._closing = True
            self._down.carry(partial(self._tell_ended, code))
            self._world.later(0, self._lost)
            if code == CloseCode.HELLO_TIMEOUT:
                self._world.hit("hello timeout")

    def cut(self) -> None:
        """What the socket has not taken by now is not said any more."""
        if self.unsent():
            self._down.cut()
            self._world.later(self._world.between(0, NOTICE_MS), partial(self._tell_ended, BROKEN))
        self._lost()

    def unsent(self) -> int:
        return max(0, self._down.size - self._room)

    def hold(self) -> None:
        """A wire of this world reads on: the answers are the same, only sooner."""

    def read_on(self) -> None: ...

    def stalled(self) -> bool:
        return self._down.size > 0

    def _lost(self) -> None:
        if self.front is not None:
            self.front.lost(self)

    # --- accidents --------------------------------------------------------------------------------

    def sever(self, *, half: bool) -> None:
        """The network drops it. If half, the gateway does not notice by itself."""
        self._up.cut()
        self._down.cut()
        world = self._world
        world.later(world.between(0, NOTICE_MS), partial(self._tell_ended, BROKEN))
        if not half:
            world.later(world.between(0, NOTICE_MS), self._lost)

    def orphan(self, *, silently: bool) -> None:
        """The gateway is no more."""
        self.front = self.session = None
        self._up.cut()
        self._down.cut()
        if not silently:
            self._world.later(self._world.between(0, NOTICE_MS), partial(self._tell_ended, BROKEN))
