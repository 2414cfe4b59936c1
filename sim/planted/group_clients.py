# pyright: reportPrivateUsage=false
"""Bugs of clients in groups: who is believed to be a member, who holds a key, and what is opened where."""

from __future__ import annotations

from nightmail.client.groups.audience import GroupAudience
from nightmail.client.groups.following import ChainFollower
from nightmail.client.groups.known_groups import KnownGroups
from nightmail.client.groups.log import GroupLogs
from nightmail.client.groups.opening import GroupOpening
from nightmail.client.groups.sealing import GroupSealing
from nightmail.client.groups.seen_by import SeenByMembers
from nightmail.client.groups.sender_keys import SenderKeys
from nightmail.client.groups.waiting import WaitingEntries
from nightmail.client.groups.welcomes import Welcomes
from nightmail.client.inbox.inbox import Inbox
from nightmail.client.inbox.read_marks import ReadMarks
from nightmail.e2ee.groups import chain as group_chain
from nightmail.e2ee.groups import sender_keys

from .tools import Bug, edit, edit_method

SUITE = ("tests of group clients",)
WORLDS = ("group clients", "tests of group clients")
UNIT = ("tests/e2ee/groups/test_chain.py", "tests/e2ee/groups/test_sender_keys.py")
FIRST: dict[bytes, sender_keys.SenderChain] = {}

BUGS = (
    Bug("a device counts as a holder though nothing was sealed for it",
        edit_method(SenderKeys, "_hand_on",
                    "self._outbox.seal_in_group(chain.group, controls.key(hand_on(chain)), to, before)", "pass"),
        WORLDS, UNIT),
    Bug("no new chain is made after a holder has left",
        edit(sender_keys.left_holders, "holder not in audience", "False"), WORLDS, UNIT),
    Bug("a newcomer gets a chain from its beginning",
        edit_method(SenderKeys, "_hand_on", "controls.key(hand_on(chain))",
                    "controls.key(hand_on(FIRST.setdefault(chain.key_id, chain)))", FIRST=FIRST), SUITE, UNIT),
    Bug("a message key seals twice",
        edit_method(GroupSealing, "_seal", "self._keys.put(chain)", "pass"), WORLDS, UNIT),
    Bug("who asks for a key need not be a member",
        edit_method(GroupAudience, "has", "address in self.addresses(group)", "True"), SUITE, UNIT),
    Bug("something is sealed for a member who was removed since",
        edit_method(GroupSealing, "_for_some", "if Address(*target) in audience", ""), SUITE, UNIT),
    Bug("a change of a group is believed without its signature",
        edit(group_chain._verdict, "return ChangeFault.BAD_SIGNATURE", "return after"), SUITE, UNIT),
    Bug("a welcome is not compared with the members that the server shows",
        edit(group_chain.begin_welcomed, "not hmac.compare_digest(roster.hash(), welcome.roster_hash)", "False"),
        SUITE, UNIT),
    Bug("a removed member is heard behind the removal",
        edit_method(KnownGroups, "may_stand", "seq < later.seq and not in_order", "seq < later.seq"), SUITE, UNIT),
    Bug("a chain that became shorter is believed",
        edit_method(ChainFollower, "take_chain", "item.length < row.index or", "False or"), SUITE, UNIT),
    Bug("the key that opened a message stays good for it",
        edit_method(GroupOpening, "_open_for_all", "self._put(chain)", "pass"), SUITE, UNIT),
    Bug("an entry that waits for its key is not kept",
        edit_method(WaitingEntries, "put", "store.put_errand(", "(lambda *_: None)("), SUITE, UNIT),
    Bug("a device asks for one key again and again",
        edit_method(WaitingEntries, "ask_for_key", "(asked := store.errand(name))", "(asked := None)"), SUITE, UNIT),
    Bug("a life is not counted in groups",
        edit_method(Inbox, "_file", "life_ms=self._life_ms(entry, note, peer)",
                    "life_ms=0 if in_group else self._life_ms(entry, note, peer)"), SUITE, UNIT),
    Bug("a group is read past a message that nobody saw",
        edit_method(ReadMarks, "_readable", "(unread is not None and row.n > unread)", "False"), SUITE, UNIT),
    Bug("news of a group's log that carries nothing is ignored",
        edit_method(GroupLogs, "take", "if item.head > row.cursor:", "if False:"), SUITE, UNIT),
    Bug("a lane goes on before its cursor is moved",
        edit_method(Inbox, "_take_entries", "held = Entries(item.lane, seq, fresh[taken:]), wait",
                    "self._hold_lane(Entries(item.lane, seq, fresh[taken:]), wait)"), SUITE, UNIT),
    Bug("who waits for a welcome is alarmed",
        edit_method(GroupOpening, "_tell_differs", "row.standing is not GroupStanding.JOINED", "False"), SUITE, UNIT),
    Bug("who was not welcomed yet does not look at the log",
        edit_method(GroupLogs, "fetch", "row.standing not in FETCHED", "row.standing not in FETCHED[1:]"),
        WORLDS, UNIT),
    Bug("a chain that the server does not show is asked for again and again",
        edit_method(ChainFollower, "_refused", "chase.upto = row.index", "pass"), SUITE, UNIT),
    Bug("a welcome names nobody who has left",
        edit_method(Welcomes, "begin", "departures=departures", "departures={}"), SUITE, UNIT),
    Bug("what else waits for a key that is gone is not asked for",
        edit_method(GroupOpening, "_open_alone", "self._waiting.was_sealed_again(entry.to, entry.by)", "pass"),
        SUITE, UNIT),
    Bug("a message whose life is over is sealed again in a group",
        edit_method(GroupSealing, "_is_over", "bool(message.life_ms) and", "False and"), SUITE, UNIT),
    Bug("an author does not ask who has its message by now",
        edit_method(SeenByMembers, "_look_again", "self._ask_again(group, numbers)", "pass"), WORLDS, UNIT),
    Bug("what was not answered over one connection is not asked over the next",
        edit_method(SeenByMembers, "connected", "self._ask_again(group, self._to_look_at(group))", "pass"),
        WORLDS, UNIT),
    Bug("an epoch that was a lie is kept",
        edit_method(KnownGroups, "is_at_epoch", "epoch != row.epoch", "epoch > row.epoch"), SUITE, UNIT),
)  # fmt: skip
