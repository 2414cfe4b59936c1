"""The promises about groups, judged by what devices saw.

Knows:   the evidence of `group_history.py`, and which devices were there all the time.
Asks:    the group's shard one question, about receipts: that is an answer that people get, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from nightmail.core.groups.membership import SPANS_MAX
from nightmail.core.groups.reading import GroupSeen
from nightmail.model.group_chain import decode_change, head_of
from nightmail.model.group_rows import MemberState
from nightmail.model.ids import DEVICE_BITS, account_of, log_of
from nightmail.model.roster import ChangeFault, Creation, GroupChange, Roster, changed, created
from nightmail.model.spans import Spans, add_span
from nightmail.model.words import MessageState, Reason
from sim.world.world import Broken

from .group_history import GroupHistory, Numbered, Stream, stream_of

if TYPE_CHECKING:
    from sim.world.group_device import GroupDevice
    from sim.world.group_people import GroupPerson
    from sim.world.group_town import GroupTown


def check_all(town: GroupTown) -> None:
    history = town.history
    for group in town.groups:
        _check_roster(town, group)
    for group, messages in history.messages.items():
        check_streams(group, messages)
        for device in town.devices:
            _check_not_early(town, device, group)
        if not town.loses_notices:
            _check_nobody_else(town, group)
            for device in town.devices:
                _check_nothing_lost(town, device, group, messages)
            if town.limits.fold.relistings > 1:
                _check_missed(town, group, messages)
                for person in town.people:
                    _check_member_that_went(town, group, messages, person)
        _check_receipts(town, group, messages)
    for device in town.devices:
        _check_receipts_heard(town, device)
        _check_keys_first(town, device)


def check_streams(group: int, messages: dict[int, Numbered]) -> None:
    """In the order of the group, each author's numbers grow."""
    last: dict[tuple[int, int], int] = {}
    stamp = 0
    for seq, message in sorted(messages.items()):
        stream = message.by, message.lane
        if message.n <= last.get(stream, 0):
            raise Broken("sender's order", f"{group:x} {seq} is {message}, after {last[stream]}")
        if message.at <= stamp:
            raise Broken("stamps of a group grow", f"{group:x} {seq} is {message}, after {stamp}")
        last[stream], stamp = message.n, message.at


def _check_keys_first(town: GroupTown, device: GroupDevice) -> None:
    """What was sealed for a device came before everything that was written to the log after it.

    A key has no number. Its author was told the newest one then; stamps do not tell, they may stand ahead.
    """
    for stream, entry, newest in device.after_log:
        answer = town.history.answers.get((stream, entry.n))
        before = entry.group_seq if entry.of is None and entry.group_seq else answer.group_seq if answer else newest
        if newest > before:
            raise Broken("keys come first", f"{device.number:x} is handed {entry.id} of {entry.to:x} after {newest}")


# --- who is in it -----------------------------------------------------------------------------


def _check_roster(town: GroupTown, group: int) -> None:
    """The group has whom its chain says, and knows their devices."""
    seen, chain = town.group_seen(group), town.chain(group)
    if seen is None:
        return
    for (_, before), (_, blob) in pairwise(chain):
        if decode_change(blob).previous != head_of(before):
            raise Broken("each change follows the one before", f"{group:x}: {decode_change(blob)}")
    if len(chain) == seen.length:
        roster: Roster | None = None
        for _, blob in chain:
            chained = decode_change(blob)
            change = chained.change
            after = created(chained.actor, change) if isinstance(change, Creation) else None
            roster = after or _changed(roster, chained.actor, change)
        shown = {member.account: (member.key, member.role) for member in seen.members}
        if roster is None or shown != {number: (member.key, member.role) for number, member in roster.members.items()}:
            raise Broken("the roster follows from the chain", f"{group:x} has {shown}, its chain {roster}")
    if town.limits.fold.relistings > 1:
        _check_devices(town, group, seen)


def _changed(roster: Roster | None, actor: int, change: GroupChange) -> Roster:
    after = changed(roster, actor, change) if roster else ChangeFault.NOT_A_MEMBER
    if not isinstance(after, Roster):
        raise Broken("only allowed changes are taken", f"{change} of {actor:x}: {after.name}")
    return after


def _check_devices(town: GroupTown, group: int, seen: GroupSeen) -> None:
    for person in town.people:
        known = [member for member in seen.members if member.account == person.account]
        if not known or known[0].state is not MemberState.JOINED:
            continue
        if set(known[0].devices) != {device.number for device in person.devices}:
            raise Broken("a group knows its members' devices", f"{group:x} knows {known[0]} of {person.handle}")


def _check_not_early(town: GroupTown, device: GroupDevice, group: int) -> None:
    """Nobody could have sealed for a device that was not listed yet. A re-seal is for it alone."""
    for seq, entry in town.history.of(device.number).in_group(group).items():
        accepted = town.history.accepted_at.get((group, seq), 1 << 62)
        if entry.of is None and accepted < device.listed_at:
            raise Broken("a device gets what could be sealed for it", f"{device.number:x} is shown {group:x} {seq}")


