"""What the person changes: a group is made, people come and go, roles and settings.

Knows:   which changes wait for the server's answer.
Touches: rows and members of groups; one errand for a group that is being made.
Never:   changes what this device believes before the server has taken the change; or signs again what was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from nightmail.client.errors import ClientError
from nightmail.client.group_errors import NoGroups, NotInGroup, UnknownPerson, change_refused
from nightmail.client.group_events import GroupUpdated, UpdateKind
from nightmail.client.machine.context import Context
from nightmail.client.store.group_rows import GroupRow, GroupStanding, HeadAt
from nightmail.client.store.rows import DeviceList
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.e2ee.groups.chain import begin, follow, sign_change, sign_creation
from nightmail.model.answers import GroupHead, Said
from nightmail.model.group_chain import NAMED_MAX, head_of
from nightmail.model.ids import ACCOUNT_BITS
from nightmail.model.records import GroupChanged, GroupMade
from nightmail.model.refusals import GroupIdTaken, Refusal, StaleGroup
from nightmail.model.roster import Addition, ChangeFault, Creation, GroupChange, GroupSettings, NewMember, Roster
from nightmail.wire.items import GROUP_ITEMS

from .following import ChainFollower
from .known_groups import KnownGroups

MAKING = "group made "
"""Errands: the first change of a group that the server has not answered for."""
ATTEMPTS_MAX = 8
"""How often a change is signed again because somebody else's came before."""

Done: TypeAlias = Callable[[int | ClientError], None]
"""Called with the group, or with why there is no change."""
MakeChange: TypeAlias = Callable[[Roster], GroupChange]


class Proposal(Struct, eq=False):
    """A change that waits for its answer."""

    group: int
    make: MakeChange
    done: Done
    attempts: int = 0
    blob: bytes = b""
    welcomes: tuple[int, ...] = ()


class Inquiry(Struct, eq=False):
    """People whose keys a change needs."""

    accounts: set[int]
    missing: set[int]
    then: Callable[[tuple[NewMember, ...]], None]
    done: Done


