"""The verdict on groups, from what sealed devices wrote, were handed and show.

Knows:   whom each message was for: who was a member where it stands, and joined; and why a device may lack it.
Never:   asks a server, except as a person can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightmail.client.messages import Tick
from nightmail.client.store.group_rows import GroupRow, GroupStanding
from nightmail.model.group_rows import MemberState
from nightmail.model.ids import DEVICE_BITS, account_of, log_of
from sim.world.world import Broken

from .group_checkers import check_streams, is_member
from .group_history import Numbered, Stream
from .group_story import GroupMessage

if TYPE_CHECKING:
    from sim.world.device import Device
    from sim.world.town import Town

GOT_IT = (Tick.SENT, Tick.DELIVERED, Tick.READ)


def check_groups(town: Town) -> None:
    story = town.story
    devices = {device.me.device: device for device in town.devices}
    for group, messages in story.handed.messages.items():
        check_streams(group, messages)
        for device in devices.values():
            _check_handed(town, device, group, messages)
    counted = set[int]() if town.habits.forges else {group for group in story.groups if story.always_counted(group)}
    for message in story.messages.values():
        if message.by in devices and message.id not in town.later.scheduled:  # those have a verdict of their own
            _check_fate(town, devices[message.by], message)
            if message.group in counted:  # a server that lies can keep to itself who has what
                _check_heard(town, devices[message.by], message)
    for number, shown in story.shown.items():
        for message_id in shown:
            _check_may_show(town, number, story.messages[message_id])
    for device in devices.values():
        _check_opened(town, devices, device)
    for group in story.groups:
        _check_same(town, group)


def _check_fate(town: Town, author: Device, message: GroupMessage) -> None:
    """Accepted, or failed, and its author shows which."""
    if message.answer is None:
        raise town.history.broke("everything is answered", f"{message.id} is still waiting")
    own = author.store.message(message.id)
    if message.is_control or (own is None and message.id in author.timers.ended):
        return
    if own is None:
        raise town.history.broke("ticks are true", f"{author.name} has forgotten {message.id}")
    if not message.is_sent:
        if own.state is not Tick.FAILED:
            raise town.history.broke("ticks are true", f"{message.id} was given up, and is {own.state.name}")
    elif own.state not in GOT_IT or (own.at, own.group_seq) != (message.answer.at, message.answer.group_seq):
        raise town.history.broke("ticks are true", f"{message.id} was taken as {message.answer}: {own!r} {own.at}")


def _check_heard(town: Town, author: Device, message: GroupMessage) -> None:
    """Its author is told who has it."""
    if not message.is_control:
        newest = max(town.story.handed.messages.get(message.group, {0: None}))
        town.story.receipts.check_heard(town, author, message, newest)


def _check_may_show(town: Town, device: int, message: GroupMessage) -> None:
    """Nobody but members opens anything; and everybody sees one number and one stamp."""
    roster, history, account = town.story.roster(message.head), town.story.handed, account_of(device)
    shown = town.story.shown[device][message.id]
    if message.id in town.later.scheduled and account == account_of(message.by):
        return  # Every own device knows it since it was scheduled.
    if roster is None or account not in roster.members:
        raise town.history.broke("nobody else can open it", f"{history_name(town, device)} shows {message.id}")
    if message.answer is not None and message.is_sent:
        taken = message.answer
        if (shown.at, shown.group_seq) != (taken.at, taken.group_seq):
            raise town.history.broke(
                "one stamp", f"{message.id} is {shown.group_seq} at {shown.at} on {device:x}, for its author {taken}"
            )
    if account not in town.history.started_over and not is_member(history, message.group, account, shown.group_seq):
        raise town.history.broke("nobody else can open it", f"{history_name(town, device)} was no member: {message.id}")


def history_name(town: Town, device: int) -> str:
    return town.history.name(device)


def _check_handed(town: Town, device: Device, group: int, messages: dict[int, Numbered]) -> None:
    """A device that was there from the beginning is handed everything of its memberships; another, from its first."""
    history, number = town.story.handed, device.me.device
    if group in device.forger.groups.members_of:
        return  # a device asks for nothing of a group that it does not know to be in
    handed = history.of(number).in_group(group)
    first = min((seq for seq, entry in handed.items() if entry.of is None), default=1 << 62)
    account = account_of(number)
    if device is device.person.devices[0] and account not in town.history.started_over:
        first = 0
    for seq, message in messages.items():
        if seq < first or seq in handed or message.by == number or not is_member(history, group, account, seq):
            continue
        if not _failed_on(town, group, message, number):
            raise town.history.broke("nothing lost", f"{device.name} was never handed {group:x} {seq}: {message}")


def _failed_on(town: Town, group: int, message: Numbered, number: int) -> bool:
    author = next((each for each in town.devices if each.me.device == message.by), None)
    if author is None or author.me.account == account_of(number):
        return True
    failed = town.story.handed.of(message.by).failed.get((Stream(message.by, group, message.lane), message.n), {})
    return bool(failed.keys() & {number, account_of(number) << DEVICE_BITS, log_of(group)})


def _check_opened(town: Town, devices: dict[int, Device], device: Device) -> None:
    """Everything that a device was handed is shown in the end, or there is a reason that the story knows."""
    story = town.story
    shown = story.shown[device.me.device]
    for entry in story.handed.of(device.me.device).entries.values():
        message = story.messages.get(entry.id)
        if message is None or message.is_control or message.id in shown or not entry.by:
            continue
        if why := _why_unreadable(town, devices, device, message):
            town.world.hit(f"unreadable in a group: {why}")
        else:
            raise town.history.broke("everything opens", f"{device.name} was handed {message.id}, and cannot open it")


def _why_unreadable(town: Town, devices: dict[int, Device], device: Device, message: GroupMessage) -> str:
    history, row = town.history, device.store.group(message.group)
    author = devices.get(message.by)
    if message.id in device.timers.ended:
        return "its life is over"
    if author is None:
        return "its author is gone"
    if row is None or row.standing is not GroupStanding.JOINED:
        return "it is in the group no more"
    if any(forger.has_lied or message.group in forger.groups.about for forger in (device.forger, author.forger)):
        return "the server lies"
    own = author.store.group(message.group)
    if own is None or own.standing is not GroupStanding.JOINED:
        return "its author has left"
    written = author.store.message(message.id)
    if written is None or written.is_erased:
        return "its author has it no more"
    if row.joined_at > message.written_at or {device.me.device, message.by} & history.set_back:
        return "a device was set back"
    return ""


def _check_same(town: Town, group: int) -> None:
    """All who are in a group agree on who is."""
    rows: dict[str, GroupRow] = {}
    for device in town.devices:
        row = device.store.group(group)
        if row is not None and row.standing is GroupStanding.JOINED:
            rows[device.name] = row
            state = row.states.get(device.me.account, MemberState.JOINED)
            if state is not MemberState.JOINED:
                town.world.hit("knows that it does not take part")
    if len({row.head for row in rows.values()}) > 1:
        told = {name: row.index for name, row in rows.items()}
        raise Broken("all know the same members", f"{group:x} has come to {told}")