def is_member(history: GroupHistory, group: int, account: int, seq: int) -> bool:
    """By the newest join before that number. A membership that another one follows has ended, however."""
    spans = history.memberships.get((group, account), {})
    since = max((since for since in spans if since <= seq), default=0)
    return bool(since) and (not spans[since] or seq <= spans[since])


def _check_nobody_else(town: GroupTown, group: int) -> None:
    history = town.history
    # The devices of an account that was registered again may have been lost before they could bear witness.
    witnesses = {person.account for person in town.people if person.lives == 1 and person.devices}
    for device, seen in history.seen.items():
        for seq in seen.in_group(group) if account_of(device) in witnesses else ():
            if not is_member(history, group, account_of(device), seq):
                spans = history.memberships.get((group, account_of(device)))
                raise Broken("nobody else gets it", f"{device:x} is shown {group:x} {seq}, a member in {spans}")


def _check_nothing_lost(town: GroupTown, device: GroupDevice, group: int, messages: dict[int, Numbered]) -> None:
    """A device that was there from the beginning shows everything of its memberships; another, from its first on."""
    history, number = town.history, device.number
    shown = history.of(number).in_group(group)
    first = min((seq for seq, entry in shown.items() if entry.of is None), default=1 << 62)
    if device.was_listed_first and device.person.lives == 1:
        first = 0
    for seq, message in messages.items():
        if seq < first or seq in shown or message.by == number:
            continue
        if not is_member(history, group, account_of(number), seq):
            continue
        if not _failed_on(town, group, message, number):
            raise Broken("nothing lost", f"{number:x} is not shown {group:x} {seq}, which is {message}")


def _check_missed(town: GroupTown, group: int, messages: dict[int, Numbered]) -> None:
    """What a device left in the group's log when its person gave it up has failed on it.

    One that was addressed before, as its account was; of one that was removed, the log waits for what it may fetch.
    """
    history = town.history
    in_log = {seq for seen in history.seen.values() for place, seq in seen.entries if place == group}
    for device, gone_at in history.gone_at.items():
        account, shown = account_of(device), history.of(device).in_group(group)
        first = min((seq for seq, entry in shown.items() if entry.of is None), default=1 << 62)
        if (group, account) in history.removed:
            continue
        for seq, message in messages.items():
            is_addressed = first < seq and is_member(history, group, account, seq) and message.by != device
            if not is_addressed or seq in shown or history.accepted_at.get((group, seq), gone_at) >= gone_at:
                continue
            if seq in in_log:
                town.world.hit("missed by a device that is no more")
                if not _failed_on(town, group, message, device):
                    raise Broken("what is missed has failed", f"{device:x} never got {group:x} {seq}: {message}")


def _check_member_that_went(
    town: GroupTown, group: int, messages: dict[int, Numbered], person: GroupPerson
) -> None:  # fmt: skip
    """What an account was addressed with that ended, or has no devices, was shown to one of them or has failed."""
    history, account = town.history, person.account
    if (group, account) in history.removed or (person.lives == 1 and person.devices):
        return
    ended = history.ended.get((group, account), set())
    mine = [device for device in history.seen if account_of(device) == account]
    shown = {seq for device in mine for seq in history.of(device).in_group(group)}
    joins = history.memberships.get((group, account), {})
    for seq, message in messages.items():
        since = max((since for since in joins if since <= seq), default=0)
        end = min((end for end in ended if end >= since), default=0)
        if not since or seq in shown or (seq > end if end else person.devices):
            continue
        town.world.hit("missed by a member that is no more")
        if not any(_failed_on(town, group, message, device) for device in mine):
            raise Broken("what is missed has failed", f"{person.handle} never got {group:x} {seq}: {message}")


def _failed_on(town: GroupTown, group: int, message: Numbered, number: int) -> bool:
    """Whether the author was told that the device did not get it; or there is nobody left who could have been."""
    author = account_of(message.by)
    if author == account_of(number):
        return True  # Own copies never change ticks, and their loss is nobody's news.
    witnesses = [device for device in town.devices if account_of(device.number) == author and device.was_listed_first]
    if not witnesses or witnesses[0].person.lives > 1:
        return True
    failed = town.history.of(witnesses[0].number).failed.get((Stream(message.by, group, message.lane), message.n), {})
    return bool(failed.keys() & {number, account_of(number) << DEVICE_BITS, log_of(group)})


# --- receipts -----------------------------------------------------------------------------------


def _acked(town: GroupTown, group: int, account: int) -> dict[int, list[tuple[int, int, bool]]]:
    """`group_seq` → (device, the mailbox or log it came from, whether it could be opened), of what was acknowledged."""
    found: dict[int, list[tuple[int, int, bool]]] = {}
    for device, seen in town.history.seen.items():
        if account_of(device) != account:
            continue
        for place, entry in seen.entries.items():
            if entry.to == group and entry.by and entry.group_seq and place[1] <= seen.acked.get(place[0], 0):
                box = log_of(group) if place[0] == group else device
                found.setdefault(entry.group_seq, []).append((device, box, place not in seen.unreadable))
    return found


