"""What the SQLite store keeps of groups. A part of `sqlite.py`, whose database it shares.

Knows:   the tables of groups.
"""

from __future__ import annotations

import msgspec

from .changes_port import Saved
from .group_rows import GroupRow, Holder
from .sqlite_changes import SqliteChanges

_encode = msgspec.msgpack.Encoder().encode
_row = msgspec.msgpack.Decoder(GroupRow).decode


class SqliteGroups(SqliteChanges):
    """A `GroupStore`."""

    def groups(self) -> list[GroupRow]:
        return [_row(row[0]) for row in self._read("SELECT row FROM chat ORDER BY number")]

    def group(self, group: int) -> GroupRow | None:
        rows = self._read("SELECT row FROM chat WHERE number = ?", (group,))
        return _row(rows[0][0]) if rows else None

    def put_group(self, row: GroupRow) -> None:
        self._write(
            "INSERT INTO chat VALUES (?, ?, NULL) ON CONFLICT (number) DO UPDATE SET row = excluded.row",
            (row.group, _encode(row)),
        )
        self._changed(Saved.GROUP, row.group)

    def drop_group(self, group: int) -> None:
        self._write("DELETE FROM chat WHERE number = ?", (group,))
        self._changed(Saved.GROUP, group)
        self._write("DELETE FROM receiving_chain WHERE number = ?", (group,))
        self.drop_sender_chain(group)

    def group_members(self, group: int) -> bytes | None:
        rows = self._read("SELECT members FROM chat WHERE number = ?", (group,))
        return rows[0][0] if rows else None

    def put_group_members(self, group: int, state: bytes) -> None:
        self._write("UPDATE chat SET members = ? WHERE number = ?", (state, group))

    def sender_chain(self, group: int) -> bytes | None:
        rows = self._read("SELECT state FROM sender_chain WHERE number = ?", (group,))
        return rows[0][0] if rows else None

    def put_sender_chain(self, group: int, state: bytes) -> None:
        self._write("REPLACE INTO sender_chain VALUES (?, ?)", (group, state))

    def drop_sender_chain(self, group: int) -> None:
        self._write("DELETE FROM sender_chain WHERE number = ?", (group,))
        self._write("DELETE FROM holder WHERE number = ?", (group,))

    def holders(self, group: int) -> list[Holder]:
        rows = self._read(
            "SELECT device, registration, lacks, tries FROM holder WHERE number = ? ORDER BY device, registration",
            (group,),
        )
        return [Holder(device, registration, bool(lacks), tries) for device, registration, lacks, tries in rows]

    def put_holder(self, group: int, row: Holder) -> None:
        self._write(
            "REPLACE INTO holder VALUES (?, ?, ?, ?, ?)", (group, row.device, row.registration, row.lacks, row.tries)
        )

    def receiving_chain(self, group: int, device: int, key_id: bytes) -> bytes | None:
        rows = self._read(
            "SELECT state FROM receiving_chain WHERE number = ? AND device = ? AND key_id = ?", (group, device, key_id)
        )
        return rows[0][0] if rows else None

    def receiving_chains(self, group: int, device: int | None = None) -> list[bytes]:
        rows = self._read(
            "SELECT state FROM receiving_chain WHERE number = ? AND ? IN (device, -1) ORDER BY device, key_id",
            (group, -1 if device is None else device),
        )
        return [row[0] for row in rows]

    def put_receiving_chain(self, group: int, device: int, key_id: bytes, state: bytes) -> None:
        self._write("REPLACE INTO receiving_chain VALUES (?, ?, ?, ?)", (group, device, key_id, state))

    def drop_receiving_chain(self, group: int, device: int, key_id: bytes) -> None:
        self._write(
            "DELETE FROM receiving_chain WHERE number = ? AND device = ? AND key_id = ?", (group, device, key_id)
        )
