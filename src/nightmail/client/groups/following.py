"""The chain of a group's changes, followed one by one: each is judged by its signature, never by the server's word.

Knows:   which changes are still to be judged, and who waits for them.
Touches: rows and members of groups.
Never:   judges a change before it has asked for the present list of the account that made it; or goes on behind a
         change that does not follow: the server then shows another chain, and the person is told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from nightmail.client.group_events import GroupBroken, GroupChangeRefused, GroupUpdated, UpdateKind
from nightmail.client.machine.context import Context
from nightmail.client.store.group_rows import GroupRow, GroupStanding, HeadAt, LeftAt
from nightmail.client.trust.believed_lists import BelievedLists
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.sealer import Then
from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.groups.chain import Followed, Membership, Signer, follow
from nightmail.e2ee.identity import Address
from nightmail.model import roster as rosters
from nightmail.model.answers import Said
from nightmail.model.group_chain import decode_change, head_of
from nightmail.model.ids import account_of
from nightmail.wire.items import GroupChain, GroupLook

from .known_groups import DEPARTURES_MAX, KnownGroups

FRESH_MS = 60_000
"""So long a list that was asked for is present enough to judge by."""
NAMED_MAX = 16
"""Newcomers whose handles are asked for before an app is told of them."""


class _Chase(Struct):
    """What is under way for one group."""

    blobs: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """Index → change, not judged yet."""
    upto: int = 0
    """How long the chain is, as the server says."""
    head: bytes = b""
    asked: int = 0
    """Under which ref the chain was asked for; 0: it was not."""
    listing: set[int] = field(default_factory=set[int])
    """Accounts whose lists were asked for."""
    waiting: list[Then] = field(default_factory=list[Then])
    """Whom to tell when everything was judged, or cannot be."""


class ChainFollower:
    def __init__(
        self, context: Context, lists: DeviceLists, believed: BelievedLists, known: KnownGroups,
        changed: Callable[[int], None],
    ) -> None:  # fmt: skip
        """`changed` hears of every group whose members or settings are others now."""
        self._context, self._lists, self._believed, self._known = context, lists, believed, known
        self._changed = changed
        self._chases: dict[int, _Chase] = {}
        self._fresh: dict[int, int] = {}
        """Account → until when its list need not be asked for again."""
        self._refused_by: set[int] = set()
        """Groups whose chain the server did not show when it was last asked."""

    # --- what is asked of it --------------------------------------------------------------------

    def is_behind(self, group: int) -> bool:
        """Whether the server has changes that were not judged here."""
        row, chase = self._known.joined(group), self._chases.get(group)
        return row is not None and chase is not None and (bool(chase.asked) or chase.upto > row.index)

    def is_refused(self, group: int) -> bool:
        """Whether the server does not show the chain: notices that are on their way may say why."""
        return group in self._refused_by

    def look(self, group: int, then: Then, upto: int = 0) -> None:
        """Judge everything that the server has, up to `upto` at least; `then` is called once that is done, or fails."""
        chase = self._chases.setdefault(group, _Chase())
        chase.waiting.append(then)
        if upto:
            chase.upto = max(chase.upto, upto)
            self._step(group)
        else:
            self._ask(group, chase)

    def when_followed(self, group: int, then: Then) -> None:
        """Call it when nothing is left to judge."""
        chase = self._chases.setdefault(group, _Chase())
        chase.waiting.append(then)
        self._step(group)

    def noticed(self, group: int, index: int, blob: bytes, then: Then) -> None:
        """A notice has a change; likewise."""
        chase = self._chases.setdefault(group, _Chase())
        chase.blobs[index] = blob
        self.look(group, then, index)

    def stale(self, group: int, epoch: int, head: bytes, length: int) -> None:
        """The server says where the group stands."""
        row = self._known.joined(group)
        if row is None:
            return
        if length > row.index:
            chase = self._chases.setdefault(group, _Chase())
            chase.upto, chase.head = max(chase.upto, length), head
            self._step(group)
        elif length < row.index or head != row.head:
            self.break_off(group, "the server shows another chain than this device has followed")
        self._known.is_at_epoch(group, epoch)

    def connected(self) -> None:
        for group in list(self._chases):
            self._step(group)

    def lost(self) -> None:
        """The connection is gone: who waits asks again."""
        self._fresh.clear()
        self._refused_by.clear()
        for chase in self._chases.values():
            chase.asked = 0
            chase.listing.clear()
            chase.waiting.clear()

    # --- answers --------------------------------------------------------------------------------

    def take_chain(self, item: GroupChain) -> None:
        self._context.forget_ref(item.ref)
        self._refused_by.discard(item.group)
        chase = self._chases.get(item.group)
        if chase is None or chase.asked != item.ref:
            return
        chase.asked, chase.upto, chase.head = 0, item.length, item.head
        chase.blobs |= dict(item.blobs)
        row = self._known.joined(item.group)
        if row is None:
            self._finish(item.group)
            return
        if row.fan_out is not item.fan_out or item.seq > row.head_seq:
            row = replace(row, fan_out=item.fan_out, head_seq=max(row.head_seq, item.seq))
            self._known.put(row)
        if item.length < row.index or (item.length == row.index and item.head != row.head):
            self.break_off(item.group, "the server shows another chain than this device has followed")
        elif item.length > row.index and row.index + 1 not in chase.blobs:
            self.break_off(item.group, "the server does not show the next change")
        else:
            self._step(item.group)
        self._known.at_epoch(item.group, item.epoch)

    def _refused(self, group: int, _said: Said) -> None:
        """The server does not show the chain: no more is expected of it. Changes that came as notices are judged all
        the same: one of them may be the reason."""
        self._refused_by.add(group)
        if (chase := self._chases.get(group)) is not None:
            chase.asked = 0
            if (row := self._known.row(group)) is not None:
                chase.upto = row.index
            self._step(group)

    def _ask(self, group: int, chase: _Chase) -> None:
        row = self._known.joined(group)
        if row is None:
            self._finish(group)
        elif self._context.online and not chase.asked:
            after = row.index
            chase.asked = self._context.ask_item(
                lambda ref: GroupLook(ref, group, after), partial(self._refused, group)
            )

    # --- judging --------------------------------------------------------------------------------

    def _step(self, group: int) -> None:
        """Judge what can be judged now."""
        chase = self._chases.get(group)
        while chase is not None and not chase.listing:
            row, known = self._known.joined(group), self._known.membership(group)
            if row is None or known is None:
                break
            blob = chase.blobs.pop(row.index + 1, None)
            for old in [index for index in chase.blobs if index <= row.index]:
                del chase.blobs[old]
            if blob is None:
                if chase.upto > row.index:
                    self._ask(group, chase)
                    return
                break
            if not self._is_listed(group, chase, blob):
                chase.blobs[row.index + 1] = blob
                return
            self._judge(row, known, blob)
            chase = self._chases.get(group)
        if chase is not None and not chase.listing and not chase.asked:
            self._finish(group)

    def _is_listed(self, group: int, chase: _Chase, blob: bytes) -> bool:
        """Whether the list of the account that made a change is the present one. If not, it is asked for; and with it
        the lists of newcomers, which name their handles."""
        try:
            change = decode_change(blob)
        except ValueError:
            return True  # whatever the list says, it will be refused
        if not self._context.online:
            return False
        added = change.change.members[:NAMED_MAX] if isinstance(change.change, rosters.Addition) else ()
        unnamed = [account for account, _ in added if not self._is_named(account)]
        wanted = {account for account in (change.actor, *unnamed) if self._fresh.get(account, 0) <= self._context.now}
        chase.listing = set(wanted)
        for account in sorted(wanted):
            found = partial(self._found, group, chase, account)
            self._lists.forget(account)
            self._lists.want(account, (self, group), lambda _, found=found: found(), found)
        return not wanted

    def _found(self, group: int, chase: _Chase, account: int) -> None:
        self._fresh[account] = self._context.now + FRESH_MS
        chase.listing.discard(account)
        if not chase.listing:
            self._step(group)

    def _is_named(self, account: int) -> bool:
        return account == self._context.identity.account or bool(self._context.store.conversation(account).handle)

    def _judge(self, row: GroupRow, known: Membership, blob: bytes) -> None:
        try:
            followed = follow(known, blob, self.signer)
        except Rejected as error:
            self.break_off(row.group, str(error))
            return
        self.take(row, known, followed)

    def take(self, row: GroupRow, before: Membership, followed: Followed) -> None:
        """A change was judged: it is believed, or passed over."""
        context, change = self._context, followed.change
        row = replace(row, index=row.index + 1)
        if followed.fault is not None:
            self._known.put_members(row, followed.membership)
            why = followed.fault.name.lower()
            actor = change.actor
            context.tell(GroupChangeRefused(row.group, row.name, actor, context.handle(actor), why))
            self._changed(row.group)
            return
        gone = before.roster.members.keys() - followed.membership.roster.members.keys()
        departures = {account: LeftAt(row.index, context.now) for account in gone}
        left = dict(list({**row.departures, **departures}.items())[-DEPARTURES_MAX:])
        row = replace(row, departures={a: d for a, d in left.items() if a not in followed.membership.roster.members})
        if (me := context.identity.account) in gone:
            row = replace(row, standing=GroupStanding.LEFT if change.actor == me else GroupStanding.REMOVED)
        self._known.put_members(row, followed.membership)
        self._tell(row, followed)
        self._changed(row.group)

    def signer(self, address: Address) -> Signer | None:
        """What the believed list of an account says of one of its devices; or the list of the key that it had before:
        its owner may have made a change and registered again, and this device hears of both at once."""
        account = account_of(address.device)
        for signed in (self._believed.of(account), self._believed.former(account)):
            if signed is None:
                continue
            if (identity := signed.devices.get(address)) is not None:
                return Signer(signed.key, identity.signing)
            if (gone := signed.departed.get(address)) is not None:
                return Signer(signed.key, gone.identity.signing)
        return None

    def _tell(self, row: GroupRow, followed: Followed) -> None:
        what, accounts = _news(followed)
        actor, handle = followed.change.actor, self._context.handle
        settings = followed.membership.roster.settings
        self._context.tell(
            GroupUpdated(
                row.group, row.name, what, actor, handle(actor), accounts, tuple(map(handle, accounts)),
                settings.timer_ms if what is UpdateKind.SETTINGS else 0,
            )
        )  # fmt: skip

    # --- the end --------------------------------------------------------------------------------

    def seen_at(self, row: GroupRow, index: int, blob: bytes, seq: int) -> None:
        """The notice of a change came, with its number in the group."""
        for place, at in enumerate(row.heads):
            if at.index == index:
                if at.head != head_of(blob):
                    self.break_off(row.group, "the server shows two changes at one place of the chain")
                elif not at.seq:
                    heads = (*row.heads[:place], HeadAt(index, at.head, seq), *row.heads[place + 1 :])
                    self._known.put(replace(row, heads=heads))
                return

    def break_off(self, group: int, why: str) -> None:
        """Nothing is believed from here on."""
        row = self._known.joined(group)
        if row is not None:
            self._known.put(replace(row, standing=GroupStanding.BROKEN))
            self._context.tell(GroupBroken(group, row.name, why))
            self._changed(group)
        self._finish(group)

    def _finish(self, group: int) -> None:
        if (chase := self._chases.pop(group, None)) is not None:
            for then in chase.waiting:
                then()


def _news(followed: Followed) -> tuple[UpdateKind, tuple[int, ...]]:
    match followed.change.change:
        case rosters.Creation(_, members):
            return UpdateKind.CREATED, tuple(account for account, _ in members)
        case rosters.Addition(members):
            return UpdateKind.ADDED, tuple(account for account, _ in members)
        case rosters.Removal(accounts):
            return UpdateKind.REMOVED, accounts
        case rosters.Departure(successor):
            return UpdateKind.LEFT, (successor,) if successor else ()
        case rosters.RoleChange(account, _):
            return UpdateKind.ROLE, (account,)
        case rosters.SettingsChange():
            return UpdateKind.SETTINGS, ()
