"""A device's store and its sealer, watched: what is durable counts as evidence, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeAlias

from nightmail.client.errors import StoreFailed
from nightmail.client.messages import Message, conversation_id
from nightmail.client.store.group_rows import GroupRow
from nightmail.client.store.memory import MemoryStore
from nightmail.client.store.rows import Cursors, MessageNumber, Missed, Outgoing, Trusted
from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.e2ee.errors import Undecipherable
from nightmail.e2ee.note import Note, tag_of
from nightmail.model.ids import account_of
from nightmail.model.rows import Entry

from .opaque import Opaque

if TYPE_CHECKING:
    from sim.judges.timers import TimerJudge

    from .device import Device

Written: TypeAlias = Message | MessageNumber | Outgoing | Trusted | Missed | GroupRow | ScheduledRow

NONCE_BYTES = 16
FOR_BYTES = 16


class WatchedStore(MemoryStore):
    """Tells what was written once it is durable. A commit may fail, and nobody knows how it ended."""

    def __init__(
        self, on_written: Callable[[Written], None], fails: Callable[[], bool], kept: Callable[[], bool],
        timers: TimerJudge,
    ) -> None:  # fmt: skip
        super().__init__()
        self._on_written, self._fails, self._kept, self._timers = on_written, fails, kept, timers
        self._written: list[Written | Cursors] = []
        self.durable = Cursors()

    @property
    def waiting(self) -> int:
        """How many numbers wait for their answer."""
        return len(self._table("outgoing"))

    @property
    def searchable(self) -> Collection[str]:
        """The ids of what a search can find."""
        return self._table("words").keys()

    def put_message(self, message: Message) -> None:
        super().put_message(message)
        self._written.append(message)
        self._timers.put(message)

    def drop_message(self, message_id: str) -> None:
        super().drop_message(message_id)
        self._timers.drop(message_id)

    def put_numbered(self, row: MessageNumber) -> None:
        super().put_numbered(row)
        self._written.append(row)

    def put_outgoing(self, row: Outgoing) -> None:
        super().put_outgoing(row)
        self._written.append(row)

    def put_trusted(self, row: Trusted) -> None:
        super().put_trusted(row)
        self._written.append(row)

    def put_missed(self, row: Missed) -> None:
        super().put_missed(row)
        self._written.append(row)

    def put_group(self, row: GroupRow) -> None:
        super().put_group(row)
        self._written.append(row)

    def put_schedule(self, row: ScheduledRow) -> None:
        super().put_schedule(row)
        self._written.append(row)

    def put_cursors(self, cursors: Cursors) -> None:
        super().put_cursors(cursors)
        self._written.append(cursors)

    def commit(self) -> None:
        failed = self._fails()
        if failed and not self._kept():
            self.rollback()
        else:
            self._timers.committed()
        super().commit()
        written, self._written = self._written, []
        for what in written:
            if isinstance(what, Cursors):
                self.durable = what
            else:
                self._on_written(what)
        if failed:
            raise StoreFailed("the disk did not say what became of it")

    def rollback(self) -> None:
        super().rollback()
        self._written.clear()
        self._timers.rolled_back()

    def crash(self) -> None:
        self.rollback()

    # --- an older copy --------------------------------------------------------------------------

    def sessions(self) -> dict[int, bytes]:
        """A copy of all sessions, as they are durable. Not while something is open."""
        assert not self.dirty
        return dict(self._table("peer"))

    def set_back(self, sessions: dict[int, bytes]) -> None:
        assert not self.dirty
        self._table("peer").clear()
        self._table("peer").update(sessions)


class WatchedSealer(Opaque):
    """What stands for a ciphertext: only the device it was made for can open it, and not always."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def seal(self, device: int, registration: int, note: Note) -> bytes:
        return note.nonce + _address(device, registration) + note.content

    def open(self, entry: Entry) -> Note:
        device = self._device
        me, sealed = device.me, entry.ciphertext
        nonce, address = sealed[:NONCE_BYTES], sealed[NONCE_BYTES : NONCE_BYTES + FOR_BYTES]
        body = sealed[NONCE_BYTES + FOR_BYTES :]
        if entry.by in device.history.liars:
            raise Undecipherable
        if address != _address(me.device, me.registration):
            raise device.history.broke("no ghost", f"{device.name} got {entry.id}, which was sealed for somebody else")
        if entry.tag != tag_of(nonce, body, conversation_id(account_of(entry.by), entry.to)):
            raise device.history.broke("no ghost", f"{device.name} got {entry.id} with the tag of something else")
        if account_of(entry.by) != me.account and device.person.finds_unreadable():
            device.world.hit("undecryptable")
            raise Undecipherable
        return Note(nonce, entry.of or entry.id, body)


def _address(device: int, registration: int) -> bytes:
    return device.to_bytes(FOR_BYTES // 2, "big") + registration.to_bytes(FOR_BYTES // 2, "big")
