"""A server that lies to a sealed device about its groups: changes, members, logs and messages to everybody.

Knows:   what it has handed to this device before, and where the device stands in each group, as a server can tell.
Touches: notices, chains, pages of members, log entries and messages to everybody, as often as the habits say.
Never:   has a device's key: no change that it makes may be believed, and no message that it alters may open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from nightmail.model.group_chain import SIGNATURE_BYTES, ChainedChange, encode_change, head_of
from nightmail.model.group_notices import GroupNotice, NoticeKind, decode_notice, encode_notice
from nightmail.model.group_questions import LogRun, MemberShown
from nightmail.model.group_rows import MemberState
from nightmail.model.ids import account_id
from nightmail.model.roster import ACCOUNT_KEY_BYTES, Addition, NewMember, Removal, Role, RoleChange
from nightmail.model.rows import GroupEntry
from nightmail.wire.items import GroupChain, GroupLog, GroupMembers

if TYPE_CHECKING:
    from nightmail.model.roster import GroupChange
    from sim.world.device import Device

KEPT = 40
EPOCHS = 1_000
"""How far ahead an epoch is that was never there."""
ForgeEntry: TypeAlias = Callable[["GroupForger", GroupEntry], GroupEntry | None]
ForgeChain: TypeAlias = Callable[["GroupForger", GroupChain], GroupChain | None]
ForgeMembers: TypeAlias = Callable[["GroupForger", GroupMembers], GroupMembers | None]


class GroupForger:
    def __init__(self, device: Device) -> None:
        self._device, self._world, self._habits = device, device.world, device.person.town.habits
        self._entries: list[GroupEntry] = []
        """Messages and notices that it handed out honestly."""
        self.about: set[int] = set()
        """Groups that it has lied about."""
        self.members_of: set[int] = set()
        """Groups of whose members it has shown something else: a device may not know that it is one."""

    def _lied(self, name: str, group: int) -> None:
        self.about.add(group)
        if name in ABOUT_MEMBERS:
            self.members_of.add(group)
        self._world.hit(f"forged in a group: {name}")
        self._world.tell(self._device.name, f"is told a lie about group {group:x}: {name}")

    # --- entries ----------------------------------------------------------------------------------

    def entries(self, entries: tuple[GroupEntry, ...]) -> tuple[GroupEntry, ...]:
        """What is handed out at once, of one group."""
        told = [self._entry(entry) for entry in entries]
        if len(told) > 1 and self._world.maybe(self._habits.forge_entries):
            place = self._world.between(0, len(told) - 2)
            told[place], told[place + 1] = told[place + 1], told[place]
            self._lied("order", told[place].to)
        return tuple(told)

    def _entry(self, entry: GroupEntry) -> GroupEntry:
        if self._world.maybe(self._habits.forge_entries):
            name, forge = self._world.chance.choice(MESSAGES if entry.by else NOTICES)
            forged = forge(self, entry)
            if forged is not None and forged != entry:
                self._lied(name, entry.to)
                return forged
        if len(self._entries) < KEPT:
            self._entries.append(entry)
        return entry

    def text(self, entry: GroupEntry) -> GroupEntry:
        sealed = bytearray(entry.ciphertext)
        sealed[self._world.between(0, len(sealed) - 1)] ^= 1 << self._world.between(0, 7)
        return replace(entry, ciphertext=bytes(sealed))

    def replay(self, entry: GroupEntry) -> GroupEntry | None:
        """An older message of its author stands where this one does: under the new epoch, or as it was."""
        older = [each for each in self._entries if (each.by, each.to) == (entry.by, entry.to)]
        if not older:
            return None
        chosen = self._world.chance.choice(older)
        epoch = self._world.chance.choice((chosen.epoch, entry.epoch))
        return replace(chosen, n=entry.n, at=entry.at, group_seq=entry.group_seq, epoch=epoch)

    def sender(self, entry: GroupEntry) -> GroupEntry | None:
        """What somebody else sealed, with their key, is given out as this author's."""
        others = [each for each in self._entries if each.to == entry.to and each.by not in (0, entry.by)]
        return replace(entry, ciphertext=self._world.chance.choice(others).ciphertext) if others else None

    def epoch(self, entry: GroupEntry) -> GroupEntry:
        return replace(entry, epoch=max(1, entry.epoch - 1))

    # --- notices ----------------------------------------------------------------------------------

    def no_notice(self, entry: GroupEntry) -> GroupEntry:
        """The change is dropped: a member that was removed is kept."""
        return replace(entry, ciphertext=b"")

    def other_change(self, entry: GroupEntry) -> GroupEntry | None:
        """Another change than the one that was signed, at its place."""
        notice = decode_notice(entry.ciphertext)
        blob = self._blob(entry.to) if notice.kind is NoticeKind.CHANGED else None
        if blob is None:
            return None
        return replace(entry, ciphertext=encode_notice(replace(notice, blob=blob)))

    def old_notice(self, entry: GroupEntry) -> GroupEntry | None:
        older = [each for each in self._entries if each.to == entry.to and not each.by]
        return replace(self._world.chance.choice(older), group_seq=entry.group_seq, at=entry.at) if older else None

    def invented(self, entry: GroupEntry) -> GroupEntry | None:
        """A change that nobody made follows what the device knows."""
        row, blob = self._device.store.group(entry.to), self._blob(entry.to)
        if row is None or blob is None:
            return None
        notice = GroupNotice(NoticeKind.CHANGED, self._actor(entry.to), row.index + 1, blob=blob)
        return replace(entry, ciphertext=encode_notice(notice))

    def _blob(self, group: int) -> bytes | None:
        """A change behind what the device knows, in the name of a member, that its device has not signed."""
        known = self._device.machine.groups(self._device.now).known.membership(group)
        if known is None:
            return None
        member = self._world.chance.choice(sorted(known.roster.members))
        change: GroupChange = self._world.chance.choice((
            Addition((NewMember(self._stranger(), bytes(ACCOUNT_KEY_BYTES)),)), Removal((member,)),
            RoleChange(member, Role.ADMIN),
        ))  # fmt: skip
        actor = self._actor(group)
        chained = ChainedChange(group, known.head, actor << 12 | 1, 7, change, known.roster.hash())
        return encode_change(chained) + self._world.chance.randbytes(SIGNATURE_BYTES)

    def _actor(self, group: int) -> int:
        members = self._device.machine.groups(self._device.now).known.membership(group)
        assert members is not None
        return self._world.chance.choice(sorted(members.roster.members))

    def _stranger(self) -> int:
        return account_id(f"eve{self._world.between(0, 9)}")

    # --- questions --------------------------------------------------------------------------------

    def chain(self, item: GroupChain) -> GroupChain:
        if self._world.maybe(self._habits.forge_lists):
            name, forge = self._world.chance.choice(CHAINS)
            forged = forge(self, item)
            if forged is not None and forged != item:
                self._lied(name, item.group)
                return forged
        return item

    def hidden(self, item: GroupChain) -> GroupChain | None:
        """Nothing has changed since the device asked last."""
        row = self._device.store.group(item.group)
        return replace(item, head=row.head, length=row.index, epoch=row.epoch, blobs=()) if row else None

    def forked(self, item: GroupChain) -> GroupChain | None:
        """The next change is another one, and all that follow are missing."""
        row, blob = self._device.store.group(item.group), self._blob(item.group)
        if row is None or blob is None:
            return None
        return replace(item, head=head_of(blob), length=row.index + 1, blobs=((row.index + 1, blob),))

    def older(self, item: GroupChain) -> GroupChain | None:
        """The group stands where it did before."""
        row = self._device.store.group(item.group)
        if row is None or len(row.heads) < 2:
            return None
        before = row.heads[-2]
        return replace(item, head=before.head, length=before.index, blobs=())

    def other_head(self, item: GroupChain) -> GroupChain:
        return replace(item, head=self._world.chance.randbytes(len(item.head)))

    def wrong_epoch(self, item: GroupChain) -> GroupChain:
        return replace(item, epoch=item.epoch + EPOCHS)

    def members(self, item: GroupMembers) -> GroupMembers:
        if item.members and self._world.maybe(self._habits.forge_lists):
            name, forge = self._world.chance.choice(MEMBERS)
            forged = forge(self, item)
            if forged is not None and forged != item:
                self._lied(name, item.group)
                return forged
        return item

    def one_more(self, item: GroupMembers) -> GroupMembers:
        shown = MemberShown(self._stranger(), bytes(ACCOUNT_KEY_BYTES), Role.ADMIN, MemberState.JOINED)
        return replace(item, members=tuple(sorted((*item.members, shown), key=lambda each: each.account)))

    def one_less(self, item: GroupMembers) -> GroupMembers:
        return replace(item, members=item.members[1:])

    def other_key(self, item: GroupMembers) -> GroupMembers:
        first = item.members[0]
        other = MemberShown(first.account, bytes(ACCOUNT_KEY_BYTES), first.role, first.state)
        return replace(item, members=(other, *item.members[1:]))

    def log(self, item: GroupLog) -> GroupLog:
        told = [
            LogRun(part.first, self.entries(part.entries)) if isinstance(part, LogRun) else part for part in item.items
        ]
        return replace(item, items=tuple(told))


