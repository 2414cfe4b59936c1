"""A group on a real node: in the fold that knows groups, which no server raises by itself yet."""

from __future__ import annotations

from nightmail.core.state import NEWEST_FOLD
from nightmail.model.answers import GroupAccepted
from nightmail.model.group_chain import NO_HEAD
from nightmail.model.ids import SERVER
from nightmail.model.records import Acked, FoldRaised, GroupMade, GroupSent, Record
from nightmail.model.roster import ACCOUNT_KEY_BYTES, Creation, GroupReceipts, GroupSettings, NewMember
from nightmail.model.words import Kind, Lane
from tests.core.group_world import GROUP, blob_of
from tests.server.rig import Person, Town


def make_group(
    town: Town, by: Person, *others: Person, group: int = GROUP, receipts: GroupReceipts = GroupReceipts.EACH_MEMBER
) -> None:
    town.run(lambda: setattr(town.node.heart.loop.state, "newest_fold", NEWEST_FOLD))
    town.run(lambda: town.node.desk.submit([Record(SERVER, 0, FoldRaised(NEWEST_FOLD))]))
    town.say(by.device, Acked(Lane.NORMAL, 0))  # it is answered after that
    accounts = sorted(person.account for person in (by, *others))
    named = tuple(NewMember(account, bytes(ACCOUNT_KEY_BYTES)) for account in accounts)
    creation = Creation(GroupSettings(receipts=receipts), named)
    town.say(by.device, GroupMade(group, blob_of(group, NO_HEAD, by.device, creation, None)))


def write_to_group(town: Town, by: Person, n: int = 1, group: int = GROUP) -> str:
    """Its id."""
    row = town.run(lambda: town.node.heart.loop.state.groups[group])
    assert row is not None
    id_ = f"{by.device:x}:1700000000000:{n:05d}:g{group:x}"
    sent = GroupSent(group, Lane.NORMAL, n, 1, 0, id_, bytes(16), Kind.TEXT, row.epoch, row.head, 0, b"hello")
    assert isinstance(town.say(by.device, sent), GroupAccepted)
    return id_


__all__ = ["GROUP", "make_group", "write_to_group"]
