"""What a member, or somebody who is none, may not say to a group: each is refused, and nothing at all is stored.

What is not well-formed never comes so far: `tests/model/test_forms.py`, `tests/model/test_group_chain.py`. Typing and
presence are not records: `tests/gateway/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from nightmail.model.answers import Said
from nightmail.model.records import AnyBody, GroupAcked, GroupMade, GroupRead
from nightmail.model.refusals import (
    AlreadyMember,
    GroupFull,
    LastAdmin,
    NotGroupAdmin,
    NotMember,
    StaleGroup,
    UnknownGroup,
    UnknownMember,
)
from nightmail.model.roster import Addition, Departure, GroupSettings, Removal, Role, RoleChange, SettingsChange
from nightmail.model.rows import Kept
from tests.core.group_world import GROUP, GroupWorld, ascending
from tests.core.world import Person

OTHER = GROUP + 2
MEMBERS = 4
Says: TypeAlias = Callable[[GroupWorld, "Cast"], tuple[int, AnyBody]]


class Cast:
    """Alice is the only admin, Bob a member, Carol was one, and Dave is a stranger."""

    def __init__(self, town: GroupWorld) -> None:
        self.alice, self.bob, self.carol, self.dave = people = [
            town.join(name) for name in ("alice", "bob", "carol", "dave")
        ]
        self.others = [town.join(f"other{at}") for at in range(MEMBERS)]
        town.limit(group_members=MEMBERS)
        town.make(people[0][1], *people[:3])
        self.early = town.group_sent(self.alice[1])
        self.at_first = town.changed(self.alice[1], RoleChange(self.bob.account, Role.ADMIN))
        town.remove(self.alice[1], self.carol)

    def stale(self, town: GroupWorld) -> StaleGroup:
        group = town.group()
        assert group is not None
        return StaleGroup(group.epoch, group.head, 2)


def _everything(town: GroupWorld) -> object:
    """Every row and entry of every shard, but for the one that counts time and records."""
    found: dict[int, object] = {}
    for index in range(town.shards):
        rows, entries = town.node(index).everything()
        found[index] = {key: row for key, row in rows.items() if key[0] != Kept.SHARD}, entries
    return found


BAD: dict[str, tuple[Says, Callable[[GroupWorld, Cast], Said]]] = {
    "a stranger writes": (
        lambda town, cast: (cast.dave[1], town.group_sent(cast.dave[1])), lambda *_: NotMember(GROUP)),
    "who was removed writes": (
        lambda town, cast: (cast.carol[1], town.group_sent(cast.carol[1])), lambda *_: NotMember(GROUP)),
    "a stranger hands on keys": (
        lambda town, cast: (cast.dave[1], town.group_sealed(cast.dave[1], 1, cast.bob[1])),
        lambda *_: NotMember(GROUP)),
    "a stranger has read it": (lambda _, cast: (cast.dave[1], GroupRead(GROUP, 1, ())), lambda *_: NotMember(GROUP)),
    "a stranger has fetched it": (lambda _, cast: (cast.dave[1], GroupAcked(GROUP, 1)), lambda *_: NotMember(GROUP)),
    "a stranger adds itself": (
        lambda town, cast: (cast.dave[1], town.changed(cast.dave[1], Addition(ascending(cast.dave)))),
        lambda *_: NotMember(GROUP)),
    "a member adds somebody": (
        lambda town, cast: (cast.bob[1], town.changed(cast.bob[1], Addition(ascending(cast.dave)))),
        lambda *_: NotGroupAdmin(GROUP)),
    "a member makes itself admin": (
        lambda town, cast: (cast.bob[1], town.changed(cast.bob[1], RoleChange(cast.bob.account, Role.ADMIN))),
        lambda *_: NotGroupAdmin(GROUP)),
    "a member sets the timer where only admins may": (
        lambda town, cast: (cast.bob[1], town.changed(cast.bob[1], SettingsChange(GroupSettings(timer_ms=60_000)))),
        lambda *_: NotGroupAdmin(GROUP)),
    "an epoch that is over": (lambda _, cast: (cast.alice[1], cast.early), lambda town, cast: cast.stale(town)),
    "a change on a head that is over": (
        lambda _, cast: (cast.alice[1], cast.at_first), lambda town, cast: cast.stale(town)),
    "a group that nobody made": (
        lambda town, cast: (cast.alice[1], town.group_sent(cast.alice[1], group=OTHER, head=bytes(32))),
        lambda *_: UnknownGroup(OTHER)),
    "a member is added again": (
        lambda town, cast: (cast.alice[1], town.changed(cast.alice[1], Addition(ascending(cast.bob)))),
        lambda *_: AlreadyMember(GROUP)),
    "a stranger is removed": (
        lambda town, cast: (cast.alice[1], town.changed(cast.alice[1], Removal((cast.dave.account,)))),
        lambda *_: UnknownMember(GROUP)),
    "the last admin leaves": (
        lambda town, cast: (cast.alice[1], town.changed(cast.alice[1], Departure())), lambda *_: LastAdmin(GROUP)),
    "the last admin becomes a member": (
        lambda town, cast: (cast.alice[1], town.changed(cast.alice[1], RoleChange(cast.alice.account, Role.MEMBER))),
        lambda *_: LastAdmin(GROUP)),
    "more members than a group may have": (
        lambda town, cast: (cast.alice[1], town.changed(cast.alice[1], Addition(ascending(*cast.others)))),
        lambda *_: GroupFull(MEMBERS)),
    "a group of more than it may have": (
        lambda town, cast: (cast.bob[1], _made(town, cast.bob, *cast.others)), lambda *_: GroupFull(MEMBERS)),
}  # fmt: skip


def _made(town: GroupWorld, by: Person, *others: Person) -> GroupMade:
    return town.made(by[1], by, *others, group=OTHER)


@pytest.mark.parametrize(("says", "refusal"), list(BAD.values()), ids=list(BAD))
def test_what_may_not_be_said_to_a_group_is_refused_and_nothing_is_stored(
    town: GroupWorld, says: Says, refusal: Callable[[GroupWorld, Cast], Said]
) -> None:
    cast = Cast(town)
    by, body = says(town, cast)
    expected, before = refusal(town, cast), _everything(town)
    assert town.do(by, body) == expected
    assert _everything(town) == before
