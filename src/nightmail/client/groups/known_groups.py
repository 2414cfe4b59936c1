"""What this device knows of its groups: rows and members, each decoded once.

Knows:   where a message may stand: under which head of the chain, by whom, and from when on no more.
Touches: rows of groups.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from nightmail.client.group_errors import NoSuchGroup
from nightmail.client.machine.context import Context
from nightmail.client.messages import unnamed
from nightmail.client.store.group_rows import GroupRow, GroupStanding, HeadAt
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Identity
from nightmail.e2ee.groups.chain import Membership
from nightmail.e2ee.state import decode_membership, encode_membership
from nightmail.model.group_rows import FanOut, MemberState
from nightmail.model.roster import GroupSettings

from .group import FellowMember, Group

HEADS_MAX = 256
"""Places in the chain that are remembered: messages that were sealed there may still come."""
DEPARTURES_MAX = 256
GROUPS_MAX = 4_096
"""Groups that the server may say this account is in. An account is in 1,000 at a time; those that it left stay."""
LATE_MS = 60_000
"""So long after somebody left, an entry that was filed before may come, in the lane that has no notices."""


class KnownGroups:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._members: dict[int, Membership] = {}

    def row(self, group: int) -> GroupRow | None:
        return self._context.store.group(group)

    def joined(self, group: int) -> GroupRow | None:
        """The row, if this account is a member and this device knows the others."""
        row = self.row(group)
        return row if row is not None and row.standing is GroupStanding.JOINED else None

    def membership(self, group: int) -> Membership | None:
        known = self._members.get(group)
        if known is None and (state := self._context.store.group_members(group)):
            known = self._members[group] = decode_membership(state)
        return known

    def members(self, group: int) -> Iterable[int]:
        known = self.membership(group)
        return known.roster.members if known else ()

    def settings(self, group: int) -> GroupSettings:
        known = self.membership(group)
        return known.roster.settings if known else GroupSettings()

    def invite(self, group: int) -> GroupRow | None:
        """The server says that this account is in a group that is unknown here. None: it says so of too many."""
        if len(self._context.store.groups()) >= GROUPS_MAX:
            return None
        row = new_row(group, self._context.now)
        self.put(row)
        return row

    def put(self, row: GroupRow) -> None:
        self._context.store.put_group(row)

    def put_members(self, row: GroupRow, known: Membership) -> None:
        """A row, and the members that go with it."""
        heads = (*row.heads, HeadAt(row.index, known.head))[-HEADS_MAX:] if row.head != known.head else row.heads
        self._context.store.put_group(replace(row, heads=heads))
        self._context.store.put_group_members(row.group, encode_membership(known))
        self._members[row.group] = known

    def at_epoch(self, group: int, epoch: int) -> bool:
        """The server says that the group has come to this epoch. Whether that is news."""
        row = self.row(group)
        if row is None or epoch <= row.epoch:
            return False
        self.put(replace(row, epoch=epoch))
        return True

    def is_at_epoch(self, group: int, epoch: int) -> None:
        """The server refuses another epoch than this one. It may be lower than what was said before: that was a lie, or
        the server has lost something; either way nothing is taken under another."""
        row = self.row(group)
        if row is not None and epoch != row.epoch:
            self.put(replace(row, epoch=epoch))

    # --- where a message may stand --------------------------------------------------------------

    def index_of(self, row: GroupRow, head: bytes) -> int | None:
        """Which change made this head; None: none that is known here."""
        return next((at.index for at in reversed(row.heads) if at.head == head), None)

    def may_stand(self, row: GroupRow, head: bytes, seq: int, *, in_order: bool) -> bool:
        """Whether a message with this number can have been sealed under this head.

        `in_order`: it came in the order of the notices, so all that stand before it have come.
        """
        place = next((at for at, each in enumerate(row.heads) if each.head == head), None)
        if place is None:
            return False
        later = row.heads[place + 1] if place + 1 < len(row.heads) else None
        if row.heads[place].seq >= seq > 0:
            return False
        return later is None or not later.seq or (seq < later.seq and not in_order)

    def may_write(self, row: GroupRow, account: int, index: int) -> bool:
        """Whether an account was a member after the change with this index."""
        known = self.membership(row.group)
        if known is not None and account in known.roster.members:
            return True
        gone = row.departures.get(account)
        return gone is not None and index < gone.index and self._context.now - gone.at <= LATE_MS


def new_row(group: int, now: int) -> GroupRow:
    """A group that nobody has told this device of yet. It may have a log: whether it has is asked first."""
    return GroupRow(group=group, standing=GroupStanding.INVITED, fan_out=FanOut.HYBRID, joined_at=now)


# --- for an app ---------------------------------------------------------------------------------


def group_in(store: Store, me: Identity, group: int) -> Group:
    """A group, to be shown. Raises NoSuchGroup."""
    row, state = store.group(group), store.group_members(group)
    if row is None:
        raise NoSuchGroup(f"{group:x}")
    if not state:
        return Group(group, row.name, row.standing, None, GroupSettings(), (), row.picture, row.joined_at)
    roster = decode_membership(state).roster
    shown = [
        FellowMember(
            each.account, _handle(store, me, each.account), each.role,
            MemberState(row.states.get(each.account, MemberState.JOINED)),
        )
        for each in roster.members.values()
    ]  # fmt: skip
    mine = roster.members.get(me.account) if row.standing is GroupStanding.JOINED else None
    return Group(
        group, row.name, row.standing, mine.role if mine else None, roster.settings,
        tuple(sorted(shown, key=lambda member: (member.handle, member.account))), row.picture, row.joined_at,
    )  # fmt: skip


def _handle(store: Store, me: Identity, account: int) -> str:
    return me.handle if account == me.account else store.conversation(account).handle or unnamed(account)
