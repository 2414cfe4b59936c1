"""Entries that cannot be opened yet, because a key or the group is not known here; and asking for what is missing.

Knows:   what waits for which key, and what was asked of whom.
Touches: one errand for each entry, and one for each key that was asked for.
Never:   asks twice for one key, or more often in an hour than the limit; or keeps more entries than the limit.

An entry that waits is stored, so it is acknowledged like any other. Its author hears what is missing from this device.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nightmail.client.machine.context import Context
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.trust.believed_lists import BelievedLists
from nightmail.e2ee.errors import NotListed, Rejected
from nightmail.e2ee.groups.sealing import decode_group_message
from nightmail.e2ee.identity import Address
from nightmail.model.ids import account_of
from nightmail.model.rows import GroupEntry

from . import controls

ERRAND, ASKED = "group entry ", "group asked "
"""Errands: an entry; a key that was asked for, and when."""
ENTRIES_MAX = 256
"""Of one group."""
HOUR_MS = 3_600_000
ANSWER_MS = 10_000
"""So long a key that was asked for may be on its way. What comes later under the same key is then asked for by itself:
its author may have another chain by now, and does not hand on the former one."""

_encode = msgspec.msgpack.Encoder().encode
_entry = msgspec.msgpack.Decoder(GroupEntry).decode
_time = msgspec.msgpack.Decoder(int).decode


class WaitingEntries:
    def __init__(self, context: Context, believed: BelievedLists, outbox: Outbox) -> None:
        self._context, self._believed, self._outbox = context, believed, outbox
        self._asked: list[int] = []
        """When something was asked for, within the hour."""
        self._asked_ids: set[str] = set()
        """Messages that were asked for: a message is asked for once, until a restart."""

    # --- what waits -----------------------------------------------------------------------------

    def has_room(self, group: int) -> bool:
        return len(self._context.store.errands(_prefix(group))) < ENTRIES_MAX

    def put(self, entry: GroupEntry) -> bool:
        """Let it wait; False: too many do."""
        store, group = self._context.store, entry.to
        if not self.has_room(group):
            return False
        store.put_errand(f"{_prefix(group)}{entry.group_seq:016x} {entry.id}", _encode(entry))
        return True

    def take(self, group: int, device: int | None = None) -> Iterator[GroupEntry]:
        """What waits in a group, of one author or of all, in order. It no longer waits."""
        store = self._context.store
        for name in store.errands(_prefix(group)):
            entry = _entry(store.errand(name) or b"")
            if device in (None, entry.by):
                store.drop_errand(name)
                yield entry

    def drop(self, group: int, message_id: str) -> None:
        """The message came otherwise."""
        for name in self._context.store.errands(_prefix(group)):
            if name.endswith(f" {message_id}"):
                self._context.store.drop_errand(name)

    def forget(self) -> None:
        """Once a day: what did not come by now will not come."""
        store, oldest = self._context.store, self._context.now - self._context.limits.remember_ms
        for name in store.errands(ERRAND):
            if _entry(store.errand(name) or b"").at < oldest:
                store.drop_errand(name)
        for name in store.errands(ASKED):
            if _time(store.errand(name) or b"\0") < oldest:
                store.drop_errand(name)

    # --- asking ---------------------------------------------------------------------------------

    def ask_for_key(self, entry: GroupEntry, key_id: bytes) -> None:
        """Ask the author for the key of an entry, once, and for the message: the key opens what comes after it."""
        store, name = self._context.store, f"{_asked(entry.to, entry.by)}{key_id.hex()}"
        if (asked := store.errand(name)) is not None:
            if self._context.now - _time(asked) >= ANSWER_MS:
                self.ask_for_messages(entry.to, entry.by, self._ids(entry.to, entry.by, key_id))
        elif (ids := self._ids(entry.to, entry.by, key_id)) and self._may_ask():
            store.put_errand(name, _encode(self._context.now))
            self._asked_ids.update(ids)
            self._ask(entry.to, entry.by, controls.Wanted(key_id, ids))

    def ask_for_messages(self, group: int, device: int, ids: tuple[str, ...]) -> None:
        """Ask for messages that the key that came does not open."""
        new = tuple(ident for ident in ids if ident not in self._asked_ids)[: controls.WANTED_MAX]
        if new and self._may_ask():
            self._asked_ids.update(new)
            self._ask(group, device, controls.Wanted(ids=new))

    def was_sealed_again(self, group: int, device: int) -> None:
        """An author sealed a message again instead of handing on its key: what else waits for that key is asked for."""
        store, prefix = self._context.store, _asked(group, device)
        for name in store.errands(prefix):
            store.put_errand(name, _encode(0))
            key_id = bytes.fromhex(name.removeprefix(prefix))
            if store.receiving_chain(group, device, key_id) is None:
                self.ask_for_messages(group, device, self._ids(group, device, key_id))

    def ask_for_welcome(self, group: int, device: int) -> None:
        """Ask a member where the group stands."""
        if self._may_ask():
            self._ask(group, device, controls.Wanted(welcome=True))

    def _ids(self, group: int, device: int, key_id: bytes) -> tuple[str, ...]:
        store = self._context.store
        waiting = (_entry(store.errand(name) or b"") for name in store.errands(_prefix(group)))
        ids = [entry.id for entry in waiting if entry.by == device and key_of(entry) == key_id]
        return tuple(ids[: controls.WANTED_MAX])

    def _ask(self, group: int, device: int, wanted: controls.Wanted) -> None:
        signed = self._believed.of(account_of(device))
        try:
            address: Address | None = signed.find(device)[0] if signed else None
        except NotListed:
            return  # it has left, and nobody answers
        if address is not None:
            self._outbox.seal_in_group(group, controls.wanted(wanted), [address])

    def _may_ask(self) -> bool:
        now = self._context.now
        self._asked = [at for at in self._asked if now - HOUR_MS < at <= now]
        if len(self._asked) >= self._context.limits.group_asks:
            return False
        self._asked.append(now)
        return True


def key_of(entry: GroupEntry) -> bytes:
    """The id of the key that an entry was sealed with; empty: it is nonsense."""
    try:
        return decode_group_message(entry.ciphertext).key_id
    except Rejected:
        return b""


def _asked(group: int, device: int) -> str:
    return f"{ASKED}{group:013x} {device:016x} "


def _prefix(group: int) -> str:
    return f"{ERRAND}{group:013x} "
