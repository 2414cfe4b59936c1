"""What the golden logs tell of groups: every record about them, and every answer, in small and in large ones.

Knows:   a town in which nobody of these people lives yet.
"""

from __future__ import annotations

from nightmail.model.ids import SERVER, device_id
from nightmail.model.records import (
    Acked,
    Blocked,
    Closed,
    FellowClaimed,
    GroupAcked,
    GroupRead,
    GroupVoided,
    ReceiptsSet,
    Registered,
    Unlinked,
)
from nightmail.model.roster import (
    ACCOUNT_KEY_BYTES,
    Addition,
    Departure,
    GroupReceipts,
    GroupSettings,
    NewMember,
    Role,
    RoleChange,
    SettingsChange,
)
from nightmail.model.words import Lane, Platform
from tests.core.group_world import GROUP, GroupWorld, new_member
from tests.core.world import Person, name_of, published

NORMAL, HIGH = Lane
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
OTHER = GROUP + 2


def tell_of_groups(town: GroupWorld) -> None:
    ann, ben, cat = town.join("ann", 2), town.join("ben", 2), town.join("cat")
    town.limit()
    _begin(town, ann, ben, cat)
    _talk(town, ann, ben, cat)
    _single_devices(town, ann, ben)
    _rights(town, ann, ben, cat)
    _devices_come_and_go(town, ann, ben, cat)
    _a_log(town, ann, ben, cat)
    _what_is_missed(town, ann, ben, cat)
    _bounds(town, ann, ben)


def _begin(town: GroupWorld, ann: Person, ben: Person, cat: Person) -> None:
    """A group is made, again, and by another; somebody who blocks the adder does not join."""
    town.do(cat[1], Blocked(cat.account, ann.account, on=True))
    made = town.made(ann[1], ann, ben, cat)
    town.do(ann[1], made)
    town.do(ann[1], made)
    head, roster = town.heads[GROUP], town.rosters[GROUP]
    town.do(ben[1], town.made(ben[1], ben))
    town.heads[GROUP], town.rosters[GROUP] = head, roster
    town.do(ann[1], town.made(ann[1], ann, group=OTHER))
    town.write(cat[1])
    town.do(cat[1], Blocked(cat.account, ann.account, on=False))
    town.remove(ann[1], cat)
    town.add(ann[1], cat)


def _talk(town: GroupWorld, ann: Person, ben: Person, cat: Person) -> None:
    """Both lanes, retries, numbers given up, what could not be opened, who has it and who has read it."""
    town.write(ann[1], 1, text="one")
    town.write(ann[1], 1, lane=HIGH, text="at once", seen=town.now + 100)
    town.write(ann[1], 1, text="one")
    town.write(ann[1], 1, text="another")
    town.write(ann[1], 7)
    town.do(ann[1], GroupVoided(GROUP, NORMAL, 2, 1, name_of(ann[1], 2)))
    town.do(ann[1], GroupVoided(GROUP, NORMAL, 1, 1, name_of(ann[1], 1)))
    town.write(ann[1], 2, text="given up")
    town.write(ann[1], 3, text="behind it", floor=3)
    town.write(ann[1], 1, text="one")
    town.write(ben[2], 1, text="for a minute", life_ms=MINUTE)
    for device, upto, unreadable in ((ben[1], 4, ()), (ben[2], 3, (3,)), (cat[1], 4, ())):
        box = town.mailbox(device)
        assert box is not None
        town.do(device, Acked(NORMAL, min(upto, box.lanes[NORMAL].head), unreadable))
    town.do(ben[1], Acked(HIGH, 1))
    group = town.group()
    assert group is not None
    town.do(ben[1], GroupRead(GROUP, group.seq, (ann.account,)))
    town.do(cat[1], ReceiptsSet(cat.account, False))
    town.do(cat[1], GroupRead(GROUP, group.seq, (ann.account, ben.account)))
    town.do(device_id(cat.account, 9), GroupRead(GROUP, 1, (ann.account,)))
    town.do(cat[1], GroupRead(OTHER, 1, (ann.account,)))
    town.wait(SECOND)
    town.wait(MINUTE)


def _single_devices(town: GroupWorld, ann: Person, ben: Person) -> None:
    """Keys, for devices that are there and for one that is not; a message that is sealed again."""
    town.do(ben[1], published(ben[1], range(2, 7), range(2, 5)))
    for by, group, request in ((ann[1], GROUP, 1), (ann[1], GROUP, 1), (ann[2], GROUP, 1), (ann[1], OTHER, 2)):
        town.do(by, FellowClaimed(group, ben[1], request))
    town.do(ann[1], town.group_sealed(ann[1], 2, ben[1], ben[2], device_id(ben.account, 9)))
    town.do(ann[1], town.group_sealed(ann[1], 3, ben[1], registration=7))
    town.do(ann[1], town.group_sealed(ann[1], 4, ben[2], text="again", of=name_of(ann[1], 1), of_seq=3))
    town.do(ben[1], Acked(HIGH, 2))
    town.wait(SECOND)


