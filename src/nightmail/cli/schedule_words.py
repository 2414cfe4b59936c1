"""What commands print about scheduled messages."""

from __future__ import annotations

from typing import Any

from .json_shapes import time_fields

TIMES = ("made_at", "deliver_at", "next_at", "ended_at")


def made_fields(made: dict[str, Any]) -> dict[str, object]:
    return {"message_id": made["message_id"], **time_fields("deliver_at", made["deliver_at"])}


def schedule_fields(seen: dict[str, Any]) -> dict[str, object]:
    """Every field, also those that the server leaves out because they are empty."""
    times: dict[str, object] = {}
    for name in TIMES:
        times |= time_fields(name, seen.get(name, 0))
    return {
        "message_id": seen["message_id"], "state": seen["state"], "target": seen["target"], **times,
        "retry_count": seen.get("retry_count", 0), "needs_sealing": seen.get("needs_sealing", False),
        "error": seen.get("error", ""),
    }  # fmt: skip


def target_words(target: dict[str, str]) -> str:
    return target.get("url") or f"{target['type']} {target.get('account') or target.get('group')}"
