"""The account moves away from this device: its history goes to the new device, then this one revokes itself.

Knows:   the device that the account was handed to, and whether that has everything.
Touches: errands; the outbox.
Never:   revokes itself before the new device has said that it has every part.

    1. the new device says in both lanes that it is listed (READY): what was filed for this one alone is stored by then
    2. this device sends its history in parts (HISTORY): first whom it trusts, then the messages
    3. the new device says how many parts it has (MOVED); messages that came here meanwhile follow as further parts
    4. nothing is left to send: this device revokes itself
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from nightmail.client.events import Moved
from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Timer
from nightmail.client.media.rows import UPLOAD
from nightmail.client.messages import Message, Tick
from nightmail.client.outbox.control_copies import ControlCopies
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.store.rows import Contact, ReadMark, Trusted
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.model.records import Unlinked
from nightmail.model.words import Lane

from .controls import HistoryPart, PastMessage, cut, history, numbers_of, size_of_item

TO, LEAVING, LATE = "moving to", "leaving", "late "
"""Errands: before the history is sent; after that; a message that came after the history was cut."""
SETTLE_MS = 2_000
"""How often to look whether everything that was written here is at the server."""
PART_BYTES = 100
"""What a part takes around its items."""
SPARE_BYTES = 200
"""How much longer one message may be with its particulars than alone: padding leaves that much room."""
PAGE = 200

Item: TypeAlias = "tuple[int, str] | Trusted | Contact | PastMessage"

_encode = msgspec.msgpack.Encoder().encode
_numbers = msgspec.msgpack.Decoder(list[int]).decode


class MoveOut:
    def __init__(self, context: Context, e2ee: E2eeSealer, outbox: Outbox, control_copies: ControlCopies) -> None:
        self._context, self._e2ee, self._outbox, self._control_copies = context, e2ee, outbox, control_copies
        self.timer = Timer(context, self._leave)
        self._leaves = context.store.errand(LEAVING) is not None

    def begin(self, device: int) -> None:
        """The account's key was handed to this device; the history follows when it is ready."""
        self._context.store.put_errand(TO, _encode([device]))

    def take_ready(self, device: int, data: bytes) -> None:
        """The new device is listed, and said so in this lane: everything before that in the lane is stored here."""
        state, (lane,) = self._context.store.errand(TO), numbers_of(data, 1)
        if state is None or _numbers(state)[0] != device:
            return
        lanes = {*_numbers(state)[1:], lane}
        self._context.store.put_errand(TO, _encode([device, *sorted(lanes)]))
        if lanes >= set(Lane):
            self._send_history(device)

    def take_moved(self, device: int, data: bytes) -> None:
        """The new device says that it has so many parts."""
        state, (count,) = self._context.store.errand(LEAVING), numbers_of(data, 1)
        if state is not None and _numbers(state)[:2] == [device, count]:
            self._context.store.put_errand(LEAVING, _encode([device, count, 1]))
            self._control_copies.has_all(device)
            key_stock = self._e2ee.key_stock
            key_stock.put(replace(key_stock.keys, account=b""))
            self.timer.set(self._context.now)

    def message_stored(self, message: Message) -> None:
        """A message came to this device. If the history was cut already, it is sent after it."""
        if self._leaves:
            self._context.store.put_errand(f"{LATE}{message.id}", b"")

    def connected(self) -> None:
        if self._context.store.errand(LEAVING) is not None:
            self.timer.set(self._context.now + SETTLE_MS)

    # --- the history ----------------------------------------------------------------------------

    def _send_history(self, device: int) -> None:
        self._context.store.drop_errand(TO)
        self._leaves = True
        first = self._parts(self._trusted())
        self._send(device, 0, first, self._parts(self._messages()))

    def _send(self, device: int, sent: int, first: list[list[Item]], messages: list[list[Item]]) -> None:
        """Send parts, numbered after the `sent` ones before."""
        parts = [*first, *messages]
        count = sent + len(parts)
        for number, items in enumerate(parts, sent + 1):
            part = HistoryPart.of(number, count, len(first), items)
            self._outbox.control(self._context.identity.account, history(part), only=device)
        self._context.store.put_errand(LEAVING, _encode([device, count, 0]))

    def _trusted(self) -> Iterator[Item]:
        store = self._context.store
        for account in store.trusted_accounts():
            if account != self._context.identity.account and (row := store.trusted(account)) is not None:
                yield row
        yield from store.contacts()
        for row in store.conversations():
            if row.handle:
                yield row.peer, row.handle

    def _messages(self) -> Iterator[Item]:
        store = self._context.store
        unread = self._unread()
        for conversation in store.conversations():
            before = None
            while page := store.history(conversation.peer, PAGE, before):
                before = page[0].position
                # A message that is still to be sent from here reaches the new device as a copy.
                for message in page:
                    if message.at or message.state is Tick.FAILED:
                        yield PastMessage.of(message, unread.get(message.id))

    def _unread(self) -> dict[str, tuple[Lane, int]]:
        return {row.id: (row.lane, row.n) for row in self._context.store.marked(ReadMark.UNREAD)}

    def _parts(self, items: Iterator[Item]) -> list[list[Item]]:
        """At least one part, so that there is a last one. None is longer than what can be sealed."""
        room = self._e2ee.fits(self._context.body_bytes) - PART_BYTES
        longest = room + PART_BYTES + SPARE_BYTES
        # A longer one was written when the server took longer messages.
        parts = list(cut((item for item in items if size_of_item(item) <= longest), room, size_of_item))
        return parts or [[]]

    # --- the end of this device -----------------------------------------------------------------

    def _leave(self) -> None:
        """If everything that was written here is at the server, and at the new device, this device ends itself."""
        store = self._context.store
        state = store.errand(LEAVING)
        assert state is not None
        device, sent, done = _numbers(state)
        if not done:
            return
        if store.outgoing() or store.errands(UPLOAD):
            self.timer.set(self._context.now + SETTLE_MS)
            return
        if late := store.errands(LATE):
            found = [store.message(name.removeprefix(LATE)) for name in late]
            for name in late:
                store.drop_errand(name)
            unread = self._unread()
            past = (PastMessage.of(message, unread.get(message.id)) for message in found if message)
            self._send(device, sent, [], self._parts(past))
            return
        self._context.tell(Moved(device))
        self._context.ask(Unlinked(self._context.identity.device))
