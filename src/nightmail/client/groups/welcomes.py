"""Where a device begins in a group: a member says so, in their session, and the server's members must fit it.

Knows:   the welcomes that came and are not checked yet, and those that are to be sent.
Touches: rows and members of groups; one errand for each such welcome.
Never:   believes the server's members because the server shows them; or a welcome by somebody who is not among them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from msgspec.structs import replace

from nightmail.client.group_events import GroupBroken, GroupUpdated, UpdateKind
from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Retry
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.store.group_rows import GroupStanding, HeadAt, LeftAt
from nightmail.client.trust.believed_lists import BelievedLists
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.e2ee.errors import GroupRefused, Rejected
from nightmail.e2ee.groups.chain import GroupWelcome, Membership, begin_welcomed
from nightmail.e2ee.identity import Address
from nightmail.model.answers import Said
from nightmail.model.group_rows import MemberState
from nightmail.model.ids import account_of
from nightmail.model.refusals import Refusal
from nightmail.model.roster import Member, Roster
from nightmail.wire.items import GroupMembers, MembersLook

from . import controls
from .audience import GroupAudience
from .known_groups import KnownGroups, new_row
from .waiting import WaitingEntries

CAME, OWED = "welcome from ", "welcome to "
"""Errands: a welcome that came; a welcome that a newcomer is to get."""
CAME_MAX = 1_024
"""Welcomes that are kept until the server has shown the members: one of each group for a new device."""
PAGES_MAX = 40
RESTARTS_MAX = 5
"""How often the pages of the members may change while they are read."""

_encode = msgspec.msgpack.Encoder().encode
_came = msgspec.msgpack.Decoder(tuple[int, bytes]).decode


class _Pages:
    """The members of a group, page by page."""

    def __init__(self, device: int, said: controls.GroupStart) -> None:
        self.device, self.said = device, said
        self.ref = self.pages = self.restarts = 0
        self.head = b""
        self.members: dict[int, Member] = {}
        self.states: dict[int, int] = {}


class Welcomes:
    def __init__(
        self, context: Context, lists: DeviceLists, believed: BelievedLists, outbox: Outbox, known: KnownGroups,
        audience: GroupAudience, waiting: WaitingEntries, joined: Callable[[int], None],
    ) -> None:  # fmt: skip
        """`joined` hears of every group whose members are known from now on."""
        self._context, self._lists, self._believed, self._outbox = context, lists, believed, outbox
        self._known, self._audience, self._waiting, self._joined = known, audience, waiting, joined
        self._reading: dict[int, _Pages] = {}
        self.retry = Retry(context, self._look_at_all)

    def connected(self) -> None:
        self.retry.reset()
        self._look_at_all()
        for name in self._context.store.errands(OWED):
            group, account = (int(part, 16) for part in name.removeprefix(OWED).split(" "))
            self._send(group, account)

    def lost(self) -> None:
        self._reading.clear()
        self.retry.lost()

    # --- sending --------------------------------------------------------------------------------

    def owe(self, group: int, account: int) -> None:
        """An account has joined that this device added: tell its devices where the group stands."""
        self._context.store.put_errand(f"{OWED}{group:013x} {account:013x}", b"")
        self._send(group, account)

    def _send(self, group: int, account: int) -> None:
        if not self._context.online:
            return
        if self._lists.of(account) is None:
            self._lists.want(account, (self, group), lambda _: self._send(group, account), lambda: None)
            return
        name = f"{OWED}{group:013x} {account:013x}"
        if self._context.store.errand(name) is None:
            return
        self._context.store.drop_errand(name)
        self.send_to(group, [a for a in self._audience.addresses(group) if account_of(a.device) == account])

    def send_to(self, group: int, addresses: list[Address]) -> None:
        """Tell these devices where the group stands, if they may read it."""
        audience = self._audience.addresses(group)
        to = sorted(address for address in addresses if address in audience)
        if to and (said := self.made(group)) is not None:
            self._outbox.seal_in_group(group, controls.welcome(said), to)

    def made(self, group: int) -> controls.GroupStart | None:
        """The group as it stands here."""
        row, known = self._known.joined(group), self._known.membership(group)
        if row is None or known is None:
            return None
        start = GroupWelcome.of(known).encode()
        heads = row.heads[:-1][-controls.HEADS_MAX :]
        departed = tuple((account, gone.index) for account, gone in row.departures.items())[-controls.DEPARTED_MAX :]
        return controls.GroupStart(
            start, row.index, row.name, row.picture, row.named_at, row.pictured_at, heads, departed
        )  # fmt: skip

    # --- taking ---------------------------------------------------------------------------------

    def take(self, group: int, device: int, said: controls.GroupStart) -> None:
        """A member says where a group stands."""
        start, row = said.start, self._known.row(group)
        if start.group != group:
            return
        if row is not None and row.genesis and row.genesis != start.genesis:
            why = "somebody welcomes this device to another group under the same number"
            self._context.tell(GroupBroken(group, row.name, why))
            return
        if row is not None and row.standing is GroupStanding.JOINED:
            return
        name = f"{CAME}{group:013x}"
        if self._context.store.errand(name) is None and len(self._context.store.errands(CAME)) >= CAME_MAX:
            return  # who means it is asked again
        self._context.store.put_errand(name, _encode((device, _encode(said))))
        self._look_at(group)

    def _look_at_all(self) -> None:
        for name in self._context.store.errands(CAME):
            self._look_at(int(name.removeprefix(CAME), 16))

    def _look_at(self, group: int) -> None:
        state = self._context.store.errand(f"{CAME}{group:013x}")
        if state is None or not self._context.online:
            return
        device, data = _came(state)
        self._reading[group] = pages = _Pages(device, msgspec.msgpack.decode(data, type=controls.GroupStart))
        self._ask(group, pages, 0)

    def _ask(self, group: int, pages: _Pages, after: int) -> None:
        pages.ref = self._context.ask_item(lambda ref: MembersLook(ref, group, after), partial(self._refused, group))

    def _refused(self, group: int, said: Said) -> None:
        self._reading.pop(group, None)
        self.retry.later()  # the group may not have heard of this device yet
        if isinstance(said, Refusal) and self.retry.failures > RESTARTS_MAX:
            self._context.store.drop_errand(f"{CAME}{group:013x}")

    def take_members(self, item: GroupMembers) -> None:
        self._context.forget_ref(item.ref)
        pages = self._reading.get(item.group)
        if pages is None or pages.ref != item.ref:
            return
        if pages.members and item.head != pages.head:
            pages.restarts += 1
            pages.pages, pages.members, pages.states = 0, {}, {}
            if pages.restarts > RESTARTS_MAX:
                self._again(item.group, pages)
            else:
                self._ask(item.group, pages, 0)
            return
        pages.head = item.head
        pages.pages += 1
        for member in item.members:
            pages.members[member.account] = Member(member.account, member.key, member.role)
            pages.states[member.account] = member.state
        if item.more and item.members and pages.pages < PAGES_MAX:
            self._ask(item.group, pages, item.members[-1].account)
            return
        del self._reading[item.group]
        if item.head != pages.said.start.head:
            self._again(item.group, pages)
            return
        self._begin(item, pages)

    def _again(self, group: int, pages: _Pages) -> None:
        """The group has changed since: ask the member who said it to say it again."""
        self._reading.pop(group, None)
        self._context.store.drop_errand(f"{CAME}{group:013x}")
        self._waiting.ask_for_welcome(group, pages.device)

    def _begin(self, item: GroupMembers, pages: _Pages) -> None:
        group, context = item.group, self._context
        context.store.drop_errand(f"{CAME}{group:013x}")
        self.retry.reset()
        try:
            known = begin_welcomed(pages.said.start, Roster(item.settings, pages.members))
            self._check(known, account_of(pages.device))
        except Rejected as error:
            context.tell(GroupBroken(group, pages.said.name, str(error)))
            return
        by = account_of(pages.device)
        # Before what waited for the welcome is shown: its reader is to know where it stands.
        context.tell(GroupUpdated(group, pages.said.name, UpdateKind.JOINED, by, context.handle(by)))
        self.begin(pages.said, known, item.epoch, pages.states)

    def begin(self, said: controls.GroupStart, known: Membership, epoch: int, states: dict[int, int]) -> None:
        """This device knows the group from now on."""
        group, before = known.group, self._known.row(known.group)
        row = before or new_row(group, self._context.now)
        earlier = [at for at in said.heads if at.index < said.index]
        departures = {
            account: LeftAt(index, self._context.now)
            for account, index in said.departed
            if index <= said.index and account not in known.roster.members
        }
        row = replace(
            row, standing=GroupStanding.JOINED, genesis=known.genesis, index=said.index, epoch=max(epoch, row.epoch),
            name=said.name, picture=said.picture, named_at=said.named_at, pictured_at=said.pictured_at,
            heads=(*earlier, HeadAt(said.index, known.head)), departures=departures,
            joined_at=row.joined_at or self._context.now,
            states={account: state for account, state in states.items() if state != MemberState.JOINED},
        )  # fmt: skip
        self._known.put_members(row, known)
        self._joined(group)

    def _check(self, known: Membership, by: int) -> None:
        """Raises GroupRefused unless this account and the welcoming one are members, under the keys that they have."""
        for account in (self._context.identity.account, by):
            member = known.roster.members.get(account)
            # Who welcomed this device may have registered again since: then it was a member under its former key.
            lists = self._believed.of(account), self._believed.former(account)
            if member is None or not any(signed is not None and signed.key == member.key for signed in lists):
                raise GroupRefused(known.group, "the welcome names other members than this device knows")
