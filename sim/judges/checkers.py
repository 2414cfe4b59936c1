"""The verdict, from what clients saw and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nightmail.client.messages import DeviceDelivery, Tick
from nightmail.client.messages import Message as Written
from nightmail.model.ids import account_of
from nightmail.model.words import Lane

from .client_groups import check_groups
from .client_schedules import check_schedules
from .history import History, Key, Message

if TYPE_CHECKING:
    from sim.world.device import Device
    from sim.world.town import Town

GOT_IT = (Tick.DELIVERED, Tick.READ)


def check_all(town: Town, is_seated: Callable[[int], bool]) -> None:
    history = town.history
    devices = {device.me.device: device for device in town.devices}
    for message in history.messages.values():
        if message.fate == "sent":
            check_not_lost(town, devices, message)
            check_order_of_answers(history, message)
            check_addressed(history, message)
        elif message.fate == "waiting" and message.by in devices:
            raise history.broke("everything is answered", f"{message.id} is still waiting")
        if message.by in devices and message.of is None and not message.is_control:
            check_ticks(history, devices[message.by], message)
            own = devices[message.by].store.message(message.id)
            if own is not None:
                check_successors(town, devices[message.by], message, own)
    for device in devices.values():
        check_stamps(history, device)
        check_senders_order(history, device)
        check_no_ghosts(history, device)
        check_readable(town, devices, device)
        if not is_seated(device.me.device):
            raise history.broke("who is here counts as online", f"{device.name} is connected, and nobody knows")
    check_receipts(town, devices)
    if town.sealed:
        check_sessions(town, devices)
    if town.group_life is not None:
        check_groups(town)
    check_schedules(town)


def check_not_lost(town: Town, devices: dict[int, Device], message: Message) -> None:
    """Shown on every addressed device, or failed with a reason, or its author is blocked."""
    history = town.history
    for device in message.envelopes[message.version]:
        if message.original in history.of(device).shown or town.later.is_shown(device, message.original):
            continue
        got = message.key in history.of(device).stored or history.of(device).gaps
        if message.is_control and (got or not {device, message.by} <= devices.keys()):
            continue  # As of any copy for an own device, nobody is told that it could not be had.
        if _told(town, message, device) == "failed" or history.may_be_blocked(message):
            continue
        if message.by in history.forgotten or not any(account_of(d) == account_of(message.by) for d in devices):
            continue
        raise history.broke("nothing lost", f"{message.id} never reached {device:x}, and its sender was told nothing")
    if message.by not in devices or message.of is not None:
        return  # Only the sending device is told of a copy that could not be filed.
    for device in (message.own or frozenset[int]()) | history.own_devices_before(message):
        seen = history.of(device)
        if message.id in seen.shown or device not in devices:
            continue
        if not (seen.gaps or _is_full(town, message, device) or _may_have_ended(town, message, device)):
            raise history.broke("nothing lost", f"{message.id}: no copy on its author's {device:x}")


def check_ticks(history: History, sender: Device, message: Message) -> None:
    """What the sender's app shows in the end is so: per device, and for the message as a whole."""
    own = sender.store.message(message.id)
    if own is None and message.id in sender.timers.ended:
        attempts = [attempt for attempt in history.messages.values() if attempt.original == message.id]
        if not any(sender.seen.delivered_at.get(a.key) or sender.seen.read_at.get(a.key) for a in attempts):
            raise history.broke("ticks are true", f"{sender.name} has forgotten {message.id}, which nobody has")
        return
    if own is None:
        raise history.broke("ticks are true", f"{sender.name} has forgotten {message.id}")
    if message.fate == "voided":
        if own.state is not Tick.FAILED:
            raise history.broke("ticks are true", f"{message.id} was given up, and is {own.state.name}")
        return
    if (own.at, own.state is Tick.PENDING) != (message.at, False):
        raise history.broke("ticks are true", f"{message.id} was accepted at {message.at}: {own!r}, {own.at}")
    attempts = [message]
    if message.id in history.resealed:
        attempts = [attempt for attempt in history.messages.values() if attempt.original == message.id]
    # Also on those that it was sealed for later, in place of others.
    for device in message.envelopes[message.version] | {d for d in own.places if account_of(d) == message.to}:
        place = own.places.get(device, DeviceDelivery())
        if message.id in history.of(device).shown:
            # It may have expired on its way, too.
            failed = any(device in sender.seen.failed_at.get(attempt.key, ()) for attempt in attempts)
            if place.state not in GOT_IT and not failed and not any(map(history.may_be_blocked, attempts)):
                raise history.broke("ticks are true", f"{message.id} is shown on {device:x}, told is {place}")
        elif place.state is not Tick.FAILED and not any(map(history.may_be_blocked, attempts)):
            raise history.broke("ticks are true", f"{message.id} is not shown on {device:x}, told is {place}")


