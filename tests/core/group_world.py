"""A world with groups: what honest clients do about them, and what members see.

Knows:   each group's chain, as its members know it. Nothing is signed: the fold does not look.
"""

from __future__ import annotations

from typing import Any

from nightmail.core.groups import cursors
from nightmail.core.groups.reading import GroupSeen, group_seen, needs_group, receipts_of
from nightmail.core.state import NEWEST_FOLD
from nightmail.model.answers import GroupHead, Said
from nightmail.model.group_chain import NO_HEAD, SIGNATURE_BYTES, ChainedChange, encode_change, head_of
from nightmail.model.group_notices import GroupNotice, decode_notice
from nightmail.model.group_rows import AccountGroups, Group, GroupMember, GroupRoster, RosterEntry
from nightmail.model.ids import account_of
from nightmail.model.records import Envelope, GroupChanged, GroupMade, GroupSealed, GroupSent
from nightmail.model.roster import (
    ACCOUNT_KEY_BYTES,
    Addition,
    Creation,
    GroupChange,
    GroupSettings,
    NewMember,
    Removal,
    Roster,
    changed,
    created,
)
from nightmail.model.rows import Entry, Gap, Kept
from nightmail.model.words import Kind, Lane, MessageState
from tests.core.world import Memory, Person, World, name_of

NORMAL, HIGH = Lane
GROUP = 0x1234_5678


def new_member(person: Person, key: bytes = b"") -> NewMember:
    return NewMember(person.account, key or person.handle.encode().ljust(ACCOUNT_KEY_BYTES, b"."))


def ascending(*people: Person) -> tuple[NewMember, ...]:
    return tuple(sorted(new_member(person) for person in people))


def blob_of(group: int, previous: bytes, device: int, change: GroupChange, roster: Roster | None) -> bytes:
    digest = roster.hash() if roster else bytes(32)
    return encode_change(ChainedChange(group, previous, device, 7, change, digest)) + bytes(SIGNATURE_BYTES)


