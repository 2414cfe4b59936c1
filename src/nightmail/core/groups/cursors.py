"""Fetching from a group's log, and saying how far one has come.

Knows:   one member, its devices' cursors, and the entries of the log.
Touches: the cursor, what the group counts, and the row of the devices that have seen everything.

Joining and leaving move no cursor: what a device was not addressed with is a gap.
"""

from __future__ import annotations

from nightmail.core import due, mailbox, waking
from nightmail.core.expiry import make_gaps
from nightmail.core.pushes.reading import is_undrained
from nightmail.core.receipts import note
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_row
from nightmail.model.answers import Done, Said
from nightmail.model.effects import Answer
from nightmail.model.group_rows import FanOut, Group, GroupMember, MemberDevice
from nightmail.model.ids import account_of, log_of
from nightmail.model.notes import Dropped, Fetched
from nightmail.model.records import GroupAcked, GroupMarked, GroupSwept, Receipted
from nightmail.model.refusals import AckAboveHead, NotMember, UnknownGroup
from nightmail.model.roster import GroupReceipts
from nightmail.model.rows import Entry, Gap, Kept, Mailbox, Need, queue_id
from nightmail.model.spans import Spans, add_span, contains
from nightmail.model.words import Lane, MessageState, Reason

from .log import needs_sweep_again, note_at_head, schedule_sweep, trim
from .membership import forget_oldest
from .needs import needs_member, needs_roster
from .receipts import add_news, has_news, news_moment, schedule_news
from .verdicts import GroupVerdicts

ACK_MAX = 1_024
"""Numbers that one acknowledgement may move a cursor by: each is an entry to be read."""
PAGE = 64
"""Members whose cursors are looked at in one step."""
TRIM_MAX = 1_024
"""Entries that one step ends."""
SPARE = 16
"""Of a log that holds too much, one part in so many is freed beyond that."""


# --- fetching -----------------------------------------------------------------------------------


def needs_offer(state: ShardState, number: int, device: int, after: int, limit: int) -> list[Need]:
    missing: list[Need] = []
    missing_row(state.groups, Kept.GROUP, number, missing)
    needs_member(state, number, account_of(device), missing)
    return missing + mailbox.needs_offer(state, log_of(number), Lane.NORMAL, after, limit)


def offer(state: ShardState, number: int, device: int, after: int, limit: int) -> list[tuple[int, Entry] | Gap]:
    """What stands in the log behind `after`, for this device: in order and without holes. A leaver's ends with it."""
    member, box = state.members[number, account_of(device)], state.mailboxes[log_of(number)]
    if member is None or box is None or device not in member.devices:
        return []
    acked = box.lanes[Lane.NORMAL].acked
    last = box.lanes[Lane.NORMAL].head if member.joined else (member.former[-1] if member.former else 0)
    offered: list[tuple[int, Entry] | Gap] = []
    if after < min(acked, last):
        offered.append(Gap(after + 1, min(acked, last), Reason.KEPT_ELSEWHERE))
    for item in mailbox.offer(state, log_of(number), Lane.NORMAL, max(after, acked), limit):
        low, high = (item.low, item.high) if isinstance(item, Gap) else (item[0], item[0])
        if low > last:
            break
        if isinstance(item, Gap):
            _add_gap(offered, Gap(low, min(high, last), item.reason))
        elif not is_for(member, device, low):
            _add_gap(offered, Gap(low, low, Reason.NOT_MEMBER))
        elif item[1].by == device:
            _add_gap(offered, Gap(low, low, Reason.KEPT_ELSEWHERE))
        else:
            offered.append(item)
    return offered


def _add_gap(offered: list[tuple[int, Entry] | Gap], gap: Gap) -> None:
    before = offered[-1] if offered else None
    if isinstance(before, Gap) and before.reason is gap.reason and before.high + 1 == gap.low:
        offered[-1] = Gap(before.low, gap.high, gap.reason)
    else:
        offered.append(gap)


def is_for(member: GroupMember, device: int, seq: int) -> bool:
    """Whether the account was a member then, and the group knew the device."""
    if seq < member.devices[device].since:
        return False
    return 0 < member.joined <= seq or contains(member.former, seq)


# --- acknowledging ------------------------------------------------------------------------------


def needs_acked(state: ShardState, by: int, acked: GroupAcked) -> list[Need]:
    number = acked.group
    missing: list[Need] = []
    missing_row(state.groups, Kept.GROUP, number, missing)
    missing_row(state.at_head, Kept.AT_HEAD, number, missing)
    needs_member(state, number, account_of(by), missing)
    if missing:
        return missing
    group, member = state.groups[number], state.members[number, account_of(by)]
    if group is not None and member is not None and (device := member.devices.get(by)):
        missing += mailbox.needs_offer(state, log_of(number), Lane.NORMAL, device.cursor, ACK_MAX)
        if not has_news(group):
            due.needs_schedule(state, news_moment(state), 1, missing)
    return missing


