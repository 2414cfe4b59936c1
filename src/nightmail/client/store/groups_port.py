"""The port to what a store keeps of groups. A part of `Store`, whose transaction it shares."""

from __future__ import annotations

from typing import Protocol

from .group_rows import GroupRow, Holder


class GroupStore(Protocol):
    def groups(self) -> list[GroupRow]:
        """By number."""
        ...

    def group(self, group: int) -> GroupRow | None: ...

    def put_group(self, row: GroupRow) -> None: ...

    def drop_group(self, group: int) -> None:
        """Delete it with its members and chains. Messages stay."""
        ...

    def group_members(self, group: int) -> bytes | None:
        """Whom this device believes to be in the group, as `e2ee.state` encodes it."""
        ...

    def put_group_members(self, group: int, state: bytes) -> None: ...

    def sender_chain(self, group: int) -> bytes | None:
        """This device's own chain, as `e2ee.state` encodes it."""
        ...

    def put_sender_chain(self, group: int, state: bytes) -> None: ...

    def drop_sender_chain(self, group: int) -> None:
        """Delete it with its holders."""
        ...

    def holders(self, group: int) -> list[Holder]:
        """Of the own chain; by device and registration."""
        ...

    def put_holder(self, group: int, row: Holder) -> None: ...

    def receiving_chain(self, group: int, device: int, key_id: bytes) -> bytes | None: ...

    def receiving_chains(self, group: int, device: int | None = None) -> list[bytes]:
        """All chains of one device in a group, or of all."""
        ...

    def put_receiving_chain(self, group: int, device: int, key_id: bytes, state: bytes) -> None: ...

    def drop_receiving_chain(self, group: int, device: int, key_id: bytes) -> None: ...
