"""Between a content and what travels: the port to whatever seals. `sealed.py` is what every client has.

A sealer keeps its state (keys, ratchets, lists that it believes) in the machine's store, inside the machine's open
transaction: so the advanced state is durable before the ciphertext leaves, and before an acknowledgement does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from nightmail.e2ee.errors import Undecipherable
from nightmail.e2ee.note import Note, tag_of
from nightmail.model.rows import Entry
from nightmail.wire.items import Devices

from .store import DeviceList

if TYPE_CHECKING:
    from .hub import Hub
    from .lists import Lists

Then: TypeAlias = Callable[[], None]


class Sealer(Protocol):
    # --- for whom
    def believe(self, item: Devices) -> DeviceList | None:
        """Whom to seal for, by what the server says; None: that is not to be believed, or not yet."""
        ...

    def is_held(self, account: int) -> bool:
        """Nothing may be sealed for this account before the person has agreed."""
        ...

    def ready(self, devices: Mapping[int, int], who: object, then: Then, otherwise: Then) -> bool:
        """Whether all these devices (→ registration) can be sealed for now. If not, what is missing is asked for:
        `then` is called when it is here, `otherwise` when it cannot be had; once for each `who`."""
        ...

    @property
    def is_blind(self) -> bool:
        """Nobody can be judged yet: this device waits to be told whose it is."""
        ...

    def peek(self, entries: tuple[Entry, ...]) -> None:
        """Look for that word, while blind. Whatever is found, the entries come again in their turn."""
        ...

    # --- both ways
    def fits(self, body_bytes: int) -> int:
        """The longest content whose envelope surely stays within so many bytes."""
        ...

    def seal(self, device: int, registration: int, note: Note) -> bytes:
        """One device's ciphertext. Only when `ready` has said so."""
        ...

    def knows(self, entry: Entry) -> bool:
        """Whether it can be told who wrote this. If not, its account's list must be here first."""
        ...

    def open(self, entry: Entry) -> Note:
        """What was sealed, as announced. Raises `e2ee.errors.Refused`; nothing has changed then."""
        ...

    def renew(self, device: int) -> bool:
        """What was sealed for this device did not open there: begin anew, if that is not too soon. Whether the next
        seal will be in another session."""
        ...

    # --- life
    def connected(self) -> None: ...

    def lost(self) -> None: ...

    def keys_low(self) -> None:
        """The server has few of this device's keys left to hand out."""
        ...

    def deadline(self) -> int | None: ...

    def tick(self) -> None: ...


MakeSealer: TypeAlias = "Callable[[Hub, Lists], Sealer]"

__all__ = ["MakeSealer", "Note", "Sealer", "Then", "Undecipherable", "tag_of"]