def step_acked(state: ShardState, by: int, via: int, acked: GroupAcked) -> None:
    group, member = state.groups[acked.group], state.members[acked.group, account_of(by)]
    device = member.devices.get(by) if member else None
    said: Said = Done()
    if group is None:
        said = UnknownGroup(acked.group)
    elif member is None or device is None:
        said = NotMember(acked.group)
    elif acked.upto > (most := _handed_out(state, acked.group, group, device)):
        said = AckAboveHead(most)
    elif acked.upto > device.cursor:
        _take(state, group, member, by, device, acked)
    if via:
        state.effects.append(Answer(via, said))


def _handed_out(state: ShardState, number: int, group: Group, device: MemberDevice) -> int:
    """The highest number that a device may have fetched."""
    box = state.mailboxes[log_of(number)]
    return min(group.seq, max(device.cursor, box.lanes[Lane.NORMAL].acked if box else 0) + ACK_MAX)


def _take(
    state: ShardState, group: Group, member: GroupMember, by: int, device: MemberDevice, acked: GroupAcked
) -> None:
    number, account, had_news = acked.group, account_of(by), has_news(group)
    entries = state.entries.get(queue_id(log_of(number), Lane.NORMAL), {})
    unreadable, verdicts = frozenset(acked.unreadable), GroupVerdicts(by)
    fetched: Spans = []
    for seq in range(device.cursor + 1, acked.upto + 1):
        entry = entries.get(seq)
        if entry is None or not entry.by or not is_for(member, by, seq):
            continue
        add_span(fetched, seq, seq)
        if seq in unreadable:
            verdicts.fail(entry, Reason.UNDECRYPTABLE)
        elif account_of(entry.by) != account and group.settings.receipts is not GroupReceipts.NONE:
            add_span(device.delivered, seq, seq)
            add_news(group.delivered, account_of(entry.by), ((seq, seq),))
    if fetched:
        state.notes.append(Fetched(state.now, by, number, tuple(fetched), acked.unreadable))
        state.noted.update((by, log_of(number)))
    forget_oldest(device.delivered)
    device.cursor = acked.upto
    verdicts.tell(state, Lane.NORMAL)
    state.members.put((number, account), member, state.offset)
    if group.fan_out is not FanOut.WRITE and member.joined:
        note_at_head(state, number, group, {by: device})
    schedule_news(state, number, group, had_news=had_news)


# --- being told that there is more ---------------------------------------------------------------


def needs_marked(state: ShardState, _by: int, marked: GroupMarked) -> list[Need]:
    missing: list[Need] = []
    for number in _accounts(marked):
        if not missing_row(state.accounts, Kept.ACCOUNT, number, missing):
            account = state.accounts[number]
            for device in account.devices if account else ():
                missing_row(state.receipts, Kept.RECEIPTS, device, missing)
    return missing


def step_marked(state: ShardState, _by: int, _via: int, marked: GroupMarked) -> None:
    """The device is to look at the log. However often it is said, that waits once."""
    seq = marked.group_seq
    look = Receipted(0, marked.group, Lane.NORMAL, 0, MessageState.SENT, Reason.NONE, state.now, ((seq, seq),))
    for device in _marked(state, marked):
        note(state, device, look)


def needs_marked_waking(state: ShardState, by: int, marked: GroupMarked) -> list[Need]:
    missing = needs_marked(state, by, marked)
    devices = [] if missing else _marked(state, marked)
    for device in devices:
        if not missing_row(state.mailboxes, Kept.MAILBOX, device, missing) and (box := state.mailboxes[device]):
            waking.needs_begin(state, box, len(devices), missing)
    return missing


def step_marked_waking(state: ShardState, by: int, via: int, marked: GroupMarked) -> None:
    """Likewise; and devices that sleep are woken, unless another mark waits for them already."""
    for device in _marked(state, marked):
        box = state.mailboxes[device]
        if box is not None and box.push:
            if not is_undrained(state, device, box):
                waking.begin(state, device, box)
            box.marked = True
            state.mailboxes.put(device, box, state.offset)
    step_marked(state, by, via, marked)


