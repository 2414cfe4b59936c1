"""The verdict on messages for later, from what sealed devices scheduled, were handed, told and show.

Knows:   when each message was to come, who has taken it back, and which devices it was handed to.
Never:   asks a server, except as a person can.

Never before its time, never after a successful cancel, never twice on a device, never zero times without a word.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nightmail.client.events import Event
from nightmail.client.messages import Message, Tick
from nightmail.client.schedule_events import CancelRefused, ScheduleChanged
from nightmail.client.store.rows import MessageNumber, Missed
from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.model.group_chain import is_group
from nightmail.model.ids import SERVER, account_of
from nightmail.model.records import Resealed, SaidByDevices, Scheduled
from nightmail.model.rows import Entry, PendingReceipt
from nightmail.model.schedule_rows import SCHEDULED_FROM, GroupContent, ScheduleState
from nightmail.model.words import MessageState
from sim.world.world import Broken

from .group_history import Place
from .history import Key

if TYPE_CHECKING:
    from sim.world.device import Device
    from sim.world.device_store import Written
    from sim.world.town import Town

EARLY, ZERO, CANCELLED = "never before its time", "never zero times", "never after a cancel"
MAY_FAIL = frozenset({"stale_devices", "device_removed", "time_past", "outcome_unknown"})
"""Why a message for later may come to nothing here: nobody was there to seal it again, or its device was lost."""
FIRST_STEPS_MS = 1_000
"""So long somebody may not have registered yet."""


@dataclass
class Later:
    """A message that somebody has scheduled, durably."""

    row: ScheduledRow
    account: int
    sealed_for: frozenset[int] = frozenset()
    """The devices that it was ever sealed for."""
    cancelled: bool = False
    """A person was told that it is taken back."""
    n: int = 0
    handed: dict[int, Place] = field(default_factory=dict[int, Place])
    """Device → the place in its mailbox, or in the group's log."""
    keys: set[tuple[int, int, int]] = field(default_factory=set[tuple[int, int, int]])
    """(by, to, n) of it, as its author or a recipient was told."""


class ScheduleStory:
    def __init__(self) -> None:
        self.scheduled: dict[str, Later] = {}
        self._failed: defaultdict[tuple[int, int, int], set[int]] = defaultdict(set)
        """(by, to, n) → devices that its author was told it has failed on."""
        self.shown: defaultdict[int, dict[str, int]] = defaultdict(dict)
        """Device → message → its stamp there."""

    def failed_on(self, later: Later) -> set[int]:
        return {device for key in later.keys for device in self._failed[key]}

    def note_failed(self, by: int, to: int, n: int, device: int) -> None:
        self._failed[by, to, n].add(device)

    def is_shown(self, device: int, message_id: str) -> bool:
        return message_id in self.shown.get(device, ())


class ScheduleTap:
    """One device."""

    def __init__(self, device: Device) -> None:
        self._device, self._world, self._history = device, device.world, device.history
        self._story = device.person.town.later
        self._told: set[str] = set()

    def _broke(self, promise: str, what: str) -> Broken:
        return self._history.broke(promise, f"{self._device.name} {what}")

    def says(self, body: SaidByDevices) -> None:
        if not isinstance(body, Scheduled | Resealed):
            return
        later = self._story.scheduled.get(body.id)
        if later is None:
            raise self._broke("durable before it is sent", f"schedules {body.id}")
        if in_group := isinstance(body.content, GroupContent):
            self._device.groups.seals(body.id, later.row.to, body.content)
        else:
            later.sealed_for |= {envelope.device for envelope in body.content.envelopes}
        if isinstance(body, Resealed):
            self._world.hit("sealed again for later" + " in a group" * in_group)

    def hears(self, place: Place, entry: Entry) -> bool:
        """Whether the entry was scheduled; then it is judged."""
        if entry.n <= SCHEDULED_FROM:
            return False
        later = self._story.scheduled.get(entry.id)
        if later is None:
            raise self._broke("no ghost", f"was given {entry.id}, which nobody scheduled")
        if entry.at < later.row.deliver_at - self._world.clock_slack_ms:
            raise self._broke(EARLY, f"was given {entry.id}, {later.row.deliver_at - entry.at} ms before its time")
        if later.cancelled:
            raise self._broke(CANCELLED, f"was given {entry.id}")
        if later.handed.setdefault(self._device.me.device, place) != place:
            raise self._broke("nothing twice", f"was given {entry.id} under two numbers")
        if (later.n or entry.n) != entry.n:
            raise self._broke("nothing twice", f"was given {entry.id} as {entry.n}, and others as {later.n}")
        later.n = entry.n
        later.keys.add((entry.by, entry.to, entry.n))
        return True

    def news(self, change: PendingReceipt) -> bool:
        """Whether a receipt says which schedules have changed."""
        if change.key[0] == SERVER:
            self._world.hit("news of a schedule")
            return True
        return False

    def receipt(self, key: Key, device: int, state: MessageState) -> bool:
        """Whether a receipt is about a message for later."""
        by, to, _, n = key
        if n > SCHEDULED_FROM and state is MessageState.FAILED:
            self._story.note_failed(by, to, n, device)
        return n > SCHEDULED_FROM

    def written(self, row: Written) -> bool:
        """Whether something durable concerns messages for later alone."""
        story = self._story
        if isinstance(row, ScheduledRow):
            if row.id not in story.scheduled:
                story.scheduled[row.id] = Later(row, self._device.me.account)
                if is_group(row.to):
                    self._device.groups.schedules(row)
                self._world.tell(self._device.name, f"schedules {row.id} to {row.to:x} for {row.deliver_at}")
                self._world.hit("scheduled")
            return True
        if isinstance(row, MessageNumber):
            if later := story.scheduled.get(row.id):
                later.keys.add((row.by, row.to, row.n))
            return row.n > SCHEDULED_FROM
        if isinstance(row, Missed) or not isinstance(row, Message) or row.id not in story.scheduled:
            return False
        shown = story.shown[self._device.me.device]
        if story.scheduled[row.id].cancelled:
            raise self._broke(CANCELLED, f"shows {row.id}")
        if shown.setdefault(row.id, row.at) != row.at:
            raise self._broke("one stamp", f"shows {row.id} at {row.at}, and before at {shown[row.id]}")
        return True

    def told(self, event: Event) -> bool:
        """Whether its app is told of a message for later."""
        if isinstance(event, CancelRefused):
            self._world.hit(f"not cancelled: {event.reason}")
            return True
        if isinstance(event, ScheduleChanged):
            self._changed(event)
            return True
        if not isinstance(event, Message) or event.id not in self._story.scheduled:
            return False
        if event.id in self._told:
            raise self._broke("nothing twice", f"tells its app of {event.id} again")
        self._told.add(event.id)
        return True

    def _changed(self, event: ScheduleChanged) -> None:
        later = self._story.scheduled.get(event.message_id)
        self._world.tell(self._device.name, f"hears that {event.message_id} is {event.state.name} {event.reason}")
        self._world.hit(f"schedule {event.state.name.lower()}" + (f": {event.reason}" if event.reason else ""))
        if event.is_stale:
            self._world.hit("schedule stale")
        if later is not None and event.state is ScheduleState.CANCELLED:
            later.cancelled = True
            if later.handed:
                raise self._broke(CANCELLED, f"is told that {event.message_id} is taken back, and it was delivered")


