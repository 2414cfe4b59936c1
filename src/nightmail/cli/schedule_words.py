"""What commands print about scheduled messages."""

from __future__ import annotations

from typing import Any

from nightmail.client import ScheduledMessage

from .json_shapes import time_fields

TIMES = ("made_at", "deliver_at", "next_at", "ended_at")
QUEUED = "queued"
"""The state of a message that the server does not have yet."""


def made_fields(made: dict[str, Any]) -> dict[str, object]:
    return {"message_id": made["message_id"], **time_fields("deliver_at", made["deliver_at"])}


def schedule_fields(seen: dict[str, Any]) -> dict[str, object]:
    """Every field, also those that the server leaves out because they are empty."""
    times: dict[str, object] = {}
    for name in TIMES:
        times |= time_fields(name, seen.get(name, 0))
    known = {name: seen[name] for name in ("to", "account", "group", "name", "text") if name in seen}
    return {
        "message_id": seen["message_id"], "state": seen["state"], "target": seen["target"], **times,
        "retry_count": seen.get("retry_count", 0), "needs_sealing": seen.get("needs_sealing", False),
        "error": seen.get("error", ""), **known,
    }  # fmt: skip


def target_words(seen: dict[str, Any]) -> str:
    """Where it goes: as this device names it, or as the server does."""
    target: dict[str, str] = seen["target"]
    named = f"group {seen['name']}" if "name" in seen else seen.get("to", "")
    return named or target.get("url") or f"{target['type']} {target.get('account') or target.get('group')}"


# --- as this device knows them ------------------------------------------------------------------


def state_words(message: ScheduledMessage) -> str:
    return QUEUED if message.is_queued else message.state.name.lower()


def scheduled_to(message: ScheduledMessage) -> str:
    return message.handle if message.group is None else f"the group {message.handle}"


def to_fields(message: ScheduledMessage) -> dict[str, object]:
    if message.group is not None:
        return {"group": f"{message.peer:x}", "name": message.handle}
    return {"to": message.handle, "account": f"{message.peer:x}"}


def local_fields(message: ScheduledMessage) -> dict[str, Any]:
    """A message as the server would show it, as far as this device knows."""
    number = f"{message.peer:x}"
    target = (
        {"type": "conversation", "account": number} if message.group is None else {"type": "group", "group": number}
    )
    return {
        "message_id": message.id, "state": state_words(message), "target": target, "made_at": message.made_at,
        "deliver_at": message.deliver_at, "needs_sealing": message.is_stale, "error": message.reason,
        **to_fields(message), "text": message.text,
    }  # fmt: skip


def merged(seen: list[dict[str, Any]], local: list[ScheduledMessage]) -> list[dict[str, Any]]:
    """What the server lists, with what this device knows of it; before it, what only this device has."""
    known = {message.id: message for message in local}
    listed = {each["message_id"] for each in seen}
    only_here = [message for message in reversed(local) if message.id not in listed]
    told = [
        {**each, **to_fields(known[each["message_id"]]), "text": known[each["message_id"]].text}
        if each["message_id"] in known
        else each
        for each in seen
    ]
    return [*map(local_fields, only_here), *told]
