"""An account moves to another device: its history goes there, sealed, and then the old device ends itself.

Knows:   both ends. Old: the guest that the account was handed to, and when it has everything. New: which parts came.
Touches: errands; on the new device, messages.
Never:   ends the old device before the new one has said that all of it is there.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from nightmail.model.ids import account_of
from nightmail.model.records import Unlinked

from .controls import Control, Part, Past, control, history
from .events import Moved
from .hub import Hub
from .keyring import Keyring
from .outbox import Outbox

TO, FROM, LEAVING = "moving to", "moving from", "leaving"
SETTLE_MS = 2_000
"""What was filed for the old device alone comes within this, once the new one is listed."""
PART_BYTES = 40_000
PAGE = 200

_encode = msgspec.msgpack.Encoder().encode
_number = msgspec.msgpack.Decoder(int).decode
_numbers = msgspec.msgpack.Decoder(list[int]).decode


class Moving:
    def __init__(self, hub: Hub, keyring: Keyring, outbox: Outbox) -> None:
        self._hub, self._keyring, self._outbox = hub, keyring, outbox
        self._due: int | None = None

    # --- the old device -------------------------------------------------------------------------

    def hand_over(self, device: int) -> None:
        """The account's key was handed to this device; the history follows."""
        self._hub.store.put_errand(TO, _encode(device))
        self._due = self._hub.now + SETTLE_MS

    def connected(self) -> None:
        store = self._hub.store
        if store.errand(TO) is not None or store.errand(LEAVING) is not None:
            self._due = self._hub.now + SETTLE_MS

    def lost(self) -> None:
        self._due = None

    def deadline(self) -> int | None:
        return self._due

    def tick(self) -> None:
        hub, store = self._hub, self._hub.store
        if self._due is None or hub.now < self._due or not hub.online:
            return
        self._due = None
        if (to := store.errand(TO)) is not None:
            self._send_history(_number(to))
        elif store.errand(LEAVING) is not None:
            self._leave()

    def _send_history(self, device: int) -> None:
        store = self._hub.store
        store.drop_errand(TO)
        store.put_errand(LEAVING, _encode([device, 0]))
        handles = {row.peer: row.handle for row in store.conversations() if row.handle}
        parts = list(self._parts())
        for number, messages in enumerate(parts, 1):
            part = Part(number, len(parts), handles if number == 1 else {}, messages)
            self._outbox.control(self._hub.identity.account, history(part), only=device)

    def _parts(self) -> Iterator[tuple[Past, ...]]:
        """At least one, so that there is a last."""
        store = self._hub.store
        held: list[Past] = []
        size = 0
        for conversation in store.conversations():
            before = None
            while page := store.history(conversation.peer, PAGE, before):
                before = page[0].position
                for message in page:
                    if not message.at:
                        continue  # still to be sent from here: the new device gets its copy then
                    if size + len(message.body) > PART_BYTES:
                        yield tuple(held)
                        held, size = [], 0
                    held.append(Past.of(message))
                    size += len(message.body) + 200
        yield tuple(held)

    def arrived(self, device: int) -> None:
        """The new device says that it has everything."""
        state = self._hub.store.errand(LEAVING)
        if state is not None and _numbers(state)[0] == device:
            self._hub.store.put_errand(LEAVING, _encode([device, 1]))
            self._keyring.put(replace(self._keyring.keys, account=b""))
            self._due = self._hub.now

    def _leave(self) -> None:
        """Everything that was written here is at the server: this device is no longer needed."""
        state = self._hub.store.errand(LEAVING)
        assert state is not None
        device, done = _numbers(state)
        if not done:
            return
        if self._hub.store.outgoing():
            self._due = self._hub.now + SETTLE_MS
            return
        self._hub.tell(Moved(device))
        self._hub.ask(Unlinked(self._hub.identity.device))

    # --- the new device -------------------------------------------------------------------------

    def expect(self, device: int) -> None:
        """The account was handed to this device by that one."""
        self._hub.store.put_errand(FROM, _encode([device, 0]))

    def take(self, device: int, part: Part) -> None:
        store = self._hub.store
        state = store.errand(FROM)
        if state is None or _numbers(state)[0] != device or part.number != _numbers(state)[1] + 1:
            return
        for account, handle in part.handles.items():
            conversation = store.conversation(account)
            if not conversation.handle:
                store.put_conversation(replace(conversation, handle=handle))
        for past in part.messages:
            if store.message(past.id) is None:
                store.put_message(past.message())
                conversation = store.conversation(past.peer)
                store.put_conversation(replace(conversation, seen=max(conversation.seen, past.at)))
        if part.number < part.count:
            store.put_errand(FROM, _encode([device, part.number]))
            return
        store.drop_errand(FROM)
        self._outbox.control(
            account_of(device), control(Control.MOVED, b""), only=device,
            # The old device waits for this word: only when the server has it may somebody leave.
            then=lambda: self._hub.tell(Moved(self._hub.identity.device)),
        )  # fmt: skip