# --- in the morning ---------------------------------------------------------------------------


def check_schedules(town: Town) -> None:
    for message_id, later in town.later.scheduled.items():
        author = next(person for person in town.people if person.account == later.account)
        rows = {
            device.name: row for device in author.devices if (row := device.store.schedule(message_id)) is not None
        }  # fmt: skip
        for name, row in rows.items():
            _check_fate(town, name, later, row)
        if len({row.state for row in rows.values()}) > 1:
            told = {name: row.state.name for name, row in rows.items()}
            raise town.history.broke("own devices agree", f"{message_id}: {told}")
        for device in author.devices:
            if device.name in rows and rows[device.name].state is ScheduleState.DELIVERED:
                _check_own(town, device, later)


def _check_fate(town: Town, name: str, later: Later, row: ScheduledRow) -> None:
    if not row.ended_at:
        raise town.history.broke(ZERO, f"{row.id} is still {row.state.name.lower()} on {name}")
    if row.state is ScheduleState.FAILED and not _may_fail(town, row):
        raise town.history.broke(ZERO, f"{row.id} has failed: {row.reason}")
    if row.state is not ScheduleState.DELIVERED:
        if later.handed:
            raise town.history.broke("ticks are true", f"{row.id} was delivered, and is {row.state.name} on {name}")
        return
    if is_group(row.to):
        return  # Who was a member is handed it, and shows it: `client_groups` judges.
    recipients = [device for device in town.devices if account_of(device.me.device) == row.to]
    failed = town.later.failed_on(later)
    if not any(device.me.device in later.handed for device in recipients) and not (failed or later.handed):
        raise town.history.broke(ZERO, f"{row.id} is delivered, and nobody was handed it")
    for device in recipients:
        number = device.me.device
        if number in later.handed and number not in failed and not town.later.is_shown(number, row.id):
            raise town.history.broke(ZERO, f"{device.name} was handed {row.id}, and does not show it")
        if number in later.sealed_for and number not in later.handed and number not in failed:
            if device.seen.gaps or town.later.is_shown(number, row.id):
                continue
            raise town.history.broke(ZERO, f"{row.id} was sealed for {device.name}, which was never handed it")


def _may_fail(town: Town, row: ScheduledRow) -> bool:
    if is_group(row.to):
        return row.reason in MAY_FAIL or row.reason == "not_member"  # Its author has left, or was removed.
    is_early = row.made_at < town.world.start + FIRST_STEPS_MS
    return row.reason in MAY_FAIL or (row.reason == "unknown_recipient" and is_early)


def _check_own(town: Town, device: Device, later: Later) -> None:
    """A delivered message stands in its author's history."""
    own = device.store.message(later.row.id)
    if own is None and later.row.id in device.timers.ended:
        return
    if own is None or own.state in (Tick.PENDING, Tick.FAILED):
        if own is not None and town.later.failed_on(later):
            return
        raise town.history.broke("ticks are true", f"{device.name} shows {later.row.id} as {own!r}")