def _marked(state: ShardState, marked: GroupMarked) -> list[int]:
    """The devices that are told."""
    single, everybody = set(marked.devices), {account for account, _ in marked.audience}
    accounts = ((number, state.accounts[number]) for number in _accounts(marked))
    return [
        device
        for number, account in accounts
        for device in (account.devices if account else ())
        if number in everybody or device in single
    ]


def _accounts(marked: GroupMarked) -> dict[int, None]:
    return dict.fromkeys((*(account for account, _ in marked.audience), *map(account_of, marked.devices)))


# --- what everybody has --------------------------------------------------------------------------


def _page(state: ShardState, number: int) -> list[int]:
    """The next accounts whose cursors are looked at, by their numbers: one that joins meanwhile has no older cursor."""
    group, roster = state.groups.rows.get(number), state.rosters.rows.get(number)
    if group is None or roster is None:
        return []
    after, members = group.swept[0], roster.members
    found = [account for account in members if account > after]
    found += [account for account in group.leavers if account > after and account not in members]
    found.sort()  # Members were added in order, some at a time: this merges them.
    return found[:PAGE]


def needs_swept(state: ShardState, _by: int, swept: GroupSwept) -> list[Need]:
    missing: list[Need] = []
    needs_roster(state, swept.group, missing)
    page = _page(state, swept.group)
    for account in page:
        needs_member(state, swept.group, account, missing)
    missing_row(state.mailboxes, Kept.MAILBOX, log_of(swept.group), missing)
    if len(page) < PAGE:  # The last one: what everybody has ends then.
        missing += mailbox.needs_offer(state, log_of(swept.group), Lane.NORMAL, 0, TRIM_MAX)
        needs_sweep_again(state, missing)
    return missing


def step_swept(state: ShardState, _by: int, _via: int, swept: GroupSwept) -> None:
    """A page of cursors; after the last page, let go of what everybody has, and of the oldest if there is too much."""
    number = swept.group
    group, box = state.groups[number], state.mailboxes[log_of(number)]
    if group is None or box is None:
        return
    page = _page(state, number)
    lowest = _lowest_so_far(group)
    for account in page:
        lowest = min(lowest, _lowest(state, number, group, account))
    if len(page) == PAGE:
        group.swept = (page[-1], lowest)
        state.derived.append(swept)
    else:
        group.swept, last = (0, 0), box.lanes[Lane.NORMAL].acked + TRIM_MAX
        trim(state, number, box, min(lowest, last))
        _bound(state, number, box, last)
        if swept.fired:
            group.sweeps = box.lanes[Lane.NORMAL].waiting > 0
            if group.sweeps:
                schedule_sweep(state, number)
    state.groups.put(number, group, state.offset)


def _lowest_so_far(group: Group) -> int:
    """What everybody on the pages before has."""
    return group.swept[1] if group.swept[0] else group.seq


def _bound(state: ShardState, number: int, box: Mailbox, last: int) -> None:
    """Of more than the log may hold, the oldest entries end, and some more: looking at all cursors must be worth it.

    Their authors learn it.
    """
    most = state.shard.limits.group_log_bytes
    device, queue, size = log_of(number), box.lanes[Lane.NORMAL], box.bytes
    if size <= most:
        return
    entries = state.entries.get(queue_id(device, Lane.NORMAL), {})
    too_much: list[int] = []
    for seq in range(queue.acked + 1, min(queue.head, last) + 1):
        if size <= most - most // SPARE:
            break
        if (entry := entries.get(seq)) is not None:
            too_much.append(seq)
            size -= len(entry.ciphertext)
    if too_much:
        verdicts = GroupVerdicts(device)
        for seq, entry in zip(too_much, make_gaps(state, device, box, Lane.NORMAL, too_much), strict=True):
            state.notes.append(Dropped(state.now, device, Lane.NORMAL, seq, Reason.MAILBOX_FULL))
            verdicts.fail(entry, Reason.MAILBOX_FULL)
        verdicts.tell(state, Lane.NORMAL)
        verdicts.count(state)


def _lowest(state: ShardState, number: int, group: Group, account: int) -> int:
    """The number up to which an account has everything that was for it."""
    member = state.members[number, account]
    end = group.seq if member is not None and member.joined else group.leavers.get(account, 0)
    cursors = [device.cursor for device in member.devices.values() if device.cursor < end] if member else []
    if not cursors:
        group.leavers.pop(account, None)
        return group.seq
    return min(cursors)


STEPS: Steps = {
    4: {
        GroupAcked: (needs_acked, step_acked),
        GroupMarked: (needs_marked, step_marked),
        GroupSwept: (needs_swept, step_swept),
    },
    6: {GroupMarked: (needs_marked_waking, step_marked_waking)},
}
