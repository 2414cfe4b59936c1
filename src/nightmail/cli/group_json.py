"""The JSON objects about groups that commands print for scripts. docs/cli.md lists them."""

from __future__ import annotations

from typing import Any

from nightmail.client.group_events import (
    GroupBroken,
    GroupChangeRefused,
    GroupReceipt,
    GroupUpdated,
    MemberJoined,
    MemberMissing,
    MembersDiffer,
)
from nightmail.client.groups.group import FellowMember, Group
from nightmail.model.roster import GroupSettings

from .group_words import receipts_word, writers_word

GroupEvents = (
    GroupUpdated | GroupChangeRefused | GroupBroken | MembersDiffer | MemberMissing | MemberJoined | GroupReceipt
)
"""Every event about a group but its messages."""


def settings_json(settings: GroupSettings) -> dict[str, object]:
    return {
        "writers": writers_word(settings.writers), "changers": writers_word(settings.changers),
        "receipts": receipts_word(settings.receipts), "timer_ms": settings.timer_ms,
    }  # fmt: skip


def member_json(member: FellowMember) -> dict[str, object]:
    return {
        "account": f"{member.account:x}", "handle": member.handle, "role": member.role.name.lower(),
        "state": member.state.name.lower(),
    }  # fmt: skip


def group_json(group: Group) -> dict[str, object]:
    return {
        "group": f"{group.id:x}", "name": group.name, "standing": group.standing.name.lower(),
        "role": None if group.role is None else group.role.name.lower(), "settings": settings_json(group.settings),
        "members": [member_json(member) for member in group.members],
    }  # fmt: skip


def group_event_json(event: GroupEvents) -> dict[str, Any]:
    about = {"group": f"{event.group:x}", "name": event.name}
    match event:
        case GroupUpdated():
            shape: dict[str, Any] = {
                "type": "group_updated", **about, "what": event.what.value, "by": event.by_handle,
                "accounts": [f"{account:x}" for account in event.accounts], "handles": list(event.handles),
            }  # fmt: skip
            return {**shape, "timer_ms": event.timer_ms} if event.what == "settings" else shape
        case GroupChangeRefused():
            return {"type": "group_change_refused", **about, "by": event.by_handle, "why": event.why}
        case GroupBroken():
            return {"type": "group_broken", **about, "why": event.why}
        case MembersDiffer():
            return {"type": "members_differ", **about, "by": event.by_handle, "message_id": event.message_id}
        case MemberMissing():
            return {
                "type": "member_missing", **about, "account": f"{event.account:x}", "handle": event.handle,
                "state": event.state,
            }  # fmt: skip
        case MemberJoined():
            return {"type": "member_joined", **about, "account": f"{event.account:x}", "handle": event.handle}
        case GroupReceipt():
            return {
                "type": "group_receipt", **about, "message_id": event.message_id, "delivered": event.delivered,
                "read": event.read, "of": event.of,
            }  # fmt: skip