def _check_receipts(town: GroupTown, group: int, messages: dict[int, Numbered]) -> None:
    for author in {account_of(message.by) for message in messages.values()}:
        seqs = sorted(seq for seq, message in messages.items() if account_of(message.by) == author)
        for seq, states in town.receipts_of(group, author, seqs).items():
            for account, state in states.items():
                _check_claim(town, group, account, seq, state)
    for person in town.people:
        if person.lives == 1 and person.devices and not town.loses_notices:
            _check_counted(town, group, messages, person.account)


def _check_claim(town: GroupTown, group: int, account: int, seq: int, state: MessageState) -> None:
    if state is MessageState.DELIVERED and not any(is_open for _, is_open in _shown_open(town, group, account, seq)):
        raise Broken("receipts are true", f"{group:x} {seq} is said to be on {account:x}, and no device shows it")
    if state is MessageState.READ:
        person = next(person for person in town.people if person.account == account)
        mine = [seen for device, seen in town.history.seen.items() if account_of(device) == account]
        if person.is_private or seq > max(seen.read.get(group, 0) for seen in mine):
            raise Broken("receipts are true", f"{group:x} {seq} is said to be read by {account:x}, which has not")


def _shown_open(town: GroupTown, group: int, account: int, seq: int) -> Iterable[tuple[int, bool]]:
    """Devices that were shown it, and whether they could open it."""
    for device, seen in town.history.seen.items():
        if account_of(device) != account:
            continue
        for place, entry in seen.entries.items():
            if entry.to == group and entry.by and entry.group_seq == seq:
                yield device, place not in seen.unreadable


def _check_counted(town: GroupTown, group: int, messages: dict[int, Numbered], account: int) -> None:
    """What a member that stayed has acknowledged is counted, unless there were too many holes."""
    acked = {
        seq for seq, devices in _acked(town, group, account).items()
        if any(is_open for device, _, is_open in devices if any(d.number == device for d in town.devices))
    }  # fmt: skip
    if _has_many_holes(town, group, account):
        return
    for author in {account_of(message.by) for message in messages.values()} - {account}:
        seqs = [seq for seq in sorted(acked) if seq in messages and account_of(messages[seq].by) == author]
        for seq, states in town.receipts_of(group, author, seqs).items():
            if states.get(account) is MessageState.SENT:
                raise Broken("receipts are complete", f"{account:x} has {group:x} {seq}, and it is not counted")


def _has_many_holes(town: GroupTown, group: int, account: int) -> bool:
    """Whether some device may have had more spans than are kept of it, counted for each place that it acknowledges.

    Own messages, and what it cannot open, are holes.
    """
    for device, seen in town.history.seen.items():
        if account_of(device) != account:
            continue
        spans: dict[int, Spans] = {}
        for place, entry in seen.entries.items():
            is_counted = entry.to == group and entry.by and entry.group_seq and account_of(entry.by) != account
            if is_counted and place not in seen.unreadable:
                add_span(spans.setdefault(place[0], []), entry.group_seq, entry.group_seq)
        if sum(map(len, spans.values())) > 2 * SPANS_MAX:
            return True
    return False


def _check_receipts_heard(town: GroupTown, device: GroupDevice) -> None:
    """Whatever an author hears about single devices, those devices saw."""
    history, seen = town.history, town.history.of(device.number)
    for stream, n, peer in seen.delivered:
        if not any(
            (stream_of(place, entry), entry.n) == (stream, n) and place not in history.of(peer).unreadable
            for place, entry in history.of(peer).entries.items()
        ):
            raise Broken("receipts are true", f"{stream} {n} is said to be delivered on {peer:x}, which never saw it")
    for (stream, n), failures in seen.failed.items():
        for peer, reason in failures.items():
            shown = any(
                (stream_of(place, entry), entry.n) == (stream, n) for place, entry in history.of(peer).entries.items()
            )
            if shown and reason in (Reason.MAILBOX_FULL, Reason.STALE_DEVICES):
                raise Broken("failed means failed", f"{stream} {n} failed on {peer:x} ({reason.name}), which shows it")
    _check_news(town, device)


def _check_news(town: GroupTown, device: GroupDevice) -> None:
    """An author that was there all the time was told of everything that reached somebody."""
    history, mine = town.history, device.person.account
    if not device.was_listed_first or device.person.lives > 1:
        return
    for group, messages in history.messages.items():
        told = history.of(device.number).news.get((group, MessageState.DELIVERED), set())
        for person in town.people:
            if person.account == mine or person.lives > 1 or not person.devices:
                continue
            acked = _acked(town, group, person.account)
            for seq, message in messages.items():
                # What a device acknowledges too late has expired in its mailbox, or for everybody in the group's log,
                # and its author was told that instead.
                failed = history.of(device.number).failed.get((Stream(message.by, group, message.lane), message.n), {})
                is_open = any(
                    is_open and device not in failed and box not in failed
                    for device, box, is_open in acked.get(seq, ())
                )
                if account_of(message.by) == mine and is_open and seq not in told:
                    raise Broken("authors are told", f"{device.number:x} never heard that {group:x} {seq} is delivered")
