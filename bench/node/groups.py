"""A group in the data folder, made by the engine before the server starts.

Knows:   the chain of changes, unsigned: the server checks no signature.
"""

from __future__ import annotations

from pathlib import Path

from bench.measured_node import Broken, Rig
from nightmail.core.state import NEWEST_FOLD
from nightmail.model.answers import GroupHead, Said
from nightmail.model.effects import Answer
from nightmail.model.group_chain import NAMED_MAX, NO_HEAD, SIGNATURE_BYTES, ChainedChange, encode_change
from nightmail.model.group_rows import FanOut
from nightmail.model.limits import FoldLimits
from nightmail.model.records import GroupChanged, GroupMade, Record
from nightmail.model.roster import (
    ACCOUNT_KEY_BYTES,
    Addition,
    Creation,
    GroupSettings,
    NewMember,
    Roster,
    changed,
    created,
)

from . import people
from .load_messages import Known

GROUP = 0x1234_5678


def make_by_engine(folder: Path, members: int) -> Known:
    """Persons 0 to `members` - 1 in one group, into a folder that no server has open."""
    rig = Rig(folder)
    try:
        rig.loop.recover()
        while not rig.loop.adopt(NEWEST_FOLD, FoldLimits()):
            rig.turn(())
        people.register(rig, members)
        head = _make(rig, members)
        rig.settle()
        group = rig.loop.state.groups.there(GROUP)
        if group.joined != members:
            raise Broken(f"{group.joined} of {members} joined the group")
        return Known(GROUP, group.epoch, head, group.fan_out is not FanOut.WRITE)
    finally:
        rig.close()


def _make(rig: Rig, members: int) -> bytes:
    """Created with some, the others added by and by. Returns the chain's head."""
    newcomers = [NewMember(people.account(number), bytes(ACCOUNT_KEY_BYTES)) for number in range(members)]
    creation = Creation(GroupSettings(), tuple(sorted(newcomers[:NAMED_MAX])))
    roster = created(people.account(0), creation)
    head = _say(rig, GroupMade(GROUP, _blob(NO_HEAD, creation, roster)))
    for first in range(NAMED_MAX, members, NAMED_MAX):
        addition = Addition(tuple(sorted(newcomers[first : first + NAMED_MAX])))
        after = changed(roster, people.account(0), addition)
        assert isinstance(after, Roster)
        roster = after
        head = _say(rig, GroupChanged(GROUP, _blob(head, addition, roster)))
    return head


def _blob(head: bytes, change: Creation | Addition, roster: Roster) -> bytes:
    chained = ChainedChange(GROUP, head, people.device(0), people.REGISTRATION, change, roster.hash())
    return encode_change(chained) + bytes(SIGNATURE_BYTES)


def _say(rig: Rig, body: GroupMade | GroupChanged) -> bytes:
    said: Said | None = None
    effects = rig.turn([Record(people.device(0), 1, body)])
    while said is None:
        said = next((effect.said for effect in effects if isinstance(effect, Answer)), None)
        effects = rig.turn(())
    if not isinstance(said, GroupHead):
        raise Broken(f"a change of the group was told {said}")
    return said.head
