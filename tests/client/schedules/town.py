"""Sealed devices whose people schedule messages, over the real fold."""

from __future__ import annotations

from nightmail.client.events import Event
from nightmail.client.messages import Message
from nightmail.client.schedule_events import CancelRefused, ScheduleChanged
from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.e2ee.content import Content
from nightmail.model.schedule_rows import ScheduleState
from nightmail.model.words import Kind
from tests.client.groups.town import a_group, a_town, add, change, texts
from tests.client.town import Device, Town

__all__ = [
    "a_group", "a_town", "add", "cancels", "change", "history", "own", "refusals", "schedules", "shown", "states",
    "texts", "until",
]  # fmt: skip

SOON = 5_000
SLOT_MS = 50


def schedules(device: Device, to: Device | int, text: str, ms: int = SOON, life_ms: int | None = None) -> ScheduledRow:
    town = device.town
    peer = to if isinstance(to, int) else to.me.account
    row = device.machine.schedule(peer, Content(Kind.TEXT, text), town.now + ms, town.now, life_ms=life_ms)
    device.look()
    return row


def cancels(device: Device, row: ScheduledRow) -> None:
    device.machine.cancel(row.id, device.town.now)
    device.look()


def until(town: Town, row: ScheduledRow, more_ms: int = 0) -> None:
    """The time of a message comes, and the slot that it is in passes."""
    slot_ms = 0 if more_ms < 0 else SLOT_MS
    town.wait(max(0, row.deliver_at + more_ms + slot_ms - town.now))
    town.settle()


def states(device: Device, row: ScheduledRow) -> list[str]:
    """What the app was told of it, in order."""
    told: list[Event] = [event for event in device.events if getattr(event, "message_id", "") == row.id]
    return [
        "stale" if event.is_stale else event.state.name.lower() + (f" ({event.reason})" if event.reason else "")
        for event in told
        if isinstance(event, ScheduleChanged)
    ]


def refusals(device: Device, row: ScheduledRow) -> list[str]:
    return [event.reason for event in device.told(CancelRefused) if event.message_id == row.id]


def own(device: Device, row: ScheduledRow) -> ScheduledRow:
    found = device.store.schedule(row.id)
    assert found is not None
    return found


def shown(device: Device, row: ScheduledRow) -> list[Message]:
    """The events by which the app was told of the message."""
    return [message for message in device.told(Message) if message.id == row.id]


def history(device: Device, peer: Device | int) -> list[tuple[str, str]]:
    account = peer if isinstance(peer, int) else peer.me.account
    return [(message.text, message.state.name.lower()) for message in device.store.history(account, 1_000)]


PENDING = ScheduleState.PENDING
