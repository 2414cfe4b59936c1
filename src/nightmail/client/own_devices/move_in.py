"""The account moves to this device: it takes the old device's history, part by part.

Knows:   which device handed the account over, and which parts have come.
Touches: one errand; what `past.py` touches.
Never:   seals for anybody before it knows whom the old device trusts: it would believe any key.

The old device's side, and the order of the messages between both, are in `move_out.py`.
"""

from __future__ import annotations

import msgspec

from nightmail.client.events import Moved
from nightmail.client.machine.context import Context
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.store.rows import Outgoing
from nightmail.client.trust.believed_lists import BelievedLists
from nightmail.model.ids import account_of
from nightmail.model.spans import add_span, contains, pairs
from nightmail.model.words import Lane

from .controls import Control, HistoryPart, numbers, part_of
from .past import Past

ERRAND = "moving from"
"""[old device, how many parts come first, how many there are, whether MOVED was accepted, *spans of parts]"""

_encode = msgspec.msgpack.Encoder().encode
_numbers = msgspec.msgpack.Decoder(list[int]).decode


class MoveIn:
    def __init__(self, context: Context, believed: BelievedLists, outbox: Outbox, past: Past) -> None:
        self._context, self._believed, self._outbox, self._past = context, believed, outbox, past
        self._awaits_trust = not self._has_trust()

    @property
    def awaits_trust(self) -> bool:
        """The old device has yet to say whom it trusts; unless it has gone."""
        if not self._awaits_trust:
            return False
        state, own = self._context.store.errand(ERRAND), self._believed.of(self._context.identity.account)
        return state is not None and own is not None and any(a.device == _numbers(state)[0] for a in own.devices)

    def expect(self, device: int) -> None:
        """That device handed the account to this one."""
        self._context.store.put_errand(ERRAND, _encode([device, 0, 0, 0]))
        self._awaits_trust = True
        for lane in Lane:
            self._outbox.control(account_of(device), numbers(Control.READY, [lane]), only=device, lane=lane)

    def take(self, device: int, data: bytes) -> None:
        """A part, in whatever order they come. Raises BadEncoding."""
        part, store = part_of(data), self._context.store
        state = store.errand(ERRAND)
        if state is None or _numbers(state)[0] != device:
            return
        _, first, count, told, *spans = _numbers(state)
        if not contains(spans, part.number):
            self._keep(part)
            add_span(spans, part.number, part.number)
        first, count = max(first, part.first), max(count, part.count)
        is_whole = list(pairs(spans)) == [(1, count)]
        store.put_errand(ERRAND, _encode([device, first, count, told, *spans]))
        if self._awaits_trust and self._has_trust():
            self._awaits_trust = False
            self._context.signals.unblocked(self._context.identity.account)
        if is_whole:
            self._outbox.control(account_of(device), numbers(Control.MOVED, [count]), only=device)

    def moved_accepted(self, row: Outgoing) -> None:
        """The server has MOVED, which the old device waits for. Only now may the app be told: it may end this
        process as soon as it knows."""
        store = self._context.store
        if (state := store.errand(ERRAND)) is not None and not (found := _numbers(state))[3]:
            found[3] = 1
            store.put_errand(ERRAND, _encode(found))
            self._context.signals.moved_from(found[0])
            self._context.tell(Moved(self._context.identity.device))

    def _has_trust(self) -> bool:
        if (state := self._context.store.errand(ERRAND)) is None:
            return True
        _, first, _, _, *spans = _numbers(state)
        return first > 0 and all(contains(spans, number) for number in range(1, first + 1))

    def _keep(self, part: HistoryPart) -> None:
        for row in part.trusted:
            self._past.trust(row)
        for contact in part.contacts:
            self._past.keep_contact(contact)
        for account, handle in part.handles.items():
            self._past.keep_handle(account, handle)
        for past in part.messages:
            self._past.keep_message(past)