class GroupWorld(World):
    def __init__(self, shards: int = 1, memory: Memory = Memory.KEEPS, fold: int = NEWEST_FOLD) -> None:
        super().__init__(shards, memory, fold)
        self.rosters: dict[int, Roster] = {}
        self.heads: dict[int, bytes] = {}

    # --- the chain ----------------------------------------------------------------------------

    def made(self, by: int, *people: Person, group: int = GROUP, settings: GroupSettings | None = None) -> GroupMade:
        creation = Creation(settings or GroupSettings(), ascending(*people))
        self.rosters[group] = created(account_of(by), creation)
        blob = blob_of(group, NO_HEAD, by, creation, self.rosters[group])
        self.heads[group] = head_of(blob)
        return GroupMade(group, blob)

    def make(self, by: int, *people: Person, group: int = GROUP, settings: GroupSettings | None = None) -> Said | None:
        return self.do(by, self.made(by, *people, group=group, settings=settings))

    def changed(self, by: int, change: GroupChange, *, group: int = GROUP, previous: bytes = b"") -> GroupChanged:
        after = changed(self.rosters[group], account_of(by), change)
        roster = after if isinstance(after, Roster) else None
        return GroupChanged(group, blob_of(group, previous or self.heads[group], by, change, roster))

    def change(self, by: int, change: GroupChange, *, group: int = GROUP, previous: bytes = b"") -> Said | None:
        """If it is accepted, every member knows it."""
        body = self.changed(by, change, group=group, previous=previous)
        said = self.do(by, body)
        if isinstance(said, GroupHead) and said.head != self.heads[group]:
            after = changed(self.rosters[group], account_of(by), change)
            assert isinstance(after, Roster)
            self.rosters[group], self.heads[group] = after, said.head
        return said

    def add(self, by: int, *people: Person) -> Said | None:
        return self.change(by, Addition(ascending(*people)))

    def remove(self, by: int, *people: Person) -> Said | None:
        return self.change(by, Removal(tuple(sorted(person.account for person in people))))

    # --- writing ------------------------------------------------------------------------------

    def group_sent(
        self, by: int, n: int = 1, *, text: str = "hello", group: int = GROUP, lane: Lane = NORMAL, seen: int = 0,
        epoch: int | None = None, head: bytes | None = None, life_ms: int = 0, floor: int = 1,
    ) -> GroupSent:  # fmt: skip
        """As an honest member writes that knows the group as it is."""
        row = self.group(group)
        return GroupSent(
            group, lane, n, floor, seen, name_of(by, n, lane), text.encode().ljust(16, b".")[:16], Kind.TEXT,
            (row.epoch if row else 0) if epoch is None else epoch, self.heads[group] if head is None else head,
            life_ms, f"{group}|{text}".encode(),
        )  # fmt: skip

    def write(self, by: int, n: int = 1, **rest: Any) -> Said | None:
        return self.do(by, self.group_sent(by, n, **rest))

    def group_sealed(
        self, by: int, n: int, *devices: int, text: str = "key", of: str | None = None, of_seq: int = 0,
        lane: Lane = HIGH, registration: int = 0,
    ) -> GroupSealed:  # fmt: skip
        envelopes = tuple(
            Envelope(device, registration or 100 + (device & 0xFFF), f"{device}|{text}".encode()) for device in devices
        )
        return GroupSealed(
            GROUP, lane, n, 1, 0, name_of(by, n, lane), text.encode().ljust(16, b"."), Kind.CONTROL, 1, of, of_seq, 0,
            envelopes,
        )  # fmt: skip

    # --- looking ------------------------------------------------------------------------------

    def group(self, number: int = GROUP) -> Group | None:
        return self.of(number).row(Kept.GROUP, number)

    def roster(self, number: int = GROUP) -> dict[int, RosterEntry]:
        row: GroupRoster = self.of(number).row(Kept.ROSTER, number)
        return row.members

    def member(self, person: Person, number: int = GROUP) -> GroupMember | None:
        return self.of(number).row(Kept.MEMBER, number, person.account)

    def groups_of(self, person: Person) -> AccountGroups | None:
        return self.of(person.account).row(Kept.ACCOUNT_GROUPS, person.account)

    def seen(self, number: int = GROUP) -> GroupSeen | None:
        node = self.of(number)
        node.load(lambda state: needs_group(state, number))
        return group_seen(node.state, number)

    def receipts_in_group(self, author: Person, *seqs: int) -> dict[int, dict[int, MessageState]]:
        node = self.of(GROUP)
        node.load(lambda state: needs_group(state, GROUP))
        return receipts_of(node.state, GROUP, author.account, seqs)

    def entries(self, device: int, lane: Lane = NORMAL) -> list[Entry]:
        return [item[1] for item in self.offer(device, lane) if not isinstance(item, Gap)]

    def texts(self, device: int, lane: Lane = NORMAL) -> list[str]:
        """What people wrote or sealed."""
        return [entry.ciphertext.decode().partition("|")[2] for entry in self.entries(device, lane) if entry.by]

    def messages(self, device: int, lane: Lane = NORMAL) -> list[str]:
        """What people wrote to groups."""
        return [e.ciphertext.decode().partition("|")[2] for e in self.entries(device, lane) if e.by and e.group_seq]

    def fetched(self, device: int, after: int = 0) -> list[str]:
        """What the device would be handed of the group's log, as a person would read it."""
        node = self.of(GROUP)
        node.load(lambda state: cursors.needs_offer(state, GROUP, device, after, 100))
        return [
            f"gap {item.low}-{item.high} {item.reason.name.lower()}" if isinstance(item, Gap)
            else item[1].ciphertext.decode().partition("|")[2] if item[1].by else f"notice {item[0]}"
            for item in cursors.offer(node.state, GROUP, device, after, 100)
        ]  # fmt: skip

    def notices(self, device: int) -> list[GroupNotice]:
        return [decode_notice(entry.ciphertext) for entry in self.entries(device) if not entry.by]
