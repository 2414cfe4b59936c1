"""Questions about a group."""

from __future__ import annotations

from nightmail.core.groups.reading import GroupSeen, MemberSeen, chain_after, needs_chain
from nightmail.model.group_rows import MemberState
from nightmail.model.roster import Role
from tests.core.group_world import GROUP, GroupWorld, ascending


def test_a_group_is_shown_with_everybody_in_it_and_the_devices_to_seal_for(town: GroupWorld) -> None:
    alice, bob = town.join("alice", 2), town.join("bob")
    assert town.seen() is None
    town.make(alice[1], alice, bob)
    town.write(alice[1])
    shown = {alice.account: (alice, Role.ADMIN), bob.account: (bob, Role.MEMBER)}
    members = tuple(
        MemberSeen(
            member.account, shown[member.account][1], member.key, MemberState.JOINED,
            town.account(shown[member.account][0]).revision, tuple(shown[member.account][0].devices.values()),
        )
        for member in ascending(alice, bob)
    )  # fmt: skip
    assert town.seen() == GroupSeen(3, town.heads[GROUP], 1, 1, members)


def test_the_chain_is_read_by_pages_and_begins_where_it_is_kept(town: GroupWorld) -> None:
    alice, bob, carol = town.join("alice"), town.join("bob"), town.join("carol")
    town.limit(chain_kept=2)
    town.make(alice[1], alice)
    town.add(alice[1], bob)
    town.add(alice[1], carol)
    node = town.of(GROUP)

    def read(after: int, limit: int) -> list[int]:
        node.load(lambda state: needs_chain(state, GROUP, after, limit))
        return [index for index, _ in chain_after(node.state, GROUP, after, limit)]

    assert (read(0, 9), read(1, 1), read(3, 9)) == ([2, 3], [2], [])
