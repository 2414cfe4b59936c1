"""The account moves to this device: it takes the old device's history, part by part.

Knows:   which device handed the account over, and which parts have come.
Touches: one errand; believed lists, contacts, conversations and messages.
Never:   seals for anybody before it knows whom the old device trusts: it would believe any key.

The old device's side, and the order of the messages between both, are in `move_out.py`.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec.structs import replace

from nightmail.client.events import Moved
from nightmail.client.machine.context import Context
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.outbox.ticks import in_group
from nightmail.client.store.rows import MessageNumber, Outgoing, ReadMark
from nightmail.client.timers.deadlines import Deadlines
from nightmail.client.timers.lives import counted, has_begun
from nightmail.client.trust.believed_lists import BelievedLists
from nightmail.e2ee.errors import Rejected
from nightmail.model.ids import account_of
from nightmail.model.spans import add_span, contains, pairs
from nightmail.model.words import Lane

from .controls import Control, HistoryPart, PastMessage, numbers, part_of

ERRAND = "moving from"
"""[old device, how many parts come first, how many there are, whether MOVED was accepted, *spans of parts]"""

_encode = msgspec.msgpack.Encoder().encode
_numbers = msgspec.msgpack.Decoder(list[int]).decode


class MoveIn:
    def __init__(self, context: Context, believed: BelievedLists, outbox: Outbox, deadlines: Deadlines) -> None:
        self._context, self._believed, self._outbox, self._deadlines = context, believed, outbox, deadlines
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
        store = self._context.store
        for row in part.trusted:
            if row.account != self._context.identity.account:
                with suppress(Rejected):
                    self._believed.adopt(row)
        for contact in part.contacts:
            if store.contact(contact.account) is None:
                store.put_contact(contact)
        for account, handle in part.handles.items():
            conversation = store.conversation(account)
            if not conversation.handle:
                store.put_conversation(replace(conversation, handle=handle))
        for past in part.messages:
            if store.message(past.id) is None and not self._deadlines.is_gone(past.id):
                self._keep_message(past)

    def _keep_message(self, past: PastMessage) -> None:
        store = self._context.store
        message = past.message()
        if has_begun(message):
            # The clocks of two devices differ: it may never live longer than its life from now on. An old device of a
            # former version counts no lives, and says no deadline.
            latest = counted(self._context, replace(message, deadline=0)).deadline
            message = replace(message, deadline=min(message.deadline or latest, latest))
        store.put_message(message)
        if past.unread and not past.own:
            lane, n = past.unread
            own = self._context.identity.account
            row = MessageNumber(past.by, own, lane, n, past.id, ReadMark.UNREAD)
            store.put_numbered(in_group(message, ReadMark.UNREAD) if past.group_seq else row)
        conversation = store.conversation(past.peer)
        store.put_conversation(replace(conversation, seen=max(conversation.seen, past.at)))