def _is_full(town: Town, message: Message, device: int) -> bool:
    return _told(town, message, device) == "failed"


def _may_have_ended(town: Town, message: Message, device: int) -> bool:
    """Whether an own copy that a device was handed, and could not open, was too old before the device had said so.

    It is parked meanwhile, so the device is told of no gap; and nobody is told of a copy that has ended.
    """
    seen, ttl_ms = town.history.of(device), town.limits.fold.ttl_ms
    unopened = message.key in seen.arrived and message.key not in seen.stored
    return unopened and 0 < ttl_ms <= town.world.now - message.at


def check_addressed(history: History, message: Message) -> None:
    """Sealed for every device that was listed before, and kept from those who did not want it."""
    if message.version < (newest := history.list_version_before(message)):
        raise history.broke(
            "sealed for every device", f"{message.id} was accepted under {message.version}, not {newest}"
        )
    if history.must_be_blocked(message):
        key = (message.by, message.to, message.lane, message.n)
        for device in message.envelopes[message.version]:
            if key in history.of(device).stored:
                raise history.broke("a block holds", f"{message.id} reached {device:x}")


def _told(town: Town, message: Message, device: int) -> str:
    """What the surviving devices of the author know about one device."""
    key = message.key
    for person in town.people:
        if person.account == account_of(message.by):
            for own in person.devices:
                if device in own.seen.failed_at.get(key, {}):
                    return "failed"
                if device in own.seen.delivered_at.get(key, frozenset[int]()):
                    return "delivered"
    return "nothing"


def check_order_of_answers(history: History, message: Message) -> None:
    """What its author had seen when writing stands before it, everywhere."""
    if message.at <= message.seen:
        raise history.broke(
            "answers after questions", f"{message.id} at {message.at} answers what is at {message.seen}"
        )


def check_stamps(history: History, device: Device) -> None:
    """Every device sorts alike: one message, one stamp."""
    for shown in device.seen.shown.values():
        message = history.messages[shown.id]
        if message.fate == "sent" and message.at != shown.at and message.id not in history.resealed:
            raise history.broke(
                "one stamp", f"{shown.id} is at {shown.at} on {device.name}, at {message.at} for its author"
            )


def check_senders_order(history: History, device: Device) -> None:
    """In each lane, what one device sent into one conversation arrives in the order it was written."""
    last: dict[tuple[int, int, Lane], tuple[int, int]] = {}
    for shown in device.seen.shown.values():  # in the order in which they were
        message = history.messages[shown.id]
        if message.id in history.resealed or message.sets_timer:
            continue  # A new device is also told of the newest timer in another lane, before the messages around it.
        stream = (message.by, message.to, message.lane)
        before_n, before_at = last.get(stream, (0, 0))
        if message.n <= before_n or (message.at and message.at <= before_at):
            raise history.broke("sender's order", f"{device.name} got number {message.n} of {stream} after {before_n}")
        last[stream] = (message.n, message.at)


def check_no_ghosts(history: History, device: Device) -> None:
    """Nothing is shown that was not sent, and nothing that was voided."""
    for original in device.seen.shown:
        message = history.messages.get(original)
        if message is None or message.fate == "voided":
            raise history.broke("no ghost", f"{device.name} shows {original}, which was never sent")


def check_readable(town: Town, devices: dict[int, Device], device: Device) -> None:
    """What could not be opened came again and could be, or its sender was told that it could not."""
    history = town.history
    for missed in device.store.missed():
        if town.story.is_known(missed.id):
            continue  # judged with its group
        shown = missed.id in device.seen.shown or town.later.is_shown(device.me.device, missed.id)
        if missed.healed != shown:
            raise history.broke("unreadable is healed", f"{device.name}: {missed.id} is shown: {shown}, {missed}")
        if shown or missed.by in history.liars or missed.by not in devices or missed.id in town.later.scheduled:
            continue
        attempts = [attempt for attempt in history.messages.values() if attempt.original == missed.id]
        if device.forger.made and missed.at not in {attempt.at for attempt in attempts}:
            continue  # Forged: another entry was handed out under the id of this one.
        if any(map(history.may_be_blocked, attempts)):
            continue  # It was ended before the device said so.
        ended = device.seen.gaps or any(_may_have_ended(town, attempt, device.me.device) for attempt in attempts)
        if account_of(missed.by) == device.me.account and ended:
            continue  # It expired before the device said so: as of any copy for an own device, nobody is told.
        if not any(_told(town, attempt, device.me.device) == "failed" for attempt in attempts):
            raise history.broke("unreadable is healed", f"{device.name} cannot read {missed.id}, and nobody was told")


