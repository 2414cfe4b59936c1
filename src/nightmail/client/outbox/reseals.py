"""Messages that a device could not open, sealed again for it: at once the first time, later only in another session.

Knows:   which re-seals wait until another session may be begun. To seal again in one that does not work would use up
         the few attempts.
Touches: one errand for each re-seal that waits, so that a restart only delays it.
Never:   seals a message for one device more often than the limit; then it has failed there.
"""

from __future__ import annotations

import msgspec

from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Timer
from nightmail.client.messages import DeviceDelivery, Message, Tick
from nightmail.client.trust.sealer import Sealer
from nightmail.model.ids import account_of

from .outbox import Outbox
from .ticks import Ticks

ERRAND = "mend "

_encode = msgspec.msgpack.Encoder().encode
_time = msgspec.msgpack.Decoder(int).decode


class Reseals:
    def __init__(self, context: Context, sealer: Sealer, ticks: Ticks, outbox: Outbox) -> None:
        self._context, self._sealer, self._ticks, self._outbox = context, sealer, ticks, outbox
        self.timer = Timer(context, self._look)

    def reseal(self, message: Message, device: int, at: int, reason: str, *, other_session: bool) -> None:
        """Seal it again. `other_session`: not in the session in which it failed."""
        place = message.places.get(device, DeviceDelivery())
        if place.state in (Tick.DELIVERED, Tick.READ):
            return  # another number of the same message got through
        if place.reseals and not other_session and place.reseals < self._context.limits.reseals:
            self._hold(message.id, device)
        elif self._ticks.count_reseal(message, device):
            self._outbox.reseal(message, device)
        elif account_of(device) == message.peer:
            self._ticks.place(message, device, Tick.FAILED, at, reason)

    def connected(self) -> None:
        self._look()

    def _hold(self, message_id: str, device: int) -> None:
        """Wait until another session may be begun."""
        context, name = self._context, f"{ERRAND}{device:016x} {message_id}"
        if context.store.errand(name) is None:
            until = context.now + context.limits.restart_ms
            context.store.put_errand(name, _encode(until))
            self.timer.set_earlier(until)

    def _look(self) -> None:
        context, store = self._context, self._context.store
        self.timer.cancel()
        for name in store.errands(ERRAND):
            until = _time(store.errand(name) or b"\0")
            # A clock that was set back must not hold it forever.
            if context.now < until <= context.now + context.limits.restart_ms:
                self.timer.set_earlier(until)
                continue
            store.drop_errand(name)
            number, message_id = name.removeprefix(ERRAND).split(" ", 1)
            device = int(number, 16)
            if (message := store.message(message_id)) is not None:
                self._sealer.renew(device)
                self.reseal(message, device, context.now, "undecryptable", other_session=True)
