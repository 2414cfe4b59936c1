"""How something is said: lines for people, one JSON object per line for scripts.

Knows:   the shapes of D1 for receipts, and that text of others may try to command the terminal.
Touches: standard output.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from nightmail.client.events import (
    Connected,
    DeliveryReceipt,
    DeviceLinked,
    DeviceNotLinked,
    Disconnected,
    Ended,
    Event,
    Gap,
    KeysRefused,
    ListRefused,
    MessageFailed,
    Moved,
    Provisioned,
    QueueEmpty,
    Reachable,
    ReadElsewhere,
    ReadReceipt,
    Retrying,
    SecurityCodeChanged,
    SentAck,
    ServerBehind,
    Unreadable,
    WaitingForNetwork,
)
from nightmail.client.messages import Message, Tick, conversation_id

TICKS = {Tick.PENDING: "🕓", Tick.SENT: "✓", Tick.DELIVERED: "✓✓", Tick.READ: "✓✓", Tick.FAILED: "✗"}
TICK_STYLES = {Tick.READ: "not dim blue", Tick.FAILED: "not dim red"}


def console() -> Console:
    """For people. Lines are left whole, so that they can be copied and searched."""
    return Console(highlight=False, soft_wrap=True)


def say_json(value: dict[str, Any]) -> None:
    """One object, one line, at once."""
    click.echo(json.dumps(value, ensure_ascii=False))
    sys.stdout.flush()


def as_json_option(command: Any) -> Any:
    return click.option("--json", "as_json", is_flag=True, help="One JSON object per line, for scripts.")(command)


def clock(at_ms: int) -> str:
    """The time of day here; the date, too, if it was another day."""
    then = datetime.fromtimestamp(at_ms / 1000).astimezone()
    today = datetime.now().astimezone().date()
    return f"{then:%H:%M:%S}" if then.date() == today else f"{then:%Y-%m-%d %H:%M:%S}"


def plain(text: str) -> str:
    """Text of somebody else as it may be printed: no byte of it can move the cursor or ring the bell."""
    return "".join(char if char.isprintable() or char == "\n" else "�" for char in text)


def command_line(*words: str) -> str:
    """A command that can be copied: as `nightmail` was called, quoted where a shell would need it."""
    return " ".join([_program(), *(shlex.quote(word) for word in words)])


def _program() -> str:
    called = Path(sys.argv[0])
    if called.name != "nightmail":
        return "nightmail" if shutil.which("nightmail") else f"{_short(Path(sys.executable))} -m nightmail"
    found = shutil.which("nightmail")
    if found and Path(found).resolve() == called.resolve():
        return "nightmail"
    return _short(called)


def _short(path: Path) -> str:
    """From here, if that is shorter."""
    path = path if path.is_absolute() else Path.cwd() / path
    return min(str(path), os.path.relpath(path), key=len)


def message_line(
    message: Message, name: str, text: str | None, spans: Sequence[tuple[int, int]] = ()
) -> Text:  # fmt: skip
    """When, who, what, and how far an own one got; `spans` of it stand out."""
    line = Text(f"{clock(message.at) if message.at else '':8}  ", style="dim")
    line.append(f"→ {name}: " if message.own else f"{name}: ", style="dim" if message.own else "bold cyan")
    said = Text(plain(text) if text is not None else f"({message.kind.name.lower()})", style="not dim")
    for start, end in spans:
        said.stylize("bold reverse", start, end)
    line.append_text(said)
    if message.own:
        line.append(f"  {TICKS[message.state]}", style=TICK_STYLES.get(message.state, "dim"))
    return line


def changed_line(at: int) -> Text:
    """Stands in a conversation where the other person's key became another one."""
    return Text(f"{clock(at)}  the security code has changed", style="yellow")


# --- events -----------------------------------------------------------------------------------


def message_json(message: Message, account: int) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "type": "message",
        "message_id": message.id,
        "conversation_id": conversation_id(account, message.peer),
        "peer": message.handle or f"{message.peer:x}",
        "own": message.own,
        "at": message.at,
    }
    content = message.content
    if content.reply_to:
        shape["reply_to"] = content.reply_to
    if content.data is not None:
        shape["data_base64"] = base64.b64encode(content.data).decode()
    return shape if content.text is None else {**shape, "text": content.text}


def event_json(event: Event, account: int) -> dict[str, Any]:
    """An event for scripts. Receipts have the shapes that the documentation promises."""
    match event:
        case Message():
            return message_json(event, account)
        case SentAck():
            return {
                "type": "sent", "message_id": event.message_id, "conversation_id": event.conversation_id,
                "at": event.at,
            }  # fmt: skip
        case DeliveryReceipt():
            shape = {
                "type": "delivery_receipt", "message_id": event.message_id, "conversation_id": event.conversation_id,
                "delivered_at": event.delivered_at, "device": f"{event.device:x}", "state": event.state.name.lower(),
            }  # fmt: skip
            return {**shape, "reason": event.reason} if event.reason else shape
        case ReadReceipt():
            return {
                "type": "read_receipt", "conversation_id": event.conversation_id, "read_up_to": event.read_up_to,
                "read_at": event.read_at,
            }  # fmt: skip
        case MessageFailed():
            return {
                "type": "failed", "message_id": event.message_id, "conversation_id": event.conversation_id,
                "reason": event.reason, "at": event.at,
            }  # fmt: skip
        case WaitingForNetwork():
            return {
                "type": "waiting_for_network", "conversation_id": event.conversation_id,
                "message_ids": list(event.message_ids),
            }  # fmt: skip
        case Connected():
            return {"type": "connected", "node": event.node, "at": event.at}
        case Disconnected():
            return {"type": "disconnected", "code": event.code, "why": event.why}
        case Retrying():
            return {"type": "retrying", "address": event.address, "in_ms": event.in_ms}
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
        case ServerBehind():
            lane = event.lane.name.lower() if event.lane is not None else "receipts"
            return {"type": "server_behind", "lane": lane, "head": event.head, "cursor": event.cursor}
        case Ended():
            return {"type": "ended", "code": event.code, "why": event.sentence}
