"""What a device could not open, sealed again for it: at once the first time, later only in a session begun anew.

Knows:   which re-seals wait until a session may be begun. To say it again in one that does not work would use them up.
Touches: one errand for each that waits, so that a restart only delays it.
Never:   seals a message for one device more often than it may; the end of that is *failed*.
"""

from __future__ import annotations

import msgspec

from nightmail.model.ids import account_of

from .hub import Hub
from .messages import Message, Place, Tick
from .outbox import Outbox
from .sealer import Sealer
from .ticks import Ticks

ERRAND = "mend "

_encode = msgspec.msgpack.Encoder().encode
_time = msgspec.msgpack.Decoder(int).decode


class Mending:
    def __init__(self, hub: Hub, sealer: Sealer, ticks: Ticks, outbox: Outbox) -> None:
        self._hub, self._sealer, self._ticks, self._outbox = hub, sealer, ticks, outbox
        self._due: int | None = None

    def mend(self, message: Message, device: int, at: int, reason: str, *, anew: bool) -> None:
        """Seal it again; `anew`: in another session than the one in which that failed."""
        place = message.places.get(device, Place())
        if place.state in (Tick.DELIVERED, Tick.READ):
            return  # another number of the same message got through
        if place.reseals and not anew and place.reseals < self._hub.limits.reseals:
            self._hold(message.id, device)
        elif self._ticks.count_reseal(message, device):
            self._outbox.reseal(message, device)
        elif account_of(device) == message.peer:
            self._ticks.place(message, device, Tick.FAILED, at, reason)

    def connected(self) -> None:
        self._look()

    def lost(self) -> None:
        self._due = None

    def deadline(self) -> int | None:
        return self._due

    def tick(self) -> None:
        if self._due is not None and self._hub.now >= self._due:
            self._look()

    def _hold(self, message_id: str, device: int) -> None:
        """Until then a session may be begun; or one was since, for something else."""
        hub, name = self._hub, f"{ERRAND}{device:016x} {message_id}"
        if hub.store.errand(name) is None:
            until = hub.now + hub.limits.restart_ms
            hub.store.put_errand(name, _encode(until))
            self._due = until if self._due is None else min(self._due, until)

    def _look(self) -> None:
        hub, store = self._hub, self._hub.store
        self._due = None
        for name in store.errands(ERRAND):
            until = _time(store.errand(name) or b"\0")
            # A clock that was set back must not hold it for ever.
            if hub.now < until <= hub.now + hub.limits.restart_ms:
                self._due = until if self._due is None else min(self._due, until)
                continue
            store.drop_errand(name)
            number, message_id = name.removeprefix(ERRAND).split(" ", 1)
            device = int(number, 16)
            if (message := store.message(message_id)) is not None:
                self._sealer.renew(device)
                self.mend(message, device, hub.now, "undecryptable", anew=True)
