# pyright: reportPrivateUsage=false
from __future__ import annotations

from itertools import permutations

import pytest

from nightmail.model.group_chain import SIGNATURE_BYTES, ChainedChange, encode_change
from nightmail.model.group_notices import GroupNotice, NoticeKind, encode_notice
from nightmail.model.ids import account_id, device_id, log_of
from nightmail.model.roster import Removal
from nightmail.model.rows import GroupEntry
from nightmail.model.words import Kind, Lane, MessageState, Reason
from sim.judges.group_checkers import _check_news
from sim.judges.group_history import GroupHistory, Stream
from sim.world.group_device import GroupDevice
from sim.world.group_town import GroupTown
from sim.world.world import Broken, World

GROUP = 1 << 45


class Club:
    """Ada has written to a group; Ben's device was handed it, and has acknowledged it."""

    def __init__(self, place: int) -> None:
        self.town = GroupTown(World(1), 2)
        self.ada, self.ben = (GroupDevice(person, device_id(person.account, 1), 1) for person in self.town.people)
        self.ada.was_listed_first = True
        for device in (self.ada, self.ben):
            device.person.devices.append(device)
        entry = GroupEntry(
            self.ada.number, GROUP, 1, "x", b"", Kind.TEXT, None, 1, 0, b"", group_seq=1, epoch=1, lane=Lane.NORMAL
        )
        self.town.history.shown(self.ben.number, (place, 1), entry)
        self.town.history.of(self.ben.number).acked[place] = 1

    def fails(self, box: int) -> None:
        """Ada hears that her message has expired there."""
        stream = Stream(self.ada.number, GROUP, Lane.NORMAL)
        self.town.history.of(self.ada.number).failed[stream, 1] = {box: Reason.EXPIRED}

    def judge(self) -> None:
        _check_news(self.town, self.ada)


@pytest.mark.parametrize("place", [Lane.NORMAL, GROUP])
def test_an_author_must_hear_that_somebody_has_the_message(place: int) -> None:
    club = Club(place)
    with pytest.raises(Broken, match="authors are told"):
        club.judge()
    club.town.history.of(club.ada.number).news[GROUP, MessageState.DELIVERED] = {1}
    club.judge()


def test_a_message_that_expired_in_the_groups_log_before_its_acknowledgement_is_not_delivered() -> None:
    club = Club(GROUP)
    club.fails(log_of(GROUP))
    club.judge()


def test_what_expired_in_the_groups_log_excuses_nothing_about_a_mailbox() -> None:
    club = Club(Lane.NORMAL)
    club.fails(log_of(GROUP))
    with pytest.raises(Broken, match="authors are told"):
        club.judge()
    club.fails(club.ben.number)
    club.judge()


def a_notice(seq: int, notice: GroupNotice) -> GroupEntry:
    said = encode_notice(notice)
    return GroupEntry(0, GROUP, 0, "x", b"", Kind.CONTROL, None, 1, 0, said, group_seq=seq, epoch=1, lane=Lane.NORMAL)


def test_it_does_not_matter_in_which_order_a_membership_is_heard_of() -> None:
    ada, ben = account_id("ada"), account_id("ben")
    removal = ChainedChange(GROUP, b"h" * 32, device_id(ada, 1), 1, Removal((ben,)), bytes(32))
    blob = encode_change(removal) + bytes(SIGNATURE_BYTES)
    notices = (
        a_notice(2, GroupNotice(NoticeKind.JOINED, ben, 1, since=2)),
        a_notice(8, GroupNotice(NoticeKind.CHANGED, ada, 2, blob=blob)),
        a_notice(20, GroupNotice(NoticeKind.JOINED, ben, 3, since=20)),
    )
    for order in permutations(enumerate(notices, 1)):
        history = GroupHistory()
        for place, notice in order:
            history.shown(device_id(ben, 1), (Lane.NORMAL, place), notice)
        assert history.memberships[GROUP, ben] == {2: 8, 20: 0}