def _rights(town: GroupWorld, ann: Person, ben: Person, cat: Person) -> None:
    """What is refused, and what the last admin may do."""
    stale = town.changed(ann[1], RoleChange(ben.account, Role.ADMIN), previous=bytes(31) + b"x")
    town.do(ann[1], stale)
    for by, change in (
        (ben[1], SettingsChange(GroupSettings(writers=Role.ADMIN))),
        (ann[1], Addition((new_member(ben),))),
        (ann[1], RoleChange(town.join("nobody").account, Role.ADMIN)),
        (ann[1], Departure(0)),
        (ann[1], SettingsChange(GroupSettings(writers=Role.ADMIN, changers=Role.MEMBER, timer_ms=HOUR))),
        (ann[1], RoleChange(ben.account, Role.ADMIN)),
        (ann[1], RoleChange(ben.account, Role.MEMBER)),
    ):
        town.change(by, change)
    town.remove(ann[1], ann)
    town.write(cat[1], 1, text="not mine to write")
    town.write(ann[1], 4, text="with the group's timer")
    town.write(ann[1], 5, epoch=1)
    town.write(ann[1], 1, group=OTHER, head=town.heads[OTHER])
    town.do(ann[1], town.changed(ann[1], Departure(0), group=GROUP))
    town.change(ann[1], SettingsChange(GroupSettings(receipts=GroupReceipts.EACH_MEMBER)))
    unknown = GROUP + 4
    town.rosters[unknown], town.heads[unknown] = town.rosters[GROUP], bytes(31) + b"x"
    town.write(ann[1], 1, group=unknown)
    town.change(ann[1], Departure(ben.account), group=unknown)


def _devices_come_and_go(town: GroupWorld, ann: Person, ben: Person, cat: Person) -> None:
    """Relistings, more of them than groups are told at once, an account that is registered again, one that closes."""
    town.limit(relistings=1)
    tablet = town.link(cat)
    town.write(ann[1], 5, text="for the tablet, too")
    town.do(cat[1], Unlinked(tablet))
    town.link(cat)
    town.wait(HOUR)
    town.limit()
    dan = town.join("dan")
    town.add(ann[1], dan)
    town.write(ann[1], 6, text="for dan")
    again = Registered(dan.account, "dan", 7, b"another", "phone", Platform.CLI, verified=True)
    town.do(SERVER, again)
    town.change(ann[1], Addition((NewMember(dan.account, b"k" * ACCOUNT_KEY_BYTES),)))
    town.write(ann[1], 7, text="for dan's new phone")
    town.do(SERVER, Closed(dan.account))
    town.write(ann[1], 8, text="without dan")
    town.change(ben[1], Departure(0))


def _a_log(town: GroupWorld, ann: Person, ben: Person, cat: Person) -> None:
    """Enough members for a log: crossing over, fetching, coming back, letting go, and too much in it."""
    town.limit(group_write_members=1, group_read_members=2)
    town.add(ann[1], ben)
    town.write(ann[1], 9, text="in the log")
    town.write(ann[1], 5, lane=HIGH, text="in the log, at once")
    group = town.group()
    assert group is not None
    for device, unreadable in ((ben[1], (group.seq,)), (ann[2], ())):
        town.do(device, GroupAcked(GROUP, group.seq, unreadable))
    town.do(cat[1], GroupAcked(GROUP, group.seq + 5))
    town.do(device_id(cat.account, 9), GroupAcked(GROUP, 1))
    town.do(cat[1], GroupAcked(GROUP + 4, 1))
    town.write(ann[1], 10, text="and on")
    town.wait(MINUTE)
    town.limit(group_write_members=1, group_read_members=2, group_log_bytes=40)
    town.write(ann[1], 11, text="too much for the log")
    town.limit(group_write_members=100)
    town.add(ann[1], town.join("eli"))
    town.write(ann[1], 12, text="on write again")
    town.wait(MINUTE)


def _what_is_missed(town: GroupWorld, ann: Person, ben: Person, cat: Person) -> None:
    """Devices that go with an unread rest, and a member without any."""
    town.limit(group_write_members=1)
    town.add(ann[1], town.join("fay"))
    town.write(ann[1], 13, text="for ben's tablet, which goes")
    town.do(ben[1], Unlinked(ben[2]))
    town.do(ben[1], Unlinked(ben[1]))
    town.write(ann[1], 14, text="ben has no device")
    town.do(SERVER, Closed(cat.account))
    town.wait(MINUTE)
    town.limit()


def _bounds(town: GroupWorld, ann: Person, ben: Person) -> None:
    """As many members, groups, changes and blobs as there may be."""
    town.limit(group_members=1)
    town.do(ann[1], town.made(ann[1], ann, ben, group=GROUP + 6))
    town.add(ann[1], town.join("gus"))
    town.limit(account_groups=1, chain_kept=2)
    town.do(ann[1], town.made(ann[1], ann, group=GROUP + 8))
    town.change(ann[1], SettingsChange(GroupSettings(receipts=GroupReceipts.NONE)))
    town.limit(group_changes=1)
    town.do(ann[1], town.changed(ann[1], SettingsChange(GroupSettings(receipts=GroupReceipts.AT_LEAST_ONE))))
    town.limit()
