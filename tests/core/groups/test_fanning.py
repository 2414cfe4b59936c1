"""Who is addressed, and by how many records."""

from __future__ import annotations

import pytest

from nightmail.core.groups import fanning
from nightmail.core.groups.fanning import audience_of
from nightmail.model.group_rows import GroupRoster, MemberState, RosterEntry
from nightmail.model.records import Fanned
from nightmail.model.roster import Role
from tests.core.group_world import GroupWorld


def test_only_those_who_have_joined_are_addressed() -> None:
    entries = {
        account: RosterEntry(Role.MEMBER, b"", 1, state, account) for account, state in enumerate(MemberState, 1)
    }
    assert list(audience_of(GroupRoster(entries))) == [(2, 2)]


def test_each_shard_gets_the_ciphertext_once_and_a_large_one_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    town = GroupWorld(256)
    people = [town.join(name) for name in ("alice", "bob", "carol", "dave")]
    alice = people[0]
    town.make(alice[1], *people)
    town.carries = False
    town.write(alice[1])
    shards = {forward.shard for _, forward in town.forwards if isinstance(forward.body, Fanned)}
    assert len(shards) == sum(isinstance(forward.body, Fanned) for _, forward in town.forwards)

    monkeypatch.setattr(fanning, "PART", 1)
    town = GroupWorld()
    people = [town.join(name) for name in ("alice", "bob", "carol", "dave")]
    town.make(people[0][1], *people)
    town.write(people[0][1])
    assert [town.messages(person[1]) for person in people] == [[], ["hello"], ["hello"], ["hello"]]
