"""What was written to a group and is asked again: answered from memory, and not logged once more."""

from __future__ import annotations

import pytest

from nightmail.core.state import NEWEST_FOLD
from nightmail.model.answers import GroupAccepted
from nightmail.model.group_chain import NO_HEAD, head_of
from nightmail.model.ids import SERVER
from nightmail.model.records import Envelope, FoldRaised, GroupMade, GroupSealed, GroupSent
from nightmail.model.refusals import IdReused
from nightmail.model.roster import ACCOUNT_KEY_BYTES, Creation, GroupSettings, NewMember, created
from nightmail.model.words import Kind, Lane
from tests.core.group_world import GROUP, blob_of
from tests.engine.rig import ALICE, BOB, PHONE, START, TABLET, Rig, started

TAG = b"tag".ljust(16, b".")


class Club:
    """Alice has made a group with Bob in it."""

    def __init__(self) -> None:
        self.rig: Rig = started()
        self.rig.say(SERVER, FoldRaised(NEWEST_FOLD))
        members = sorted(NewMember(account, bytes(ACCOUNT_KEY_BYTES)) for account in (ALICE, BOB))
        creation = Creation(GroupSettings(), tuple(members))
        blob = blob_of(GROUP, NO_HEAD, PHONE, creation, created(ALICE, creation))
        self._head = head_of(blob)
        self.rig.say(PHONE, GroupMade(GROUP, blob))
        row = self.rig.loop.state.groups[GROUP]
        assert row is not None
        self._epoch = row.epoch
        self.rig.log.batches.clear()

    def message(self, n: int = 1, tag: bytes = TAG) -> GroupSent:
        name = f"{PHONE:x}:{START}:{n:05d}:x"
        return GroupSent(GROUP, Lane.NORMAL, n, 1, 0, name, tag, Kind.TEXT, self._epoch, self._head, 0, b"to all")

    def key(self) -> GroupSealed:
        envelopes = (Envelope(TABLET, 101, b"key"),)
        name = f"{PHONE:x}:{START}:00001:y"
        return GroupSealed(GROUP, Lane.HIGH, 1, 1, 0, name, TAG, Kind.CONTROL, self._epoch, None, 0, 0, envelopes)


def test_a_retry_in_a_group_is_answered_from_memory_and_not_logged_again() -> None:
    club = Club()
    rig = club.rig
    first = [rig.answers(rig.say(PHONE, body)) for body in (club.message(), club.key())]
    assert [type(said) for answers in first for said in answers] == [GroupAccepted] * 2
    rig.log.batches.clear()
    rig.log.tight = True  # Not even then: it costs nothing.
    again = [rig.answers(rig.say(PHONE, body)) for body in (club.message(), club.key())]
    assert (again, rig.log.batches, rig.repeated) == (first, [], 2)


@pytest.mark.parametrize("many", [1, 3])
def test_of_one_frame_only_what_is_new_in_a_group_is_logged(many: int) -> None:
    club = Club()
    rig = club.rig
    first = [rig.answers(rig.say(PHONE, body)) for body in (club.message(), club.key())]
    rig.log.batches.clear()
    new = [club.message(n) for n in range(2, 2 + many)]
    vias = rig.say_together(PHONE, club.message(), *new, club.key())
    answers = [rig.answers(via) for via in vias]
    assert [answers[0], answers[-1]] == first
    assert [said.id for found in answers[1:-1] for said in found if isinstance(said, GroupAccepted)] == [
        body.id for body in new
    ]
    assert ([len(batch) for _, batch in rig.log.batches], rig.repeated) == ([many], 2)


def test_other_content_under_a_number_that_is_taken_is_refused_from_memory() -> None:
    club = Club()
    rig = club.rig
    rig.say(PHONE, club.message())
    rig.log.batches.clear()
    other = club.message(tag=bytes(16))
    assert (rig.answers(rig.say(PHONE, other)), rig.log.batches) == ([IdReused(other.id)], [])


def test_a_retry_of_what_is_not_durable_yet_waits_for_it() -> None:
    club = Club()
    rig = club.rig
    rig.log.holds = True
    first, again = rig.say(PHONE, club.message()), rig.say(PHONE, club.message())
    assert rig.answers(again) == []
    rig.log.succeed()
    rig.log.succeed()
    assert [type(said) for said in rig.answers(first)] == [GroupAccepted]
    assert rig.answers(again) == rig.answers(first)
