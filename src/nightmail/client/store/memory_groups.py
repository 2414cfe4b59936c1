"""What the store in memory keeps of groups. A part of `memory.py`, whose journal it shares.

Knows:   the tables of groups.
"""

from __future__ import annotations

from typing import cast

from .changes_port import Saved
from .group_rows import GroupRow, Holder
from .memory_changes import MemoryChanges


class MemoryGroups(MemoryChanges):
    """A `GroupStore`."""

    def groups(self) -> list[GroupRow]:
        table = cast("dict[int, GroupRow]", self._table("group"))
        return [table[group] for group in sorted(table)]

    def group(self, group: int) -> GroupRow | None:
        return self._table("group").get(group)

    def put_group(self, row: GroupRow) -> None:
        self._put("group", row.group, row)
        self._changed(Saved.GROUP, row.group)

    def drop_group(self, group: int) -> None:
        self._drop("group", group)
        self._changed(Saved.GROUP, group)
        self._drop("group members", group)
        self.drop_sender_chain(group)
        for key in list(self._table(f"receiving chain {group}")):
            self._drop(f"receiving chain {group}", key)

    def group_members(self, group: int) -> bytes | None:
        return self._table("group members").get(group)

    def put_group_members(self, group: int, state: bytes) -> None:
        self._put("group members", group, state)

    def sender_chain(self, group: int) -> bytes | None:
        return self._table("sender chain").get(group)

    def put_sender_chain(self, group: int, state: bytes) -> None:
        self._put("sender chain", group, state)

    def drop_sender_chain(self, group: int) -> None:
        self._drop("sender chain", group)
        for key in list(self._table(f"holder {group}")):
            self._drop(f"holder {group}", key)

    def holders(self, group: int) -> list[Holder]:
        table = cast("dict[tuple[int, int], Holder]", self._table(f"holder {group}"))
        return [table[key] for key in sorted(table)]

    def put_holder(self, group: int, row: Holder) -> None:
        self._put(f"holder {group}", (row.device, row.registration), row)

    def receiving_chain(self, group: int, device: int, key_id: bytes) -> bytes | None:
        return self._table(f"receiving chain {group}").get((device, key_id))

    def receiving_chains(self, group: int, device: int | None = None) -> list[bytes]:
        table = cast("dict[tuple[int, bytes], bytes]", self._table(f"receiving chain {group}"))
        return [table[key] for key in sorted(table) if device in (None, key[0])]

    def put_receiving_chain(self, group: int, device: int, key_id: bytes, state: bytes) -> None:
        self._put(f"receiving chain {group}", (device, key_id), state)

    def drop_receiving_chain(self, group: int, device: int, key_id: bytes) -> None:
        self._drop(f"receiving chain {group}", (device, key_id))