class GroupChanges:
    def __init__(
        self, context: Context, lists: DeviceLists, sealer: E2eeSealer, known: KnownGroups, follower: ChainFollower,
        made: Callable[[int], None],
    ) -> None:  # fmt: skip
        """`made` hears of every group that the server has taken."""
        self._context, self._lists, self._sealer = context, lists, sealer
        self._known, self._follower, self._tell_made = known, follower, made
        self._proposals: list[Proposal] = []
        self._inquiries: list[Inquiry] = []
        self._making: dict[int, Done] = {}

    # --- the connection -------------------------------------------------------------------------

    def connected(self) -> None:
        """Ask again what is not answered. The server knows a change that it has taken."""
        for inquiry in list(self._inquiries):
            self._inquire(inquiry)
        for name in self._context.store.errands(MAKING):
            self._ask_made(int(name.removeprefix(MAKING), 16))
        for proposal in list(self._proposals):
            self._propose(proposal)

    def _check_online(self) -> None:
        if self._context.online and self._context.server_items < GROUP_ITEMS:
            raise NoGroups

    # --- people ---------------------------------------------------------------------------------

    def _with_keys(
        self, accounts: Collection[int], then: Callable[[tuple[NewMember, ...]], None], done: Done
    ) -> None:  # fmt: skip
        """Call `then` with these accounts and their keys, once all of their lists are believed."""
        inquiry = Inquiry(set(accounts), set(accounts), then, done)
        self._inquiries.append(inquiry)
        self._inquire(inquiry)

    def _inquire(self, inquiry: Inquiry) -> None:
        if not self._context.online:
            return
        if self._context.server_items < GROUP_ITEMS:
            self._give_up(inquiry, NoGroups())
            return
        for account in sorted(inquiry.missing):
            self._lists.forget(account)
            self._lists.want(
                account, (self, account, id(inquiry)), partial(self._found, inquiry),
                partial(self._unknown, inquiry, account),
            )  # fmt: skip

    def _found(self, inquiry: Inquiry, listed: DeviceList) -> None:
        if not listed.version or self._sealer.believed.of(listed.account) is None:
            self._unknown(inquiry, listed.account)
            return
        inquiry.missing.discard(listed.account)
        if not inquiry.missing and inquiry in self._inquiries:
            self._inquiries.remove(inquiry)
            keys = {account: self._sealer.believed.of(account) for account in sorted(inquiry.accounts)}
            inquiry.then(tuple(NewMember(account, signed.key) for account, signed in keys.items() if signed))

    def _unknown(self, inquiry: Inquiry, account: int) -> None:
        self._give_up(inquiry, UnknownPerson(self._context.handle(account)))

    def _give_up(self, inquiry: Inquiry, error: ClientError) -> None:
        if inquiry in self._inquiries:
            self._inquiries.remove(inquiry)
            inquiry.done(error)

    # --- a group begins -------------------------------------------------------------------------

    def make(self, name: str, accounts: Collection[int], settings: GroupSettings, done: Done) -> None:
        """`done` is called once the server has it. Raises NoGroups."""
        self._check_online()
        everybody = {*accounts, self._context.identity.account}
        if len(everybody) > NAMED_MAX:
            done(change_refused("group_full", f"a group begins with at most {NAMED_MAX} members"))
            return
        self._with_keys(everybody, lambda members: self._make(name, members, settings, done), done)

    def _make(self, name: str, members: tuple[NewMember, ...], settings: GroupSettings, done: Done) -> None:
        keys, store = self._sealer.key_stock.keys, self._context.store
        group = int.from_bytes(self._context.secrets.draw(7), "big") % (1 << ACCOUNT_BITS - 1) * 2
        if not group or self._known.row(group) is not None:
            self._make(name, members, settings, done)
            return
        blob = sign_creation(keys.identity, keys.address, group, Creation(settings, members))
        store.put_errand(f"{MAKING}{group:013x}", blob)
        self._known.put(GroupRow(group=group, standing=GroupStanding.MAKING, name=name))
        self._making[group] = done
        self._ask_made(group)

    def _ask_made(self, group: int) -> None:
        blob = self._context.store.errand(f"{MAKING}{group:013x}")
        if blob is not None and self._context.online and self._context.server_items >= GROUP_ITEMS:
            self._context.ask(GroupMade(group, blob), partial(self._made, group, blob))

    def _made(self, group: int, blob: bytes, said: Said) -> None:
        store, done = self._context.store, self._making.pop(group, None)
        row = self._known.row(group)
        if row is None or (isinstance(said, Refusal) and said.retry):
            if done is not None:
                self._making[group] = done
            return
        store.drop_errand(f"{MAKING}{group:013x}")
        if not isinstance(said, GroupHead):
            store.drop_group(group)
            if done is not None:
                self._not_made(row, blob, said, done)
            return
        known = begin(group, blob, self._follower.signer)
        me = self._context.identity
        row = replace(
            row, standing=GroupStanding.JOINED, genesis=known.genesis, index=1, epoch=said.epoch,
            heads=(HeadAt(1, known.head),), joined_at=self._context.now, to_welcome=tuple(known.roster.members),
        )  # fmt: skip
        self._known.put_members(row, known)
        others = tuple(account for account in known.roster.members if account != me.account)
        handles = tuple(map(self._context.handle, others))
        self._context.tell(GroupUpdated(group, row.name, UpdateKind.CREATED, me.account, me.handle, others, handles))
        self._tell_made(group)
        if done is not None:
            done(group)

    def _not_made(self, row: GroupRow, blob: bytes, said: Said, done: Done) -> None:
        if isinstance(said, GroupIdTaken):
            known = begin(row.group, blob, self._follower.signer)
            members = tuple(NewMember(each.account, each.key) for each in known.roster.members.values())
            self._make(row.name, tuple(sorted(members)), known.roster.settings, done)
        else:
            done(_refusal(said))

    # --- a group changes ------------------------------------------------------------------------

    def add(self, group: int, accounts: Collection[int], done: Done) -> None:
        """Likewise. Raises NoGroups, NotInGroup."""
        self._check(group)

        def add(members: tuple[NewMember, ...]) -> None:
            for first in range(0, len(members), NAMED_MAX):
                some = members[first : first + NAMED_MAX]
                last = first + NAMED_MAX >= len(members)
                self._add(group, some, done if last else _ignore)

        self._with_keys(accounts, add, done)

    def _add(self, group: int, members: tuple[NewMember, ...], done: Done) -> None:
        welcomes = tuple(account for account, _ in members)
        self._begin(Proposal(group, lambda _: Addition(members), done, welcomes=welcomes))

    def change(self, group: int, make: MakeChange, done: Done) -> None:
        """`make` says the change for the members as they are then. Raises NoGroups, NotInGroup."""
        self._check(group)
        self._begin(Proposal(group, make, done))

    def _check(self, group: int) -> None:
        self._check_online()
        if self._known.joined(group) is None:
            raise NotInGroup(group)

    def _begin(self, proposal: Proposal) -> None:
        self._proposals.append(proposal)
        self._propose(proposal)

    def _propose(self, proposal: Proposal) -> None:
        """Sign the change for the chain as it is known, and ask for it."""
        known, keys = self._known.membership(proposal.group), self._sealer.key_stock.keys
        if not self._context.online:
            return
        if known is None or self._known.joined(proposal.group) is None:
            self._end(proposal, NotInGroup(proposal.group))
            return
        if self._follower.is_behind(proposal.group):
            self._follower.when_followed(proposal.group, partial(self._propose_again, proposal))
            return
        signed = proposal.blob or sign_change(keys.identity, keys.address, known, proposal.make(known.roster))
        if isinstance(signed, ChangeFault):
            self._end(proposal, change_refused(signed.name.lower(), _sentence(signed)))
            return
        proposal.blob = signed
        self._context.ask(GroupChanged(proposal.group, signed), partial(self._answered, proposal, signed))

    def _propose_again(self, proposal: Proposal) -> None:
        if proposal in self._proposals:
            self._propose(proposal)

    def _answered(self, proposal: Proposal, blob: bytes, said: Said) -> None:
        if proposal not in self._proposals or proposal.blob != blob:
            return
        if isinstance(said, GroupHead):
            self._taken(proposal, blob, said)
        elif isinstance(said, StaleGroup) and proposal.attempts < ATTEMPTS_MAX:
            proposal.attempts += 1
            self._follower.stale(proposal.group, said.epoch, said.head, said.length)
            self._follower.when_followed(proposal.group, partial(self._sign_again, proposal))
        else:
            self._end(proposal, _refusal(said))

    def _sign_again(self, proposal: Proposal) -> None:
        """Everything that came before it is known. Unless it is among that: then only the answer was lost."""
        if proposal not in self._proposals:
            return
        row = self._known.row(proposal.group)
        if row is not None and self._known.index_of(row, head_of(proposal.blob)) is not None:
            self._finish(proposal, row)
            return
        proposal.blob = b""
        self._propose(proposal)

    def _taken(self, proposal: Proposal, blob: bytes, said: GroupHead) -> None:
        row, known = self._known.joined(proposal.group), self._known.membership(proposal.group)
        if row is not None and known is not None and said.length == row.index + 1:
            self._follower.take(row, known, follow(known, blob, self._follower.signer))
        self._known.at_epoch(proposal.group, said.epoch)
        if (row := self._known.row(proposal.group)) is not None:
            self._finish(proposal, row)

    def _finish(self, proposal: Proposal, row: GroupRow) -> None:
        if proposal.welcomes:
            self._known.put(replace(row, to_welcome=(*row.to_welcome, *proposal.welcomes)))
        self._proposals.remove(proposal)
        proposal.done(proposal.group)

    def _end(self, proposal: Proposal, error: ClientError) -> None:
        self._proposals.remove(proposal)
        proposal.done(error)


def _ignore(_: int | ClientError) -> None:
    """Nobody waits for this part."""


def _refusal(said: Said) -> ClientError:
    if isinstance(said, Refusal):
        return change_refused(said.word, said.sentence)
    return change_refused("unexpected_answer", "the server answered something else")


def _sentence(fault: ChangeFault) -> str:
    return f"the group does not allow this: {fault.name.lower().replace('_', ' ')}"
