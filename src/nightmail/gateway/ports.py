"""The two sides of a session, named: the socket it writes to, and the gateway it belongs to.

    socket  ◄── Link ──  session  ── Host ──►  gateway
                            ▲                     │
                            └──── SessionPort ────┘

Knows:   only signatures. `Shared` holds what every session of one gateway uses and none of them replaces.
Never:   decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from nightmail.engine.ports import Desk, Seat
from nightmail.model.forms import Form
from nightmail.model.records import Record
from nightmail.wire.closing import CloseCode

from .budgets import Budgets
from .counters import Counters
from .limits import GatewayLimits
from .wheel import Wheel

if TYPE_CHECKING:
    from .groups import NodeGroups
    from .presence import NodePresence


class Link(Protocol):
    """The socket, as far as a session knows it."""

    def send(self, frame: bytes) -> None: ...

    def close(self, code: int, sentence: str) -> None:
        """Send the reason and stop writing. The session calls `cut` later if the peer does not hang up."""
        ...

    def cut(self) -> None:
        """Drop the connection without waiting for unsent bytes."""
        ...

    def unsent(self) -> int:
        """Bytes that wait in this process."""
        ...

    def hold(self) -> None:
        """Read nothing more from the peer until `read_on`."""
        ...

    def read_on(self) -> None: ...

    def stalled(self) -> bool:
        """Whether the peer has not yet confirmed all bytes. Costs more than `unsent`."""
        ...


class GoneLink:
    """The link of a session whose connection is gone: timers that are still set may ask it for anything."""

    def send(self, frame: bytes) -> None: ...

    def close(self, code: int, sentence: str) -> None: ...

    def cut(self) -> None: ...

    def unsent(self) -> int:
        return 0

    def hold(self) -> None: ...

    def read_on(self) -> None: ...

    def stalled(self) -> bool:
        return True


GONE = GoneLink()


class Shared:
    """What all sessions of one gateway use. `clock` is the wall clock, `pace` never jumps; both in ms."""

    __slots__ = ("clock", "counters", "desk", "form", "items_max", "limits", "node", "pace", "wheel")

    def __init__(
        self,
        desk: Desk,
        form: Form,
        limits: GatewayLimits,
        clock: Callable[[], int],
        pace: Callable[[], int],
        node: str,
    ) -> None:
        self.desk, self.form, self.limits, self.clock, self.pace, self.node = desk, form, limits, clock, pace, node
        self.counters = Counters()
        self.wheel = Wheel(pace())
        self.items_max = limits.items_burst + limits.sends_burst
        """Items in one frame. A larger frame exceeds one of the two limits in any case."""


class DeviceWaker(Protocol):
    """Who wakes devices that are not connected."""

    def came(self, device: int) -> None:
        """The device is connected."""
        ...

    def left(self, device: int) -> None:
        """Its connection has ended, or it does not acknowledge any more."""
        ...

    def stop(self) -> None:
        """Devices are sent elsewhere from now on: none of them sleeps because of that."""
        ...


class SessionPort(Protocol):
    """What the gateway may ask of a session."""

    queued: bool
    """The session is on the list for the end of this turn. Only `Turns` writes it."""

    @property
    def device(self) -> int:
        """0 until the device has been recognized."""
        ...

    @property
    def seat(self) -> Seat | None:
        """The device's place in the registry; None until the device has been recognized."""
        ...

    @property
    def heard(self) -> int:
        """When the last frame arrived."""
        ...

    @property
    def suspect(self) -> bool:
        """Whether the device does not acknowledge what it was offered: it counts as offline."""
        ...

    @property
    def draining(self) -> bool:
        """Whether the device still catches up with what waited when it connected."""
        ...

    def flush(self, now: int, *, pressed: bool) -> bool:
        """Send everything pending as one frame. Returns whether another frame could follow at once."""
        ...

    def grew(self, lane: int) -> None:
        """There is something new in a lane, or among the receipts (`pump.RECEIPTS`)."""
        ...

    def low(self) -> None:
        """The device should publish more keys."""
        ...

    def close(self, code: CloseCode) -> None:
        """Say why, and close. The session then calls `Host.remove`."""
        ...


class Host(Protocol):
    """What a session may ask of the gateway."""

    @property
    def budgets(self) -> Budgets:
        """What the session's device may do, over all connections."""
        ...

    @property
    def presence(self) -> NodePresence | None:
        """None if this server does not tell of presence."""
        ...

    @property
    def groups(self) -> NodeGroups:
        """Takes what is asked about groups."""
        ...

    def greet(self, check: Callable[[], None], network: str = "") -> None:
        """Run `check` when it is this newcomer's turn. Networks take turns."""
        ...

    def seat(self, session: SessionPort, line: int) -> Seat:
        """The device is recognized and answers to it go to `line`. Closes an older session of the same device."""
        ...

    def suspect(self, session: SessionPort) -> None:
        """The device does not acknowledge: give up its seat, so that others take it for offline."""
        ...

    def renew_seat(self, session: SessionPort, now: int) -> None:
        """The device is still connected, or acknowledges again."""
        ...

    def remove(self, session: SessionPort) -> None:
        """The session has ended. May be called again."""
        ...

    def submit(self, records: Sequence[Record]) -> None:
        """Hand records to the desk. Their form was checked."""
        ...

    def ready(self, session: SessionPort) -> None:
        """The session has something to send or to pull: call its `flush` at the end of this turn."""
        ...
