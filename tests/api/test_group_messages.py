"""What the author of a group's message is told over HTTP: as much as the group tells its authors."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightmail.model.records import Acked, GroupAcked
from nightmail.model.roster import GroupReceipts
from nightmail.model.words import Lane
from tests.server.group_story import GROUP, make_group, write_to_group
from tests.server.rig import serving


@pytest.mark.parametrize("members", [100, 1], ids=["in mailboxes", "in the group's log"])
def test_the_author_sees_what_the_group_tells_and_the_operator_sees_every_device(members: int, tmp_path: Path) -> None:
    with serving(tmp_path, limits__group_write_members=members) as town:
        ada, ben, carol = (town.register(handle) for handle in ("ada", "ben", "carol"))
        seen: dict[GroupReceipts, tuple[object, object]] = {}
        for number, receipts in enumerate(GroupReceipts):
            group = GROUP + 2 * number
            make_group(town, ada, ben, carol, group=group, receipts=receipts)
            id_ = write_to_group(town, ada, group=group)
            ack = GroupAcked(group, 1) if members == 1 else Acked(Lane.NORMAL, 2 * number + 2)
            town.say(ben.device, ack)
            found = town.get(f"/v1/messages/{id_}", ada).json
            seen[receipts] = found["state"], {each["device"]: each["state"] for each in found["devices"]}
        waits = {} if members == 1 else {f"{carol.device:x}": "sent"}
        assert seen == {
            GroupReceipts.EACH_MEMBER: ("delivered", {f"{ben.device:x}": "delivered", **waits}),
            GroupReceipts.AT_LEAST_ONE: ("delivered", {}),
            GroupReceipts.NONE: ("sent", {}),
        }
