"""The name of a group and its picture: said by messages that everybody opens. The newest of them counts.

Touches: rows of groups; the outbox.
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.errors import Misused
from nightmail.client.group_events import GroupUpdated, UpdateKind
from nightmail.client.machine.context import Context
from nightmail.client.outbox.outbox import Outbox
from nightmail.e2ee.content import Content
from nightmail.model.ids import account_of
from nightmail.model.rows import GroupEntry

from . import controls
from .known_groups import KnownGroups


def check_name(name: str) -> str:
    """The name, tidied. Raises Misused."""
    name = " ".join(name.split())
    if not name or not controls.is_name(name):
        raise Misused(f"the name of a group has 1 to {controls.NAME_CHARS} characters")
    return name


class GroupNames:
    def __init__(self, context: Context, outbox: Outbox, known: KnownGroups) -> None:
        self._context, self._outbox, self._known = context, outbox, known

    def rename(self, group: int, name: str) -> None:
        """The person gives the group a name. Raises Misused."""
        name = check_name(name)
        self._outbox.broadcast(group, controls.name(name))
        self._put(group, name=name, at=self._context.now)

    def set_picture(self, group: int, picture: bytes) -> None:
        """The person gives the group a picture; empty: none. Raises Misused."""
        if len(picture) > controls.PICTURE_BYTES:
            raise Misused(f"the picture of a group has at most {controls.PICTURE_BYTES} bytes")
        self._outbox.broadcast(group, controls.picture(picture))
        self._put(group, picture=picture, at=self._context.now)

    def take(self, entry: GroupEntry, content: Content) -> None:
        """Somebody gave it one. Raises BadEncoding."""
        row, by, data = self._known.row(entry.to), account_of(entry.by), content.data or b""
        if row is None:
            return
        if content.control == controls.Control.GROUP_NAME:
            name = controls.name_of(data)
            if entry.at <= row.named_at:
                return
            self._put(entry.to, name=name, at=entry.at)
            what = UpdateKind.RENAMED
        elif content.control == controls.Control.GROUP_PICTURE:
            picture = controls.picture_of(data)
            if entry.at <= row.pictured_at:
                return
            self._put(entry.to, picture=picture, at=entry.at)
            name, what = row.name, UpdateKind.PICTURE
        else:
            return
        self._context.tell(GroupUpdated(entry.to, name, what, by, self._context.handle(by)))

    def _put(self, group: int, *, name: str | None = None, picture: bytes | None = None, at: int) -> None:
        row = self._known.row(group)
        assert row is not None
        if name is not None:
            row = replace(row, name=name, named_at=at)
        if picture is not None:
            row = replace(row, picture=picture, pictured_at=at)
        self._known.put(row)
