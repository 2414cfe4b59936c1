"""Who has, and who has read, what was written to a group.

Knows:   what each member's devices have acknowledged and read, in `group_seq`; which authors are yet to hear.
Touches: the rows of one member and of the group, the due rows; on an author's shard, the receipts of its devices.
Never:   counts a reader who keeps that private: such a read does not leave the reader's shard.

Authors are told to look again, once in a while for all their messages. Who has what is a question (`reading.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from nightmail.core import due
from nightmail.core.receipts import note
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_row
from nightmail.model.answers import Done, Said
from nightmail.model.effects import Answer
from nightmail.model.group_rows import Group, MemberDevice
from nightmail.model.ids import account_of
from nightmail.model.records import (
    GroupDelivered,
    GroupNews,
    GroupRead,
    GroupReceipted,
    GroupWasRead,
    Receipted,
)
from nightmail.model.refusals import NotMember, UnknownDevice
from nightmail.model.roster import GroupReceipts
from nightmail.model.rows import DueFor, DueItem, Kept, Need
from nightmail.model.spans import Spans, add_span, pairs
from nightmail.model.words import Lane, MessageState, Reason

from .membership import forget_oldest
from .needs import needs_member

NEWS_MS = 250
"""So long is collected what an author is told."""
NEWS_SPANS = 8
"""Of what one author is told. Beyond that neighbours become one: looking again at more than has changed is harmless."""
DELIVERED, READ = MessageState.DELIVERED, MessageState.READ

# --- on the group's shard ---------------------------------------------------------------------


def needs_taken(state: ShardState, _by: int, taken: GroupDelivered | GroupWasRead) -> list[Need]:
    missing: list[Need] = []
    if isinstance(taken, GroupWasRead):
        missing_row(state.rosters, Kept.ROSTER, taken.group, missing)
    missing_row(state.groups, Kept.GROUP, taken.group, missing)
    needs_member(state, taken.group, account_of(taken.device), missing)
    if not missing and (group := state.groups[taken.group]) and not has_news(group):
        due.needs_schedule(state, news_moment(state), 1, missing)
    return missing


def step_delivered(state: ShardState, _by: int, _via: int, delivered: GroupDelivered) -> None:
    found = _tracked(state, delivered)
    if found is None:
        return
    group, device = found
    had_news = has_news(group)
    for author, spans in delivered.numbers:
        for low, high in spans:
            add_span(device.delivered, low, high)
        add_news(group.delivered, author, spans)
    forget_oldest(device.delivered)
    _save(state, delivered, group, had_news=had_news)


def step_was_read(state: ShardState, _by: int, _via: int, read: GroupWasRead) -> None:
    found = _tracked(state, read)
    if found is None:
        return
    group, device = found
    upto = min(read.upto, group.seq)
    if upto <= device.read:
        return
    had_news, low = has_news(group), max(device.read, device.since - 1) + 1
    device.read = upto
    members = state.rosters.there(read.group).members
    for author in read.authors if low <= upto else ():
        if author != account_of(read.device) and author in members:
            add_news(group.read, author, ((low, upto),))
    _save(state, read, group, had_news=had_news)


def _tracked(state: ShardState, taken: GroupDelivered | GroupWasRead) -> tuple[Group, MemberDevice] | None:
    """The group and what it knows of the device; None if nothing is kept of it."""
    group, member = state.groups[taken.group], state.members[taken.group, account_of(taken.device)]
    if group is None or member is None or group.settings.receipts is GroupReceipts.NONE:
        return None
    return group, member.devices.get(taken.device, member.gone)


def _save(state: ShardState, taken: GroupDelivered | GroupWasRead, group: Group, *, had_news: bool) -> None:
    account = account_of(taken.device)
    state.members.put((taken.group, account), state.members[taken.group, account], state.offset)
    schedule_news(state, taken.group, group, had_news=had_news)


def schedule_news(state: ShardState, number: int, group: Group, *, had_news: bool) -> None:
    """If there is something to tell, and was nothing before."""
    if has_news(group):
        state.groups.put(number, group, state.offset)
        if not had_news:
            due.schedule(state, news_moment(state), DueItem(0, Lane.NORMAL, number, DueFor.GROUP_NEWS))


def news_moment(state: ShardState) -> int:
    return due.moment_of(state, state.now + NEWS_MS)


def has_news(group: Group) -> bool:
    return bool(group.delivered or group.read)


def add_news(news: dict[int, Spans], author: int, spans: Iterable[tuple[int, int]]) -> None:
    mine = news.setdefault(author, [])
    for low, high in spans:
        add_span(mine, low, high)
    while len(mine) > 2 * NEWS_SPANS:
        del mine[1:3]


def needs_news(state: ShardState, _by: int, news: GroupNews) -> list[Need]:
    missing: list[Need] = []
    missing_row(state.groups, Kept.GROUP, news.group, missing)
    return missing


def step_news(state: ShardState, _by: int, _via: int, news: GroupNews) -> None:
    group = state.groups[news.group]
    if group is None:
        return
    for kind, authors in ((DELIVERED, group.delivered), (READ, group.read)):
        for author, spans in authors.items():
            state.tell(author, GroupReceipted(news.group, author, kind, state.now, tuple(pairs(spans))))
    group.delivered, group.read = {}, {}
    state.groups.put(news.group, group, state.offset)


# --- on the shard of a reader, and of an author -----------------------------------------------


def needs_read(state: ShardState, by: int, _read: GroupRead) -> list[Need]:
    missing: list[Need] = []
    missing_row(state.accounts, Kept.ACCOUNT, account_of(by), missing)
    missing_row(state.account_groups, Kept.ACCOUNT_GROUPS, account_of(by), missing)
    return missing


def step_read(state: ShardState, by: int, via: int, read: GroupRead) -> None:
    """Tell the group what was read, unless the reader keeps that to themselves."""
    account, mine = state.accounts[account_of(by)], state.account_groups[account_of(by)]
    said: Said = Done()
    if account is None or by not in account.devices:
        said = UnknownDevice(by)
    elif mine is None or read.group not in mine.groups:
        said = NotMember(read.group)
    elif account.read_receipts:
        state.tell(read.group, GroupWasRead(read.group, by, read.upto, read.authors))
    state.effects.append(Answer(via, said))


def needs_receipted(state: ShardState, _by: int, receipted: GroupReceipted) -> list[Need]:
    missing: list[Need] = []
    if not missing_row(state.accounts, Kept.ACCOUNT, receipted.account, missing):
        account = state.accounts[receipted.account]
        for device in account.devices if account else ():
            missing_row(state.receipts, Kept.RECEIPTS, device, missing)
    return missing


def step_receipted(state: ShardState, _by: int, _via: int, receipted: GroupReceipted) -> None:
    """Every device of the author is to look again. An account that shows no reads sees none."""
    account = state.accounts[receipted.account]
    if account is None or (receipted.state is READ and not account.read_receipts):
        return
    r = receipted
    look_again = Receipted(0, r.group, Lane.NORMAL, 0, r.state, Reason.NONE, r.at, r.numbers)
    for device in account.devices:
        note(state, device, look_again)


STEPS: Steps = {
    4: {
        GroupDelivered: (needs_taken, step_delivered),
        GroupWasRead: (needs_taken, step_was_read),
        GroupNews: (needs_news, step_news),
        GroupRead: (needs_read, step_read),
        GroupReceipted: (needs_receipted, step_receipted),
    }
}
