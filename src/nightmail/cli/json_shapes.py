"""The JSON objects that commands print for scripts. docs/cli.md lists them; scripts rely on their fields.

Knows:   events, messages and contacts of the client.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from nightmail.client.events import (
    BackedUp,
    BackupFailed,
    Connected,
    ContactsChanged,
    DeliveryReceipt,
    DeviceLinked,
    DeviceNotLinked,
    Disappeared,
    Disconnected,
    Ended,
    Event,
    Gap,
    KeysRefused,
    LifeDiffers,
    ListRefused,
    ListUnsigned,
    MessageFailed,
    Moved,
    PresenceChanged,
    Provisioned,
    QueueEmpty,
    Reachable,
    ReadElsewhere,
    ReadReceipt,
    Retrying,
    SecurityCodeChanged,
    SentAck,
    ServerBehind,
    Sight,
    TimerChanged,
    TypingChanged,
    Unreadable,
    WaitingForNetwork,
)
from nightmail.client.media_events import FileChanged, FileProgress
from nightmail.client.messages import Message, Tick, conversation_id, unnamed
from nightmail.client.schedule_events import CancelRefused, ScheduleChanged
from nightmail.client.store.rows import Contact

from .file_words import file_event_json, pointer_json
from .group_json import group_event_json


def schedule_event_json(event: ScheduleChanged | CancelRefused, account: int) -> dict[str, Any]:
    conversation = conversation_id(account, event.peer) if event.peer else None
    about = {"message_id": event.message_id, "conversation_id": conversation, "reason": event.reason}
    if isinstance(event, CancelRefused):
        return {"type": "cancel_refused", **about}
    return {
        "type": "schedule", **about, "state": event.state.name.lower(), **time_fields("deliver_at", event.deliver_at),
        "needs_sealing": event.is_stale,
    }  # fmt: skip


def state_word(state: Tick) -> str:
    """How far a message got: pending, sent, delivered, read or failed; the same word in every command."""
    return state.name.lower()


def time_fields(name: str, at_ms: int) -> dict[str, object]:
    """A time as RFC 3339 in UTC, and in milliseconds since 1970; null and 0 if it has not happened."""
    then = datetime.fromtimestamp(at_ms // 1_000, UTC) if at_ms else None
    words = f"{then:%Y-%m-%dT%H:%M:%S}.{at_ms % 1_000:03d}Z" if then else None
    return {name: words, f"{name}_ms": at_ms}


def contact_json(contact: Contact) -> dict[str, object]:
    return {
        "account": f"{contact.account:x}", "handle": contact.handle, "name": contact.name, "blocked": contact.blocked,
    }  # fmt: skip


def timer_json(
    message_id: str, conversation: str, handle: str, own: bool, life_ms: int, at: int
) -> dict[str, Any]:  # fmt: skip
    return {
        "type": "timer_changed", "message_id": message_id, "conversation_id": conversation, "peer": handle, "own": own,
        "timer_ms": life_ms, **time_fields("at", at),
    }  # fmt: skip


def sight_json(sight: Sight) -> dict[str, object]:
    return {"presence": sight.state.name.lower(), **time_fields("last_seen", sight.last_seen)}


def message_json(message: Message, account: int) -> dict[str, Any]:
    conversation, peer = conversation_id(account, message.peer), message.handle or unnamed(message.peer)
    # In a group it is the author who has a handle.
    whose = {"peer": peer} if message.group is None else {"group": f"{message.group:x}", "by": message.handle}
    if message.timer_ms is not None:
        return timer_json(message.id, conversation, peer, message.own, message.timer_ms, message.at)
    shape: dict[str, Any] = {
        "type": "message",
        "message_id": message.id,
        "conversation_id": conversation,
        **whose,
        "own": message.own,
        **time_fields("at", message.at),
    }
    if message.life_ms:
        shape["life_ms"] = message.life_ms
    if message.is_erased:
        shape["disappeared"] = True
    content = message.content
    if content.reply_to:
        shape["reply_to_message_id"] = content.reply_to
    if content.mentions:
        shape["mentions"] = [f"{mentioned:x}" for mentioned in content.mentions]
    if (pointer := message.media) is not None:
        shape["file"] = pointer_json(pointer)
    elif content.data is not None:
        shape["data_base64"] = base64.b64encode(content.data).decode()
    return shape if content.text is None else {**shape, "text": content.text}


def event_json(event: Event, account: int) -> dict[str, Any]:
    """An object with a `type`, for every event."""
    match event:
        case Message():
            return message_json(event, account)
        case SentAck():
            return {
                "type": "sent", "message_id": event.message_id, "conversation_id": event.conversation_id,
                **time_fields("at", event.at),
            }  # fmt: skip
        case DeliveryReceipt():
            shape: dict[str, Any] = {
                "type": "delivery_receipt", "message_id": event.message_id, "conversation_id": event.conversation_id,
                **time_fields("delivered_at", event.delivered_at), "device": f"{event.device:x}",
                "state": state_word(event.state),
            }  # fmt: skip
            return {**shape, "reason": event.reason} if event.reason else shape
        case ReadReceipt():
            return {
                "type": "read_receipt", "conversation_id": event.conversation_id, "read_up_to": event.read_up_to,
                **time_fields("read_at", event.read_at),
            }  # fmt: skip
        case MessageFailed():
            return {
                "type": "failed", "message_id": event.message_id, "conversation_id": event.conversation_id,
                "reason": event.reason, **time_fields("at", event.at),
            }  # fmt: skip
        case Disappeared():
            return {
                "type": "disappeared", "conversation_id": event.conversation_id,
                "message_ids": list(event.message_ids),
            }  # fmt: skip
        case TimerChanged():
            conversation = conversation_id(account, event.peer)
            return timer_json(event.message_id, conversation, event.handle, event.own, event.life_ms, event.at)
        case LifeDiffers():
            return {
                "type": "life_differs", "message_id": event.message_id,
                "conversation_id": conversation_id(account, event.peer),
                "said_ms": event.said_ms, "sealed_ms": event.sealed_ms,
            }  # fmt: skip
        case WaitingForNetwork():
            return {
                "type": "waiting_for_network", "conversation_id": event.conversation_id,
                "message_ids": list(event.message_ids),
            }  # fmt: skip
        case Connected():
            return {"type": "connected", "node": event.node, **time_fields("at", event.at)}
        case Disconnected():
            return {"type": "disconnected", "code": event.code, "why": event.why}
        case Retrying():
            return {"type": "retrying", "address": event.address, "in_ms": event.in_ms, "why": event.why}
        case QueueEmpty():
            return {"type": "queue_empty"}
        case Gap():
            return {
                "type": "gap", "lane": event.lane.name.lower(), "low": event.low, "high": event.high,
                "reason": event.reason.name.lower(),
            }  # fmt: skip
        case Unreadable():
            return {"type": "unreadable", "message_id": event.message_id, "by": f"{event.by:x}", "why": event.why}
        case SecurityCodeChanged():
            return {
                "type": "security_code_changed", "account": f"{event.account:x}", "peer": event.handle,
                "verified": event.verified,
            }  # fmt: skip
        case ListRefused():
            return {
                "type": "list_refused", "account": f"{event.account:x}", "peer": event.handle, "why": event.why,
            }  # fmt: skip
        case ListUnsigned():
            return {"type": "list_unsigned", "account": f"{event.account:x}", "peer": event.handle}
        case KeysRefused():
            return {
                "type": "keys_refused", "account": f"{event.account:x}", "peer": event.handle,
                "device": f"{event.device:x}", "why": event.why,
            }  # fmt: skip
        case DeviceLinked():
            return {"type": "device_linked", "device": f"{event.device:x}"}
        case DeviceNotLinked():
            return {"type": "device_not_linked", "device": f"{event.device:x}", "why": event.why}
        case Provisioned():
            return {"type": "provisioned"}
        case Reachable():
            return {"type": "reachable"}
        case Moved():
            return {"type": "moved", "device": f"{event.device:x}"}
        case ReadElsewhere():
            return {"type": "read_elsewhere", "message_ids": list(event.messages)}
        case ContactsChanged():
            return {"type": "contacts_changed", "accounts": [f"{account:x}" for account in event.accounts]}
        case PresenceChanged():
            return {
                "type": "presence", "account": f"{event.account:x}", "peer": event.handle, **sight_json(event.sight),
            }  # fmt: skip
        case TypingChanged():
            group = {} if event.group is None else {"group": f"{event.group:x}"}
            return {
                "type": "typing", "account": f"{event.account:x}", "peer": event.handle, "typing": event.typing,
                **group,
            }  # fmt: skip
        case ServerBehind():
            lane = event.lane.name.lower() if event.lane is not None else "receipts"
            return {"type": "server_behind", "lane": lane, "head": event.head, "cursor": event.cursor}
        case ScheduleChanged() | CancelRefused():
            return schedule_event_json(event, account)
        case BackedUp():
            return {
                "type": "backed_up", "file": event.file, **time_fields("at", event.at), "messages": event.messages,
                "bytes": event.size,
            }  # fmt: skip
        case BackupFailed():
            return {"type": "backup_failed", "file": event.file, "why": event.why}
        case FileChanged() | FileProgress():
            return file_event_json(event)
        case Ended():
            return {"type": "ended", "code": event.code, "why": event.sentence}
        case _:
            return group_event_json(event)