def check_sessions(town: Town, devices: dict[int, Device]) -> None:
    """Two devices that know the same sessions seal in the same one."""
    for device in devices.values():
        for number, other in devices.items():
            if number > device.me.device:
                ours, theirs = (
                    device.machine.sealer.sessions.find(number),
                    other.machine.sealer.sessions.find(device.me.device),
                )
                if ours is None or theirs is None or not ours.sessions or not theirs.sessions:
                    continue
                known = [{session.id for session in peer.sessions} for peer in (ours, theirs)]
                if known[0] != known[1]:
                    continue
                if len(known[0]) > 1:
                    town.world.hit("sessions crossed")
                if ours.sessions[0].id != theirs.sessions[0].id:
                    raise town.history.broke("one session", f"{device.name} and {other.name} seal in two")


def check_successors(town: Town, sender: Device, message: Message, own: Written) -> None:
    """What no device had when it was removed goes to the device that replaced it."""
    recipient = next((person for person in town.people if person.account == message.to), None)
    if recipient is None or own.state is not Tick.FAILED or not own.places:
        return
    if any(place.reason != "device_removed" for place in own.places.values()):
        return
    if recipient.devices and not own.places.keys() & {device.me.device for device in recipient.devices}:
        raise town.history.broke("a successor gets it", f"{sender.name} gave {message.id} up")


def check_receipts(town: Town, devices: dict[int, Device]) -> None:
    """Both ends agree on what was delivered and what was read.

    Only the device that sent it must know: one that joined later was not told of what was before its time.
    """
    for device in devices.values():
        for key in device.seen.stored:
            if key[0] in devices and account_of(key[0]) != device.me.account:
                check_delivered(town, devices[key[0]], device, key)
        check_read(town, devices, device)
        check_no_false_receipts(town.history, devices, device)
        check_copied_ticks(town.history, device)


def check_delivered(town: Town, sender: Device, device: Device, key: Key) -> None:
    seen = sender.seen
    if device.me.device in seen.delivered_at.get(key, ()):
        return
    if device.me.device in seen.failed_at.get(key, {}):
        town.world.hit("expiry met an ack")
        return  # It expired on its way; the device had it, the ack came too late.
    if town.history.may_be_blocked(town.history.by_number[key]):
        town.world.hit("a block met an ack")
        return  # It was ended while the device was handed it.
    raise town.history.broke(
        "receipts are equal at both ends",
        f"{device.name} has {key[2].name} {key[3]} of {sender.name}, who was not told",
    )


def check_read(town: Town, devices: dict[int, Device], device: Device) -> None:
    history, seen, me = town.history, device.seen, device.me
    for key in seen.read - seen.read_hidden:
        author = account_of(key[0])
        if author in history.receipts_off or me.account in history.receipts_off or key[0] not in devices:
            continue
        if device.person.hides_reading(author):
            continue  # What was read may have been told, or have come too late.
        sender = devices[key[0]]
        if me.device not in sender.seen.read_at.get(key, ()):
            raise history.broke("receipts are equal at both ends", f"{device.name} read {key}, untold")
        original = history.by_number[key].original
        own = sender.store.message(original)
        if own is None and original in sender.timers.ended:
            continue
        if own is None or own.places.get(me.device, DeviceDelivery()).state is not Tick.READ:
            raise history.broke("ticks are true", f"{device.name} read {key}, and {sender.name} does not show it")


def check_copied_ticks(history: History, device: Device) -> None:
    """What another own device wrote has its ticks here, too, although its receipts may have come before its copy."""
    for key, places in device.seen.delivered_at.items():
        by, to, lane, n = key
        if by == device.me.device or not device.store.numbered(by, to, lane, n, n):
            continue
        copy = device.store.message(history.by_number[key].original)
        if copy is None or not copy.own:
            continue
        for place in places:
            if account_of(place) == to and copy.places.get(place, DeviceDelivery()).state not in GOT_IT:
                raise history.broke(
                    "ticks are true", f"{key} was delivered to {place:x}, {device.name} does not show it"
                )


def check_no_false_receipts(history: History, devices: dict[int, Device], device: Device) -> None:
    """Nobody is told of a delivery or a reading that did not happen."""
    for key, places in device.seen.delivered_at.items():
        for place in places & devices.keys():
            if key not in history.of(place).stored:
                raise history.broke("no false receipts", f"{device.name} believes {key} on {place:x}")
    for key, places in device.seen.read_at.items():
        for place in places & devices.keys():
            if key not in history.of(place).reading:
                raise history.broke("no false receipts", f"{device.name} believes {key} read on {place:x}")
