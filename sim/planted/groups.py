# pyright: reportPrivateUsage=false
"""Bugs in groups: who is a member, who is addressed, and what is counted."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.core import blocking, devices, mailbox
from nightmail.core.groups import chain, cursors, fanning, filing, membership, missed, receipts, sending
from nightmail.engine.cluster import fresh_reads

from .tools import Bug, Focus, Plant, all_of, edit, edit_method

FOLD_OF_GROUPS = ("tests/core/groups", "tests/engine/cluster/test_group_reads.py")
NODE, CLUSTER = ("groups node", "groups cluster"), ("groups cluster", "groups node")


LOGS = Focus(
    {"logs": 1, "tells": 1, "nap": 30, "link": 15, "unlink": 15, "log_out": 3, "register_again": 3, "close": 1}
)
SILENT = Focus({"logs": 1, "tells": 1, "write": 80, "link": 0, "unlink": 0, "log_out": 10})
ABSENT = Focus({"logs": 1, "tells": 1, "change": 30, "change_back_and_forth": 10})
LEAVERS = Focus({"logs": 1, "tells": 1, "nap": 30, "change": 30, "change_back_and_forth": 10})
ADMINS = Focus({"change": 40, "change_back_and_forth": 20})
FICKLE = Focus(
    {
        "change": 10,
        "change_back_and_forth": 60,
        "write": 20,
        "read": 2,
        "nap": 1,
        "link": 0.5,
        "unlink": 0.5,
    }
)


def _bug(name: str, plant: Plant, suites: tuple[str, ...] = NODE, focus: Focus | None = None) -> Bug:
    return Bug(name, plant, suites, FOLD_OF_GROUPS, seconds=12 if suites is NODE else 6, focus=focus)


BUGS = (
    _bug("in a group the epoch is checked before the ring", edit(
        sending.step_sent, "said = _answer_again(state, stream, sent)",
        "said = (group and _check_sent(state, group, roster, by, sent)) or _answer_again(state, stream, sent)",
    ), CLUSTER),
    _bug("groups are not told of an unlinked device", edit(
        devices._unlink, "if state.knows_groups:", "if False:",
    )),
    _bug("a group keeps the devices that its member has lost", edit(
        membership._replace_devices, "member.devices = {", "member.devices = before | {",
    )),
    _bug("a message is sealed again for a newcomer", edit(
        sending._is_addressed, "not of_seq or member.joined <= of_seq or contains(member.former, of_seq)", "True",
    )),
    _bug("verdicts of a group are merged by author", edit(
        mailbox._take, "or entry.epoch or seq in unreadable", "or seq in unreadable",
    )),
    _bug("group entries are filed by the present list", all_of((
        edit(filing._boxes, "device != by and (not since or since.get(device, 0) <= revision)", "device != by"),
        edit(filing._addressed, "and since.get(device, 0) <= revision", ""),
    )), CLUSTER),
    _bug("a removed member stays in the roster", edit(
        chain._remove, "roster.members.pop(account)", "roster.members[account]",
    )),
    _bug("an account that was removed meanwhile joins", edit(
        membership.step_answered, "entry = roster.members.get(account) if roster else None",
        "entry = roster.members.setdefault(account, RosterEntry(1, b'', answered.ask)) if roster else None",
    ), CLUSTER, FICKLE),
    _bug("a message to a group takes no number", edit(
        sending._take_number, "(by, said.group), stream, said", "(by, said.group), Stream(stream.at), said",
    )),
    _bug("stamps of a group grow for each author alone", edit(
        sending._take_number, "stream.at = max(stream.at, group.at)", "pass",
    )),
    _bug("a newcomer is a member since ever", edit(
        membership._join, "member.joined = group.seq + 1", "member.joined = 1",
    )),
    _bug("authors in a group are told only once", edit(
        receipts.schedule_news, "if not had_news:", "if not had_news and not group.genesis[0] & 1:",
    )),
    _bug("a block ends what waits of a group", edit(
        blocking._is_blocked, "and not entry.epoch", "",
    )),
    _bug("a private reader is counted in a group", edit(
        receipts.step_read, "elif account.read_receipts:", "else:",
    )),
    _bug("what cannot be opened counts as delivered in a group", edit(
        mailbox._take, "if seq in unreadable:", "if seq in unreadable and not entry.epoch:",
    )),
    _bug("an author in a group gets what it wrote", all_of((
        edit(filing._boxes, "device != by and", ""), edit(filing._addressed, "device != by and", ""),
    ))),
    _bug("a fan-out files before it has looked at the due rows", edit(
        filing._boxes, "mailbox.look_at_clock(state, box, life_ms, len(boxes))", "pass",
    )),
    _bug("who did not join is addressed", edit(
        fanning.audience_of, "if entry.state is joined", "if entry.state is not MemberState.INVITED",
    )),
    _bug("a cursor is set back when its device is added again", edit(
        membership._replace_devices, "before.get(device) or MemberDevice(last + 1, cursor=last)",
        "MemberDevice(last + 1, before[device].delivered if device in before else [], cursor=last)",
    )),
    _bug("an entry leaves a group's log when one member has it", edit(
        cursors._lowest, "return min(cursors)", "return max(cursors)",
    )),
    _bug("a group's log hands out what was written in one's absence", edit(
        cursors.is_for, "return 0 < member.joined <= seq or contains(member.former, seq)", "return True",
    ), focus=ABSENT),
    _bug("what cannot be opened counts as fetched from a group's log", edit(
        cursors._take, "if seq in unreadable:", "if False:",
    )),
    _bug("a leaver loses its rest of a group's log", edit(
        membership._end, "group.leavers[account] = group.seq", "pass",
    ), focus=LEAVERS),
    _bug("entries of a group's log overtake their keys", edit_method(
        fresh_reads.FreshReads, "_has_heard", "is_filed and heard", "is_filed",
    ), CLUSTER),
    _bug("a change follows any head", edit(
        chain._check, "if chained.previous != group.head:", "if False:",
    ), focus=ADMINS),
    _bug("a device that goes has missed nothing of a group's log", edit(
        membership._replace_devices, "if group.sweeps:", "if False:",
    ), focus=LOGS),
    _bug("only the first page of what a device has missed is told", edit(
        missed._has_more, "return after < box.lanes[Lane.NORMAL].head", "return False",
    ), focus=LOGS),
    _bug("nothing fails for a member without devices", edit(
        fanning._fail_without_devices, "if account != author:", "if False:",
    ), focus=SILENT),
    _bug("a sweep forgets what its earlier pages said", edit(
        cursors._lowest_so_far, "group.swept[1] if group.swept[0] else group.seq", "group.seq",
    ), focus=LOGS),
)  # fmt: skip
