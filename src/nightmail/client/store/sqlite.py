"""The store in one sealed SQLite file: WAL, every commit synced, schema counted in `user_version`.

Knows:   the tables, and which row goes where.
Touches: `nightmail.db` in a profile folder that the caller has locked.
Never:   trusts a pragma that it has not read back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from nightmail.client.errors import ProfileError, StoreFailed
from nightmail.client.messages import UNSTAMPED, DeviceDelivery, Message, Position, Tick
from nightmail.model.ids import DEVICE_BITS, MessageId
from nightmail.model.words import Kind, Lane

from . import sqlite_schema
from .changes_port import Saved
from .rows import (
    Contact,
    Conversation,
    Cursors,
    DeviceList,
    Early,
    Identity,
    MessageNumber,
    Missed,
    Outgoing,
    OwnKeys,
    ReadMark,
    Trusted,
)
from .search import indexed, query_of, text_of
from .sqlite_groups import SqliteGroups
from .sqlite_schedules import SqliteSchedules

T = TypeVar("T")

NAME = "nightmail.db"

_encode = msgspec.msgpack.Encoder().encode
_places = msgspec.msgpack.Decoder(dict[int, DeviceDelivery]).decode
_devices = msgspec.msgpack.Decoder(dict[int, int]).decode
_outgoing = msgspec.msgpack.Decoder(Outgoing).decode
_trusted = msgspec.msgpack.Decoder(Trusted).decode
_spans = msgspec.msgpack.Decoder(list[int]).decode

_FOUND = """
SELECT m.id, m.peer, m.by, m.own, m.at, m.body, m.kind, m.life_ms, m.state, m.reason, m.places, m.deadline, m.group_seq
FROM words JOIN message AS m ON m.row = words.rowid WHERE words MATCH ? AND ? IN (m.peer, -1)
ORDER BY m.shown_at DESC, m.id_at DESC, m.id_sequence DESC, m.id DESC LIMIT ?
"""
_MESSAGES = "SELECT id, peer, by, own, at, body, kind, life_ms, state, reason, places, deadline, group_seq FROM message"
_BY_ID = f"{_MESSAGES} WHERE id = ?"
_AFTER = f"{_MESSAGES} WHERE id > ? ORDER BY id LIMIT ?"
_ENDED = f"{_MESSAGES} WHERE deadline > 0 AND deadline <= ? ORDER BY deadline, id"
_HISTORY = f"""
{_MESSAGES}
WHERE peer = ? AND (shown_at, id_at, id_sequence, id) < (?, ?, ?, ?)
ORDER BY shown_at DESC, id_at DESC, id_sequence DESC, id DESC LIMIT ?
"""
# The words `kind = 3 AND state <> 4` let SQLite use the partial index.
_CHANGE = f"""
{_MESSAGES} WHERE kind = 3 AND state <> 4 AND peer = ?
ORDER BY shown_at DESC, id_at DESC, id_sequence DESC, id DESC LIMIT 1
"""


class SqliteStore(SqliteGroups, SqliteSchedules):
    """A `Store`. Begins a transaction with the first write, ends it with `commit` or `rollback`."""

    def __init__(self, folder: Path, key: bytes) -> None:
        path = str(folder / NAME)
        try:
            self._db = sqlite_schema.open_database(path, key)
        except (apsw.Error, OSError) as error:
            raise sqlite_schema.explain(error, path) from error
        self._open = self._deleted = False
        self._failed: StoreFailed | None = None
        """What the machine has in memory may be ahead of the disk: nothing more is taken after a failure."""

    # --- the transaction ------------------------------------------------------------------------

    @property
    def dirty(self) -> bool:
        return self._open

    def commit(self) -> None:
        if self._failed:
            raise self._failed
        if not self._open:
            return
        try:
            self._db.execute("COMMIT")
            if self._deleted:
                # Otherwise the write-ahead log would keep the pages as they were, until it is full.
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                self._deleted = False
        except (apsw.Error, OSError) as error:
            raise self._fail(error) from error
        self._open = False

    def _fail(self, error: Exception) -> StoreFailed:
        self.rollback()
        self._failed = StoreFailed(f"the profile could not be written: {error}")
        return self._failed

    def rollback(self) -> None:
        self._open, self._newest_change = False, None
        with suppress(apsw.Error, OSError):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def close(self) -> None:
        """May be called again."""
        self.rollback()
        self._db.close(True)

    def _write(self, sql: str, values: tuple[Any, ...]) -> None:
        if self._failed:
            raise self._failed
        try:
            if not self._open:
                self._db.execute("BEGIN IMMEDIATE")
                self._open = True
            self._db.execute(sql, values)
        except (apsw.Error, OSError) as error:
            raise self._fail(error) from error

    def _read(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(sql, values).fetchall()
        except (apsw.Error, OSError) as error:
            raise StoreFailed(f"the profile could not be read: {error}") from error

    def _meta(self, key: str, kind: type[T]) -> T | None:
        rows = self._read("SELECT value FROM meta WHERE key = ?", (key,))
        return msgspec.msgpack.decode(rows[0][0], type=kind) if rows else None

    def _put_meta(self, key: str, value: Any) -> None:
        self._write("REPLACE INTO meta VALUES (?, ?)", (key, _encode(value)))

    # --- this device ----------------------------------------------------------------------------

    def identity(self) -> Identity | None:
        return self._meta("identity", Identity)

    def put_identity(self, identity: Identity) -> None:
        self._put_meta("identity", identity)

    def cursors(self) -> Cursors:
        return self._meta("cursors", Cursors) or Cursors()

    def put_cursors(self, cursors: Cursors) -> None:
        self._put_meta("cursors", cursors)

    def next_sequence(self) -> int:
        sequence = (self._meta("sequence", int) or 0) + 1
        self._put_meta("sequence", sequence)
        return sequence

    # --- sending --------------------------------------------------------------------------------

    def last_number(self, to: int, lane: Lane) -> int:
        rows = self._read("SELECT last FROM stream WHERE peer = ? AND lane = ?", (to, lane))
        return rows[0][0] if rows else 0

    def put_last_number(self, to: int, lane: Lane, n: int) -> None:
        self._write("REPLACE INTO stream VALUES (?, ?, ?)", (to, lane, n))

    def outgoing(self) -> list[Outgoing]:
        return [_outgoing(row[0]) for row in self._read("SELECT row FROM outgoing ORDER BY peer, lane, n")]

    def put_outgoing(self, row: Outgoing) -> None:
        self._write("REPLACE INTO outgoing VALUES (?, ?, ?, ?)", (row.to, row.lane, row.n, _encode(row)))

    def drop_outgoing(self, to: int, lane: Lane, n: int) -> None:
        self._write("DELETE FROM outgoing WHERE peer = ? AND lane = ? AND n = ?", (to, lane, n))

    # --- messages -------------------------------------------------------------------------------

    def message(self, message_id: str) -> Message | None:
        rows = self._read(_BY_ID, (message_id,))
        return _message(rows[0]) if rows else None

    def put_message(self, message: Message) -> None:
        m, places = message, _encode(message.places) if message.places else None
        before = self.message(m.id)
        if before is not None and (before.body, before.kind) != (m.body, m.kind):
            self.drop_message(m.id)
            before = None
        if not m.life_ms:
            self._changed(Saved.MESSAGE, m.id)
        if before is not None:
            # The usual change is a tick: the index stays as it is.
            self._write(
                "UPDATE message SET peer = ?, by = ?, own = ?, at = ?, life_ms = ?, state = ?, reason = ?, places = ?,"
                " shown_at = ?, deadline = ?, group_seq = ? WHERE id = ?",
                (
                    m.peer, m.by, m.own, m.at, m.life_ms, m.state, m.reason, places, m.at or UNSTAMPED, m.deadline,
                    m.group_seq, m.id,
                ),
            )  # fmt: skip
            return
        parsed = MessageId.parse(m.id)
        self._write(
            "INSERT INTO message VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                m.id, m.peer, m.by, m.own, m.at, m.body, m.kind, m.life_ms, m.state, m.reason, places,
                m.at or UNSTAMPED, parsed.at_ms, parsed.sequence, m.deadline, m.group_seq,
            ),
        )  # fmt: skip
        if text := text_of(m):
            self._write("INSERT INTO words (rowid, text) VALUES (last_insert_rowid(), ?)", (indexed(text),))

    def drop_message(self, message_id: str) -> None:
        if (message := self.message(message_id)) is None:
            return
        if text := text_of(message):
            self._write(
                "INSERT INTO words (words, rowid, text) SELECT 'delete', row, ? FROM message WHERE id = ?",
                (indexed(text), message_id),
            )
        self._write("DELETE FROM message WHERE id = ?", (message_id,))
        self._unchanged(Saved.MESSAGE, message_id)
        self._deleted = True

    def ended(self, by: int) -> list[Message]:
        return [_message(row) for row in self._read(_ENDED, (by,))]

    def next_deadline(self) -> int | None:
        # The words `deadline > 0` let SQLite use the partial index.
        return self._read("SELECT min(deadline) FROM message WHERE deadline > 0")[0][0]

    def timer_change(self, peer: int) -> Message | None:
        rows = self._read(_CHANGE, (peer,))
        return _message(rows[0]) if rows else None

    def search(self, terms: Sequence[str], peer: int | None, limit: int) -> list[Message]:
        rows = self._read(_FOUND, (query_of(terms), -1 if peer is None else peer, limit)) if terms else []
        return [_message(row) for row in rows]

    def history(self, peer: int, limit: int, before: Position | None = None) -> list[Message]:
        rows = self._read(
            _HISTORY,
            (peer, *(before or (UNSTAMPED + 1, 0, 0, "")), limit),
        )
        return [_message(row) for row in reversed(rows)]

    def messages_after(self, message_id: str, limit: int) -> list[Message]:
        return [_message(row) for row in self._read(_AFTER, (message_id, limit))]

    def past_messages(self) -> int:
        return self._read("SELECT count(*) FROM message WHERE life_ms = 0 AND (at > 0 OR state = 4)")[0][0]

    def numbered(self, by: int, to: int, lane: Lane, low: int, high: int) -> list[MessageNumber]:
        rows = self._read(
            "SELECT n, id, mark FROM numbered WHERE by = ? AND peer = ? AND lane = ? AND n BETWEEN ? AND ? ORDER BY n",
            (by, to, lane, low, high),
        )
        return [MessageNumber(by, to, lane, n, ident, ReadMark(mark)) for n, ident, mark in rows]

    def put_numbered(self, row: MessageNumber) -> None:
        self._write(
            "REPLACE INTO numbered VALUES (?, ?, ?, ?, ?, ?)", (row.by, row.to, row.lane, row.n, row.id, row.mark)
        )
        self._changed(Saved.MESSAGE, row.id)

    def marked(self, mark: ReadMark, by_account: int | None = None) -> list[MessageNumber]:
        low, high = _devices_of(by_account)
        # The words `mark > 0` let SQLite use the partial index.
        rows = self._read(
            "SELECT by, peer, lane, n, id FROM numbered WHERE mark > 0 AND mark = ? AND by >= ? AND by < ?"
            " ORDER BY by, lane, n, peer",
            (mark, low, high),
        )
        return [MessageNumber(by, to, Lane(lane), n, ident, mark) for by, to, lane, n, ident in rows]

    def conversation(self, peer: int) -> Conversation:
        rows = self._read("SELECT handle, seen FROM conversation WHERE peer = ?", (peer,))
        return Conversation(peer, *rows[0]) if rows else Conversation(peer)

    def conversations(self) -> list[Conversation]:
        rows = self._read("SELECT peer, handle, seen FROM conversation ORDER BY seen DESC, peer")
        return [Conversation(*row) for row in rows]

    def put_conversation(self, row: Conversation) -> None:
        self._write("REPLACE INTO conversation VALUES (?, ?, ?)", (row.peer, row.handle, row.seen))
        self._changed(Saved.CONVERSATION, row.peer)

    def contact(self, account: int) -> Contact | None:
        rows = self._read("SELECT account, handle, name, blocked FROM contact WHERE account = ?", (account,))
        return _contact(rows[0]) if rows else None

    def contacts(self) -> list[Contact]:
        return [_contact(row) for row in self._read("SELECT account, handle, name, blocked FROM contact ORDER BY 1")]

    def put_contact(self, row: Contact) -> None:
        self._write("REPLACE INTO contact VALUES (?, ?, ?, ?)", (row.account, row.handle, row.name, row.blocked))
        self._changed(Saved.CONTACT, row.account)

    def drop_contact(self, account: int) -> None:
        self._write("DELETE FROM contact WHERE account = ?", (account,))
        self._changed(Saved.CONTACT, account)

    # --- receiving ------------------------------------------------------------------------------

    def unopened(self, lane: Lane) -> list[int]:
        return [row[0] for row in self._read("SELECT seq FROM unopened WHERE lane = ? ORDER BY seq", (lane,))]

    def put_unopened(self, lane: Lane, seq: int) -> None:
        self._write("REPLACE INTO unopened VALUES (?, ?)", (lane, seq))

    def drop_unopened(self, lane: Lane, seqs: Iterable[int]) -> None:
        for seq in seqs:
            self._write("DELETE FROM unopened WHERE lane = ? AND seq = ?", (lane, seq))

    def early(self, by: int, to: int, lane: Lane) -> list[Early]:
        rows = self._read(
            "SELECT device, state, reason, at, numbers FROM early WHERE by = ? AND peer = ? AND lane = ?"
            " ORDER BY rowid",
            (by, to, lane),
        )
        return [
            Early(by, to, lane, device, Tick(state), why, at, _spans(spans)) for device, state, why, at, spans in rows
        ]

    def put_early(self, row: Early) -> None:
        self._write(
            "INSERT INTO early VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (by, peer, lane, device, state, reason)"
            " DO UPDATE SET at = excluded.at, numbers = excluded.numbers",
            (row.by, row.to, row.lane, row.device, row.state, row.reason, row.at, _encode(row.numbers)),
        )

    # --- devices of others ----------------------------------------------------------------------

    def device_list(self, account: int) -> DeviceList | None:
        rows = self._read("SELECT version, devices FROM list WHERE account = ?", (account,))
        return DeviceList(account, rows[0][0], _devices(rows[0][1])) if rows else None

    def put_device_list(self, row: DeviceList) -> None:
        self._write("REPLACE INTO list VALUES (?, ?, ?)", (row.account, row.version, _encode(row.devices)))

    # --- sealing --------------------------------------------------------------------------------

    def own_keys(self) -> OwnKeys | None:
        return self._meta("keys", OwnKeys)

    def put_own_keys(self, row: OwnKeys) -> None:
        self._put_meta("keys", row)

    def peer(self, device: int) -> bytes | None:
        rows = self._read("SELECT state FROM peer WHERE device = ?", (device,))
        return rows[0][0] if rows else None

    def put_peer(self, device: int, state: bytes) -> None:
        self._write("REPLACE INTO peer VALUES (?, ?)", (device, state))

    def drop_peer(self, device: int) -> None:
        self._write("DELETE FROM peer WHERE device = ?", (device,))

    def peers(self, account: int | None = None) -> list[int]:
        low, high = _devices_of(account)
        rows = self._read("SELECT device FROM peer WHERE device >= ? AND device < ? ORDER BY device", (low, high))
        return [row[0] for row in rows]

    def trusted(self, account: int) -> Trusted | None:
        rows = self._read("SELECT row FROM trusted WHERE account = ?", (account,))
        return _trusted(rows[0][0]) if rows else None

    def put_trusted(self, row: Trusted) -> None:
        self._write("REPLACE INTO trusted VALUES (?, ?)", (row.account, _encode(row)))
        self._changed(Saved.TRUSTED, row.account)

    def trusted_accounts(self) -> list[int]:
        return [row[0] for row in self._read("SELECT account FROM trusted ORDER BY account")]

    def claims(self) -> dict[int, int]:
        return dict(self._read("SELECT device, request FROM claim"))  # pyright: ignore[reportArgumentType]

    def put_claim(self, device: int, request: int) -> None:
        self._write("REPLACE INTO claim VALUES (?, ?)", (device, request))

    def drop_claim(self, device: int) -> None:
        self._write("DELETE FROM claim WHERE device = ?", (device,))

    def missed(self) -> list[Missed]:
        return [_missed(row) for row in self._read("SELECT id, by, at, healed FROM missed ORDER BY at, id")]

    def put_missed(self, row: Missed) -> None:
        self._write("REPLACE INTO missed VALUES (?, ?, ?, ?)", (row.id, row.by, row.at, row.healed))

    def drop_missed(self, before: int) -> None:
        self._write("DELETE FROM missed WHERE at < ?", (before,))

    def find_missed(self, message_id: str) -> Missed | None:
        rows = self._read("SELECT id, by, at, healed FROM missed WHERE id = ?", (message_id,))
        return _missed(rows[0]) if rows else None

    def orphans(self) -> list[str]:
        return [row[0] for row in self._read("SELECT id FROM orphan ORDER BY id")]

    def put_orphan(self, message_id: str) -> None:
        self._write("REPLACE INTO orphan VALUES (?)", (message_id,))

    def drop_orphan(self, message_id: str) -> None:
        self._write("DELETE FROM orphan WHERE id = ?", (message_id,))

    def errand(self, name: str) -> bytes | None:
        rows = self._read("SELECT state FROM errand WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    def put_errand(self, name: str, state: bytes) -> None:
        self._write("REPLACE INTO errand VALUES (?, ?)", (name, state))

    def drop_errand(self, name: str) -> None:
        self._write("DELETE FROM errand WHERE name = ?", (name,))

    def errands(self, prefix: str) -> list[str]:
        rows = self._read("SELECT name FROM errand WHERE substr(name, 1, ?) = ? ORDER BY name", (len(prefix), prefix))
        return [row[0] for row in rows]


def _devices_of(account: int | None) -> tuple[int, int]:
    """Every device number of an account lies here, the second one excluded."""
    return (0, 1 << 62) if account is None else (account << DEVICE_BITS, (account + 1) << DEVICE_BITS)


def _missed(row: tuple[Any, ...]) -> Missed:
    ident, by, at, healed = row
    return Missed(ident, by, at, bool(healed))


def _contact(row: tuple[Any, ...]) -> Contact:
    account, handle, name, blocked = row
    return Contact(account, handle, name, bool(blocked))


def _message(row: tuple[Any, ...]) -> Message:
    ident, peer, by, own, at, body, kind, life_ms, state, reason, places, deadline, group_seq = row
    return Message(
        id=ident, peer=peer, by=by, own=bool(own), at=at, body=body, kind=Kind(kind), life_ms=life_ms,
        state=Tick(state), reason=reason, places=_places(places) if places else {}, deadline=deadline,
        group_seq=group_seq,
    )  # fmt: skip


__all__ = ["NAME", "ProfileError", "SqliteStore"]
