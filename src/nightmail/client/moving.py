"""An account moves to another device: its history goes there, sealed, and then the old device ends itself.

Knows:   both ends. Old: the guest that the account was handed to, and when it has everything. New: which parts came.
Touches: errands; on the new device, whose keys are believed, contacts and messages.
Never:   ends the old device before the new one has said that all of it is there.

    1. the new device says that it is listed, in both lanes: what was filed for the old one alone stands before that
    2. the old device sends its parts: first whom it trusts, and then what was said
    3. the new one says how many it has; whatever came meanwhile to the old one follows as further parts
    4. nothing is left to send: the old device ends itself

Before the first kind of part is there, the new device seals for nobody: it would believe any key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from nightmail.e2ee.errors import Refused
from nightmail.model.ids import account_of
from nightmail.model.records import Unlinked
from nightmail.model.spans import add_span, contains, pairs
from nightmail.model.words import Lane

from .controls import Control, Part, Past, history, numbers_of, size_of_item, words
from .events import Moved
from .hub import Hub
from .keyring import Keyring
from .messages import Message, Tick
from .outbox import Outbox
from .store import Contact, Mark, Numbered, Trusted
from .trust import Trust

TO, FROM, LEAVING, LATE = "moving to", "moving from", "leaving", "late "
SETTLE_MS = 2_000
"""How often it is looked whether everything that was written here is at the server."""
PART_BYTES = 100
"""What a part takes around its items."""
SPARE_BYTES = 200
"""What one message may be longer with its particulars than alone: padding leaves room for so much."""
PAGE = 200

Item: TypeAlias = "tuple[int, str] | Trusted | Contact | Past"

_encode = msgspec.msgpack.Encoder().encode
_numbers = msgspec.msgpack.Decoder(list[int]).decode


class Moving:
    def __init__(self, hub: Hub, keyring: Keyring, trust: Trust, outbox: Outbox, fits: Callable[[int], int]) -> None:
        self._hub, self._keyring, self._trust, self._outbox, self._fits = hub, keyring, trust, outbox, fits
        self._due: int | None = None
        self._awaits = not self._has_trust()
        self._leaves = hub.store.errand(LEAVING) is not None

    # --- the old device -------------------------------------------------------------------------

    def hand_over(self, device: int) -> None:
        """The account's key was handed to this device; the history follows."""
        self._hub.store.put_errand(TO, _encode([device]))

    def ready(self, device: int, data: bytes) -> None:
        """The new device is listed, and said so in this lane: everything that came before is stored here."""
        state, (lane,) = self._hub.store.errand(TO), numbers_of(data, 1)
        if state is None or _numbers(state)[0] != device:
            return
        lanes = {*_numbers(state)[1:], lane}
        self._hub.store.put_errand(TO, _encode([device, *sorted(lanes)]))
        if lanes >= set(Lane):
            self._send_history(device)

    def connected(self) -> None:
        if self._hub.store.errand(LEAVING) is not None:
            self._due = self._hub.now + SETTLE_MS

    def lost(self) -> None:
        self._due = None

    def deadline(self) -> int | None:
        return self._due

    def tick(self) -> None:
        if self._due is not None and self._hub.now >= self._due and self._hub.online:
            self._due = None
            if self._hub.store.errand(LEAVING) is not None:
                self._leave()

    def stored(self, message: Message) -> None:
        """A message came to this device. If the history was cut already, it goes after it."""
        if self._leaves:
            self._hub.store.put_errand(f"{LATE}{message.id}", b"")

    def _send_history(self, device: int) -> None:
        self._hub.store.drop_errand(TO)
        self._leaves = True
        ahead = list(self._parts(self._trusted()))
        self._send(device, 0, ahead, list(self._parts(self._said())))

    def _send(self, device: int, sent: int, ahead: list[list[Item]], said: list[list[Item]]) -> None:
        """Parts of both kinds, numbered after those that were sent."""
        parts = [*ahead, *said]
        count = sent + len(parts)
        for number, items in enumerate(parts, sent + 1):
            part = Part.of(number, count, len(ahead), items)
            self._outbox.control(self._hub.identity.account, history(part), only=device)
        self._hub.store.put_errand(LEAVING, _encode([device, count, 0]))

    def _trusted(self) -> Iterator[Item]:
        store = self._hub.store
        for account in store.trusted_accounts():
            if account != self._hub.identity.account and (row := store.trusted(account)) is not None:
                yield row
        yield from store.contacts()
        for row in store.conversations():
            if row.handle:
                yield row.peer, row.handle

    def _said(self) -> Iterator[Item]:
        store = self._hub.store
        unread = self._unread()
        for conversation in store.conversations():
            before = None
            while page := store.history(conversation.peer, PAGE, before):
                before = page[0].position
                # What is still to be sent from here, the new device gets as a copy then.
                for message in page:
                    if message.at or message.state is Tick.FAILED:
                        yield Past.of(message, unread.get((message.id, message.by)))

    def _unread(self) -> dict[tuple[str, int], tuple[Lane, int]]:
        return {(row.id, row.by): (row.lane, row.n) for row in self._hub.store.marked(Mark.UNREAD)}

    def _parts(self, items: Iterator[Item]) -> Iterator[list[Item]]:
        """At least one, so that there is a last. None is longer than what can be sealed."""
        room = self._fits(self._hub.body_bytes) - PART_BYTES
        held: list[Item] = []
        size = 0
        for item in items:
            length = size_of_item(item)
            if length > room + PART_BYTES + SPARE_BYTES:
                continue  # it was written when the server took longer ones
            if held and size + length > room:
                yield held
                held, size = [], 0
            held.append(item)
            size += length
        yield held

    def arrived(self, device: int, data: bytes) -> None:
        """The new device says that it has so many parts."""
        state, (count,) = self._hub.store.errand(LEAVING), numbers_of(data, 1)
        if state is not None and _numbers(state)[:2] == [device, count]:
            self._hub.store.put_errand(LEAVING, _encode([device, count, 1]))
            self._outbox.spoken.has_all(device)
            self._keyring.put(replace(self._keyring.keys, account=b""))
            self._due = self._hub.now

    def _leave(self) -> None:
        """Everything that was written here is at the server: this device is no longer needed."""
        store = self._hub.store
        state = store.errand(LEAVING)
        assert state is not None
        device, sent, done = _numbers(state)
        if not done:
            return
        if store.outgoing():
            self._due = self._hub.now + SETTLE_MS
            return
        if late := store.errands(LATE):
            found = [store.message(name.removeprefix(LATE)) for name in late]
            for name in late:
                store.drop_errand(name)
            unread = self._unread()
            past = (Past.of(message, unread.get((message.id, message.by))) for message in found if message)
            self._send(device, sent, [], list(self._parts(past)))
            return
        self._hub.tell(Moved(device))
        self._hub.ask(Unlinked(self._hub.identity.device))

    # --- the new device -------------------------------------------------------------------------

    @property
    def awaits(self) -> bool:
        """It is not known yet whom the old device trusts; unless that one has gone."""
        if not self._awaits:
            return False
        state, own = self._hub.store.errand(FROM), self._trust.of(self._hub.identity.account)
        return state is not None and own is not None and any(a.device == _numbers(state)[0] for a in own.devices)

    def expect(self, device: int) -> None:
        """The account was handed to this device by that one."""
        self._hub.store.put_errand(FROM, _encode([device, 0, 0, 0]))
        self._awaits = True
        for lane in Lane:
            self._outbox.control(account_of(device), words(Control.READY, [lane]), only=device, lane=lane)

    def take(self, device: int, part: Part) -> None:
        """A part, in whatever order they come."""
        store = self._hub.store
        state = store.errand(FROM)
        if state is None or _numbers(state)[0] != device:
            return
        _, ahead, count, told, *spans = _numbers(state)
        if not contains(spans, part.number):
            self._keep(part)
            add_span(spans, part.number, part.number)
        ahead, count = max(ahead, part.ahead), max(count, part.count)
        whole = list(pairs(spans)) == [(1, count)]
        store.put_errand(FROM, _encode([device, ahead, count, told, *spans]))
        if self._awaits and self._has_trust():
            self._awaits = False
            for agreed in self._hub.agreed:
                agreed(self._hub.identity.account)
        if whole:
            self._outbox.control(account_of(device), words(Control.MOVED, [count]), only=device)

    def said(self) -> None:
        """The server has the word that the old device waits for: now somebody may leave."""
        store = self._hub.store
        if (state := store.errand(FROM)) is not None and not (numbers := _numbers(state))[3]:
            numbers[3] = 1
            store.put_errand(FROM, _encode(numbers))
            self._hub.tell(Moved(self._hub.identity.device))

    def _has_trust(self) -> bool:
        if (state := self._hub.store.errand(FROM)) is None:
            return True
        _, ahead, _, _, *spans = _numbers(state)
        return ahead > 0 and all(contains(spans, number) for number in range(1, ahead + 1))

    def _keep(self, part: Part) -> None:
        store = self._hub.store
        for row in part.trusted:
            if row.account != self._hub.identity.account:
                with suppress(Refused):
                    self._trust.adopt(row)
        for contact in part.contacts:
            if store.contact(contact.account) is None:
                store.put_contact(contact)
        for account, handle in part.handles.items():
            conversation = store.conversation(account)
            if not conversation.handle:
                store.put_conversation(replace(conversation, handle=handle))
        for past in part.messages:
            if store.message(past.id) is None:
                store.put_message(past.message())
                if past.unread and not past.own:
                    lane, n = past.unread
                    own = self._hub.identity.account
                    store.put_numbered(Numbered(past.by, own, lane, n, past.id, Mark.UNREAD))
                conversation = store.conversation(past.peer)
                store.put_conversation(replace(conversation, seen=max(conversation.seen, past.at)))