MESSAGES: tuple[tuple[str, ForgeEntry], ...] = (
    ("text", GroupForger.text),
    ("replay", GroupForger.replay),
    ("sender", GroupForger.sender),
    ("epoch", GroupForger.epoch),
)
NOTICES: tuple[tuple[str, ForgeEntry], ...] = (
    ("no change", GroupForger.no_notice),
    ("other change", GroupForger.other_change),
    ("old change", GroupForger.old_notice),
    ("invented change", GroupForger.invented),
)
CHAINS: tuple[tuple[str, ForgeChain], ...] = (
    ("hidden chain", GroupForger.hidden),
    ("forked chain", GroupForger.forked),
    ("older chain", GroupForger.older),
    ("other head", GroupForger.other_head),
    ("wrong epoch", GroupForger.wrong_epoch),
)
MEMBERS: tuple[tuple[str, ForgeMembers], ...] = (
    ("member more", GroupForger.one_more),
    ("member less", GroupForger.one_less),
    ("member's key", GroupForger.other_key),
)
ABOUT_MEMBERS = frozenset(name for name, _ in (*NOTICES, *CHAINS, *MEMBERS))
LIES = tuple(f"forged in a group: {name}" for name, _ in (*MESSAGES, *NOTICES, *CHAINS, *MEMBERS))
