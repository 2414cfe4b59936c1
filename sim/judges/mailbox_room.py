"""Whether a device had room for a message, by what clients saw.

Knows:   what was sealed for a device, and what the authors of some of it were told before a moment.
Never:   asks the server: what may wait is whatever nobody can know to have been acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightmail.model.ids import account_of
from nightmail.model.words import Lane
from sim.world.world import Broken

from .history import History, Message, Seen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.world.town import Town


def had_room(town: Town, device: int, before: int, message: Message) -> bool:
    """Whether it is certain that a device had room when `message` was taken, some time after `before`."""
    history, limits = town.history, town.limits.fold
    if town.has_few_bytes or history.may_be_blocked(message):
        return False  # How much each takes, or would take, is not known here.
    waiting = _may_wait(history, device, before, message)
    account, sender = account_of(device), account_of(message.by)
    if account != sender and history.known.get((account, sender), before) >= before:
        # Perhaps a stranger: sure of room only where nobody can hold too much.
        return history.attacks[device] + len(waiting) < min(limits.mailbox_entries, limits.stranger_entries)
    share = max(limits.stranger_entries, limits.mailbox_entries // limits.share_parts)
    if account != sender and sum(account_of(other.by) == sender for other in waiting) >= share:
        return False
    # However many strangers there are, they never hold more than their part.
    friends = sum(
        account_of(other.by) == account or (account, account_of(other.by)) in history.may_be_known for other in waiting
    )
    strangers = history.attacks[device] + len(waiting) - friends
    part = max(limits.stranger_entries, limits.mailbox_entries // limits.stranger_parts)
    return min(strangers, part) + friends < limits.mailbox_entries


def _may_wait(history: History, device: int, before: int, message: Message) -> list[Message]:
    """What may have been filed for a device and was not surely acknowledged."""
    seen = history.of(device)
    acked = [_acked(seen, lane, before) for lane in Lane]
    return [
        other
        for other in history.sealed_for.get(device, {}).values()
        # Of one stream, nothing behind what is being taken can have been filed.
        if (other.by, other.to, other.lane) != (message.by, message.to, message.lane) or other.n < message.n
        if seen.arrived.get(other.key, acked[other.lane] + 1) > acked[other.lane]
    ]


def _acked(seen: Seen, lane: Lane, before: int) -> int:
    return max((seq for heard_at, seq in seen.acked[lane] if heard_at < before), default=0)


def check_refused(town: Town, message: Message, devices: Iterable[int], asked_at: int) -> Broken | None:
    """Refused for want of room: then none of them has any."""
    for device in devices:
        if had_room(town, device, asked_at, message):
            return town.history.broke(
                "who has room gets it", f"{message.id} was refused for want of room, and {device:x} had some"
            )
    return None


def check_failed(town: Town, message: Message, device: int) -> Broken | None:
    """Failed for one device for want of room: then it had none."""
    if had_room(town, device, message.sealed_at, message):
        return town.history.broke("who has room gets it", f"{message.id} failed on {device:x}, which had room")
    return None
