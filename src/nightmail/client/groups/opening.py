"""What arrives from a group: messages, keys, welcomes, and the server's notices.

Knows:   what must be known before an entry can be judged, and who takes each control message.
Touches: receiving chains, rows of groups.
Never:   opens a message that stands at another place of the chain than its author sealed it for, or that is by
         somebody who was no member there.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from nightmail.client.group_events import MemberJoined, MemberMissing, MembersDiffer
from nightmail.client.machine.context import Context
from nightmail.client.store.group_rows import GroupRow, GroupStanding
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.client.trust.sealer import Then
from nightmail.e2ee.content import Content, decode_content
from nightmail.e2ee.errors import KeySpent, MembershipDiffers, NotAsAnnounced, NotListed, Rejected
from nightmail.e2ee.groups.sealing import GroupContext, decode_group_message, open_group_entry
from nightmail.e2ee.groups.sender_keys import ReceivingChain, key_id_of, outdated, receive_chain
from nightmail.e2ee.identity import Address
from nightmail.e2ee.note import Note
from nightmail.e2ee.state import decode_receiving_chain, encode_receiving_chain
from nightmail.model.group_chain import decode_change
from nightmail.model.group_notices import GroupNotice, NoticeKind, decode_notice
from nightmail.model.group_rows import FanOut, MemberState
from nightmail.model.ids import account_of
from nightmail.model.roster import Departure, Removal
from nightmail.model.rows import Entry, GroupEntry
from nightmail.model.words import Kind, Lane

from . import controls
from .audience import GroupAudience
from .following import ChainFollower
from .known_groups import KnownGroups
from .names import GroupNames
from .waiting import WaitingEntries, key_of
from .welcomes import Welcomes

LOOKED_MS = 60_000
"""So long the chain is not asked for again because of the same thing that it did not explain."""
LOOKED_MAX = 1_024
GONE = (GroupStanding.LEFT, GroupStanding.REMOVED)
STATES = {
    NoticeKind.REFUSED: MemberState.REFUSED,
    NoticeKind.SUSPENDED: MemberState.SUSPENDED,
    NoticeKind.CLOSED: MemberState.CLOSED,
}


class GroupOpening:
    def __init__(
        self, context: Context, sealer: E2eeSealer, known: KnownGroups, follower: ChainFollower,
        audience: GroupAudience, welcomes: Welcomes, waiting: WaitingEntries, names: GroupNames,
        opened: Callable[[GroupEntry, Note], None],
        wanted: Callable[[int, Address, controls.Wanted], None], invited: Callable[[int], None],
    ) -> None:  # fmt: skip
        """`opened` takes a message that had to wait; `wanted` answers a device that lacks something; `invited` hears of
        every group that somebody has added this account to."""
        self._context, self._sealer, self._known, self._follower = context, sealer, known, follower
        self._audience, self._welcomes, self._waiting, self._names = audience, welcomes, waiting, names
        self._opened, self._wanted, self._invited = opened, wanted, invited
        self._looked: dict[object, int] = {}
        """What the chain was asked for → until when it is not again."""
        self._untold: set[str] = set()
        """Messages that stand at an unknown place of the chain while the server does not show it."""

    def lost(self) -> None:
        self._looked.clear()
        self._untold.clear()

    def timer_ms(self, group: int) -> int:
        return self._known.settings(group).timer_ms

    # --- before an entry is taken ---------------------------------------------------------------

    def blocks(self, entry: Entry) -> Callable[[Then], None] | None:
        """What must be done before this entry can be judged, with whom to tell then; None: it can be judged now."""
        row = self._known.joined(entry.to)
        if row is None or not isinstance(entry, GroupEntry) or not self._context.online:
            return None
        if not entry.by:
            notice = _notice(entry)
            if notice is None or notice.kind is not NoticeKind.CHANGED or notice.index <= row.index:
                return None
            if notice.index > row.index + 1 and not self._is_first((row.group, notice.index)):
                return None  # changes before it are missing, and were asked for
            return lambda then: self._follower.noticed(row.group, notice.index, notice.blob, then)
        if self._knows_place(row, entry):
            return None
        return lambda then: self._follower.look(row.group, then)

    def _knows_place(self, row: GroupRow, entry: GroupEntry) -> bool:
        """Whether the chain as it is known here explains who wrote an entry, and where it stands."""
        account, known = account_of(entry.by), self._known.membership(row.group)
        strange = known is not None and account not in known.roster.members and account not in row.departures
        if strange and self._is_first((row.group, account)):
            return False
        if _is_sealed_alone(entry):
            return True
        try:
            head = decode_group_message(entry.ciphertext).head
        except Rejected:
            return True
        return self._known.index_of(row, head) is not None or not self._is_first((row.group, head))

    def _is_first(self, what: object) -> bool:
        """Whether the chain was not asked for because of this within the minute."""
        now = self._context.now
        if self._looked.get(what, 0) > now:
            return False
        if len(self._looked) >= LOOKED_MAX:
            self._looked.clear()
        self._looked[what] = now + LOOKED_MS
        return True

    # --- taking one -----------------------------------------------------------------------------

    def open(self, entry: GroupEntry, *, in_order: bool, again: bool = False) -> Note | None:
        """A message for the person; None: it was something else, or waits. Raises Rejected.

        `in_order`: all notices of the group that stand before it have come. `again`: it has waited.
        """
        if self._known.at_epoch(entry.to, entry.epoch):
            self._audience.outdate(entry.to)
        if not entry.by:
            self._take_notice(entry)
            return None
        if _is_sealed_alone(entry):
            return self._open_alone(entry)
        row = self._known.row(entry.to)
        # Entries of the log and of the mailbox have no common order.
        in_order = in_order and row is not None and row.fan_out is FanOut.WRITE
        if row is None or not row.heads or row.standing is GroupStanding.BROKEN:
            if not self._waiting.put(entry):
                raise NotAsAnnounced("group")
            self._ask_for_welcome(entry)
            return None
        return self._open_for_all(row, entry, in_order=in_order, again=again)

    def _open_for_all(self, row: GroupRow, entry: GroupEntry, *, in_order: bool, again: bool) -> Note | None:
        message, author = decode_group_message(entry.ciphertext), account_of(entry.by)
        state = self._context.store.receiving_chain(row.group, entry.by, message.key_id)
        index = self._known.index_of(row, message.head)
        stands = self._known.may_stand(row, message.head, entry.group_seq, in_order=in_order)
        if index is None or not stands or not self._known.may_write(row, author, index):
            is_passed = self._tell_differs(row, entry, is_known=index is not None, again=again)
            if index is not None or is_passed or not self._waiting.put(entry):
                raise MembershipDiffers(row.group, entry.by)
            if row.standing is GroupStanding.INVITED:
                self._ask_for_welcome(entry)
            return None  # a change may be kept back: once it is known, this can be judged
        if state is None:
            if not self._waiting.put(entry):
                raise NotAsAnnounced("sender key")
            if not again:
                self._waiting.ask_for_key(entry, message.key_id)
            return None
        context = GroupContext(row.group, row.genesis, entry.epoch, message.head)
        chain, note = open_group_entry(decode_receiving_chain(state), context, entry, self._context.now)
        content = decode_content(note.content)  # content that no client can show counts as unreadable
        self._put(chain)
        if entry.kind is Kind.CONTROL:
            self._names.take(entry, content)
            return None
        return note

    def _tell_differs(self, row: GroupRow, entry: GroupEntry, *, is_known: bool, again: bool) -> bool:
        """Somebody sealed a message for other members than this device knows. Whether nothing can explain it any more.

        If the server does not show the chain, this account may have left it, and the notices come in the other lane:
        the person is told once a later one has come.
        """
        if row.standing is not GroupStanding.JOINED:
            return False  # it waits for a welcome
        is_passed = again and any(at.seq > entry.group_seq for at in row.heads) and entry.id in self._untold
        if not again and not is_known and self._follower.is_refused(row.group):
            self._untold.add(entry.id)
        elif not again or is_passed:
            self._untold.discard(entry.id)
            author = account_of(entry.by)
            handle = self._context.handle(author)
            self._context.tell(MembersDiffer(row.group, row.name, author, handle, entry.id))
        return is_passed

    def _open_alone(self, entry: GroupEntry) -> Note | None:
        """What was sealed for this device alone: a key, a welcome, a question, or a message again."""
        note = self._sealer.open(entry)
        content = decode_content(note.content)
        if entry.kind is Kind.CONTROL:
            self._take_control(entry, content)
            return None
        row = self._known.row(entry.to)
        if row is None or not row.heads or not self._known.may_write(row, account_of(entry.by), 0):
            raise NotAsAnnounced("member")
        self._waiting.drop(entry.to, note.id)
        if entry.of is not None:
            self._waiting.was_sealed_again(entry.to, entry.by)
        return note

    def _take_control(self, entry: GroupEntry, content: Content) -> None:
        """Raises Rejected."""
        data = content.data or b""
        if content.control == controls.Control.GROUP_KEY:
            self._take_key(entry, data)
        elif content.control == controls.Control.GROUP_WELCOME:
            self._welcomes.take(entry.to, entry.by, controls.welcome_of(data))
        elif content.control == controls.Control.GROUP_WANTED and (address := self._address(entry.by)) is not None:
            self._wanted(entry.to, address, controls.wanted_of(data))

    # --- keys -----------------------------------------------------------------------------------

    def _take_key(self, entry: GroupEntry, data: bytes) -> None:
        handed, sender, store = controls.key_of(data), self._address(entry.by), self._context.store
        row = self._known.row(entry.to)
        if handed.group != entry.to or sender is None:
            return
        is_member = row is not None and row.standing is GroupStanding.JOINED
        if row is not None and is_member and not self._known.may_write(row, account_of(entry.by), 0):
            return  # by nobody that may write here
        state = store.receiving_chain(entry.to, entry.by, key_id_of(handed.verify))
        known = decode_receiving_chain(state) if state else None
        self._put(receive_chain(handed, sender, self._context.now, known))
        self._forget_old(entry.to, entry.by)
        self.try_again(entry.to, entry.by)
        if row is None or row.standing in (GroupStanding.INVITED, GroupStanding.BROKEN):
            self._ask_for_welcome(entry)

    def _ask_for_welcome(self, entry: GroupEntry) -> None:
        """Nobody has said where this group stands, or the server showed two chains: the author of an entry knows."""
        if self._is_first((entry.to, "welcome")):
            self._waiting.ask_for_welcome(entry.to, entry.by)

    def _address(self, device: int) -> Address | None:
        signed = self._sealer.believed.of(account_of(device))
        try:
            return signed.find(device)[0] if signed else None
        except NotListed:
            return None

    def _put(self, chain: ReceivingChain) -> None:
        self._context.store.put_receiving_chain(
            chain.group, chain.sender.device, chain.key_id, encode_receiving_chain(chain)
        )

    def _forget_old(self, group: int, device: int) -> None:
        chains = [decode_receiving_chain(state) for state in self._context.store.receiving_chains(group, device)]
        for key_id in outdated(chains, self._context.now):
            self._context.store.drop_receiving_chain(group, device, key_id)

    def forget(self) -> None:
        """Once a day: chains whose time is over."""
        for row in self._context.store.groups():
            chains = [decode_receiving_chain(state) for state in self._context.store.receiving_chains(row.group)]
            for device in {chain.sender.device for chain in chains}:
                self._forget_old(row.group, device)

    def try_again(self, group: int, device: int | None = None) -> None:
        """A key came, or the group is known now: open what waited for it."""
        spent: dict[int, list[str]] = {}
        waited = list(self._waiting.take(group, device))
        for entry in waited:
            try:
                note = self.open(entry, in_order=False, again=True)
            except KeySpent:
                # The key is that of a later message: only its author can seal this one again.
                self._waiting.put(entry)
                spent.setdefault(entry.by, []).append(entry.id)
            except Rejected:
                continue  # told as what it is; nothing can be shown
            else:
                if note is not None:
                    self._opened(entry, note)
        for author, ids in spent.items():
            self._waiting.ask_for_messages(group, author, tuple(ids))
        if self._known.joined(group) is not None:
            self._ask_for_keys(waited)

    def _ask_for_keys(self, entries: list[GroupEntry]) -> None:
        """Of these, some wait again: ask for the keys of those that may be read."""
        for entry in entries:
            row, key_id = self._known.row(entry.to), key_of(entry)
            is_missing = key_id and self._context.store.receiving_chain(entry.to, entry.by, key_id) is None
            if row is not None and is_missing and self._knows_head(row, entry):
                self._waiting.ask_for_key(entry, key_id)

    def _knows_head(self, row: GroupRow, entry: GroupEntry) -> bool:
        return self._known.index_of(row, decode_group_message(entry.ciphertext).head) is not None

    # --- notices --------------------------------------------------------------------------------

    def _take_notice(self, entry: GroupEntry) -> None:
        notice, row = _notice(entry), self._known.row(entry.to)
        if notice is None:
            return
        context = self._context
        account, handle = notice.account, context.handle(notice.account)
        if notice.kind is NoticeKind.CHANGED:
            if row is not None and row.heads:
                self._follower.seen_at(row, notice.index, notice.blob, entry.group_seq)
            elif row is not None and (ended := _ended_by(notice.blob, context.identity.account)) is not None:
                # The server's word, as it was that this account is in it: no member has said anything yet.
                self._known.put(replace(row, standing=ended, index=notice.index))
        elif notice.kind is NoticeKind.JOINED:
            self._take_joined(row, entry.to, notice, handle)
        elif row is not None and account in self._known.members(row.group):
            state = STATES[notice.kind]
            self._known.put(replace(row, states={**row.states, account: state}))
            context.tell(MemberMissing(row.group, row.name, account, handle, state.name.lower()))

    def _take_joined(self, row: GroupRow | None, group: int, notice: GroupNotice, handle: str) -> None:
        account = notice.account
        is_me = account == self._context.identity.account
        if row is None:
            if is_me and self._known.invite(group) is not None:
                self._invited(group)
            return
        is_back = is_me and row.standing in GONE and notice.index > row.index
        if is_back:
            row = replace(row, standing=GroupStanding.INVITED)
        if account in row.states:
            row = replace(row, states={a: state for a, state in row.states.items() if a != account})
        self._known.put(replace(row, to_welcome=tuple(a for a in row.to_welcome if a != account)))
        if is_back:
            self._invited(group)
        # Who joined before the maker of a group did is not told to the maker: so all are welcomed then.
        for newcomer in row.to_welcome if is_me else (account,):
            if newcomer in row.to_welcome:
                self._welcomes.owe(group, newcomer)
        self._context.tell(MemberJoined(group, row.name, account, handle))


def _ended_by(blob: bytes, account: int) -> GroupStanding | None:
    """What an account is after a change that ends its membership; None: it does not."""
    try:
        chained = decode_change(blob)
    except ValueError:
        return None
    match chained.change:
        case Removal(accounts) if account in accounts:
            return GroupStanding.REMOVED
        case Departure() if chained.actor == account:
            return GroupStanding.LEFT
        case _:
            return None


def in_lane_order(lane: Lane) -> bool:
    """Whether the notices of groups are in this lane."""
    return lane is Lane.NORMAL


def _is_sealed_alone(entry: GroupEntry) -> bool:
    return entry.of is not None or not entry.group_seq


def _notice(entry: GroupEntry) -> GroupNotice | None:
    try:
        return decode_notice(entry.ciphertext)
    except (msgspec.DecodeError, ValueError):
        return None
