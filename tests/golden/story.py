"""The story that the golden logs tell: a small town in which everything happens once.

Knows:   every kind of record, and how each can end.
Never:   depends on a clock or on chance: the same program tells the same story.
"""

from __future__ import annotations

from typing import Any

from nightmail.core.state import NEWEST_FOLD
from nightmail.model.effects import Effect, Forward
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.limits import DAY_MS
from nightmail.model.records import (
    Acked,
    BadRecord,
    Blocked,
    Claimed,
    ClockBelieved,
    ClockDoubted,
    ClockSetBack,
    Closed,
    FoldRaised,
    Forwarded,
    HandleClaimed,
    Known,
    LimitsSet,
    Linked,
    PinSet,
    Read,
    ReceiptsAcked,
    ReceiptsSet,
    Record,
    Registered,
    Relabelled,
    Replayed,
    Span,
    Unlinked,
    Voided,
    decode_record,
    encode_record,
)
from nightmail.model.words import Lane, Platform
from tests.core.schedule_world import ScheduleWorld
from tests.core.world import Memory, Node, Person, name_of, published, sealed

from .blob_story import tell_of_blobs
from .group_story import tell_of_groups
from .logs import SHARDS, Line
from .push_story import tell_of_pushes
from .schedule_story import tell_of_schedules

NORMAL, HIGH = Lane
SECOND, HOUR = 1_000, 3_600_000
CLAIM = 12_345
"""The number under which a handle and its lookalike are claimed."""
RECORDS_MAX = 5
"""In one batch: enough to have batches of several records, few enough to have many batches."""


def tell(log: str, fold: int) -> list[Line]:
    """The same story for every fold: what differs is what becomes of it."""
    town = Town(SHARDS[log], 1 if log == "raised" else fold)
    alice, bob = town.join("alice", 2), town.join("bob", 2)
    carol, dave = town.join("carol"), town.join("dave")
    _ordinary_life(town, alice, bob)
    _retries(town, alice, bob)
    _unreadable(town, alice, bob)
    _blocks_and_wishes(town, alice, bob, carol)
    _lists(town, alice, bob, carol)
    _keys(town, alice, bob, carol)
    _quotas(town, carol, dave)
    town.raise_to(fold)
    _time(town, alice, bob, dave)
    if fold > 1:
        _shares(town, alice, bob, carol, dave)
    _endings(town, alice, bob, carol, dave)
    _strangers(town, alice)
    _takeovers(town, alice, dave)
    if fold > 1:
        _wrong_clock(town, alice, dave)
        _doubted_clock(town, alice, dave)
        _handles(town)
    if fold > 2:
        _doubted_through_a_restart(town, alice, dave)
    if fold > 3:
        _second_wrong_clock(town, alice, dave)
        tell_of_groups(town)
    if fold > 4:
        tell_of_schedules(town)
    if fold > 5:
        tell_of_pushes(town)
    if fold > 6:
        tell_of_blobs(town)
    _oddities(town, alice)
    return town.lines


class Town(ScheduleWorld):
    """A world that remembers what became durable, in which order."""

    def __init__(self, shards: int, fold: int) -> None:
        super().__init__(shards, Memory.KEEPS, NEWEST_FOLD)
        self.lines: list[Line] = []
        self._raised = fold

    def node(self, index: int) -> Node:
        if index not in self.nodes:
            node = self.nodes[index] = Noted(index, self)
            if self._raised > 1:
                node.fold(self.now, said(FoldRaised(self._raised)))
            node.fold(self.now, said(LimitsSet(self._limits)))
        return self.nodes[index]

    def raise_to(self, fold: int) -> None:
        """From here on, everywhere."""
        if self._raised < fold:
            self._raised = fold
            for node in self.nodes.values():
                node.fold(self.now, said(FoldRaised(fold)))

    def next_number(self, by: int, to: Person) -> int:
        stream = self.stream(by, to)
        return stream.lanes[NORMAL].last + 1 if stream else 1

    def keep(self, shard: int, at: int, data: bytes) -> None:
        last = self.lines[-1] if self.lines else None
        if last and (last.shard, last.at) == (shard, at) and len(last.records) < RECORDS_MAX:
            last.records.append(data)
        else:
            self.lines.append(Line(shard, at, [data]))


class Noted(Node):
    def __init__(self, index: int, town: Town) -> None:
        super().__init__(index, town.shards, Memory.KEEPS, town.fold_version)
        self._town = town

    def fold(self, at: int, data: bytes) -> tuple[list[Effect], list[Forward]]:
        self._town.keep(self.index, at, data)
        return super().fold(at, data)

    def set_aside(self, at: int, data: bytes) -> None:
        """Bytes that are no record."""
        self._town.keep(self.index, at, data)
        try:
            decode_record(data)
        except BadRecord as error:
            self.bury(at, data, str(error))


def said(body: Any) -> bytes:
    return encode_record(Record(SERVER, 0, body))


# --- the chapters -----------------------------------------------------------------------------


def _ordinary_life(town: Town, alice: Person, bob: Person) -> None:
    """Both lanes, own copies, acks, receipts, reads, answers after questions."""
    for n in (1, 2, 3):
        town.send(alice[1], bob, n, text=f"normal {n}")
        town.now += 7
    town.send(alice[1], bob, 1, lane=HIGH, text="at once")
    town.do(bob[1], Acked(HIGH, 1))
    town.do(bob[1], Acked(NORMAL, 2))
    town.do(bob[1], ReceiptsAcked(0))  # it has none yet
    town.do(bob[1], ReceiptsAcked(1))
    town.now += SECOND
    town.do(bob[1], Read(alice.account, (Span(alice[1], NORMAL, 1, 2), Span(alice[1], HIGH, 1, 1))))
    # An answer stands after what its sender had seen, even if the clock does not.
    town.send(bob[1], alice, 1, text="answer", seen=town.now + 500)
    town.send(bob[2], alice, 1, text="from the other device", seen=town.now + 50_000)
    town.do(alice[2], Acked(NORMAL, 4))
    town.do(alice[1], ReceiptsAcked(2))
    town.do(alice[1], ReceiptsAcked(2))
    town.do(alice[1], ReceiptsAcked(99))
    town.do(bob[1], Acked(NORMAL, 99))
    town.send(alice[1], alice, 1, text="to myself")


def _retries(town: Town, alice: Person, bob: Person) -> None:
    """Lost answers, reused and skipped numbers, numbers given up."""
    town.send(alice[1], bob, 3, text="normal 3")
    town.send(alice[1], bob, 3, text="something else")
    town.send(alice[1], bob, 3, text="normal 3", name=name_of(alice[1], 77))
    town.send(alice[1], bob, 9)
    town.do(alice[1], Voided(bob.account, NORMAL, 4, 3, name_of(alice[1], 4)))
    town.do(alice[1], Voided(bob.account, NORMAL, 3, 3, name_of(alice[1], 3)))
    town.do(alice[1], Voided(bob.account, NORMAL, 9, 3, name_of(alice[1], 9)))
    town.send(alice[1], bob, 4, text="given up")
    town.send(alice[1], bob, 5, text="the next", floor=5)
    town.send(alice[1], bob, 1, text="normal 1")  # its answer is not kept any more


def _unreadable(town: Town, alice: Person, bob: Person) -> None:
    """What could not be opened is sealed again, for one device. One and the same ack also delivers another."""
    town.do(bob[1], Acked(NORMAL, 5, (3,)))
    lost, again, own = name_of(alice[1], 3), (sealed(bob[1], "again"),), (sealed(alice[2], "again"),)
    town.send(alice[1], bob, 6, text="again", of=lost, envelopes=again, own_envelopes=())
    town.send(alice[1], bob, 7, text="for my own", of=lost, envelopes=(), own_envelopes=own)
    town.do(alice[2], Acked(NORMAL, 5, (5,)))
    copies = [item[0] for item in town.offer(alice[2]) if isinstance(item, tuple)]  # of her own: her phone seals again
    town.limit(failures_alone=1)
    town.do(alice[2], Acked(NORMAL, max(copies), tuple(copies[1:])))
    town.limit()


def _blocks_and_wishes(town: Town, alice: Person, bob: Person, carol: Person) -> None:
    town.limit(blocked_accounts=1)
    town.do(bob[1], Blocked(bob.account, carol.account, True))
    town.do(bob[1], Blocked(bob.account, alice.account, True))  # one too many
    town.limit()
    town.send(carol[1], bob, 1, text="unheard")
    town.do(carol[1], Blocked(bob.account, carol.account, False))  # not hers to say
    town.do(bob[2], Blocked(bob.account, carol.account, False))
    town.send(carol[1], bob, 2, text="heard")
    town.do(bob[1], ReceiptsSet(bob.account, False))
    town.do(bob[1], Acked(NORMAL, 7, (7,)))
    town.do(bob[1], Read(carol.account, (Span(carol[1], NORMAL, 1, 9),)))
    town.do(bob[1], ReceiptsSet(bob.account, True))
    town.do(bob[1], Read(alice.account, (Span(alice[1], NORMAL, 2, 99),)))
    town.do(alice[1], ReceiptsSet(alice.account, False))
    town.do(bob[1], Read(alice.account, (Span(alice[1], NORMAL, 1, 1),)))


def _lists(town: Town, alice: Person, bob: Person, carol: Person) -> None:
    """A new device, one that is not listed any more, messages sealed for lists that are old."""
    old = town.sent(carol[1], alice, 1, text="for the old list")
    town.link(alice)
    town.do(carol[1], old)
    town.send(carol[1], alice, 1, text="for the new list")
    town.link(bob, listed=False)
    town.list_devices(bob[1], bob, (bob[1], bob[3]))
    town.list_devices(bob[1], bob, (bob[1], 12345))
    town.list_devices(carol[1], bob, (bob[1],))
    town.limit(devices=1)
    town.do(bob[1], Linked(bob.account, 104, b"token 4", "another", Platform.WEB))  # one too many
    town.limit()
    town.do(bob[1], Linked(bob.account, 104, b"token 4", "another", Platform.WEB))
    town.send(carol[1], alice, 2, envelopes=(sealed(alice[1], registration=999),))
    # The sender's own list is old: which of her devices has no copy is told.
    town.send(alice[1], carol, 1, own_envelopes=(sealed(alice[2]),))


def _keys(town: Town, alice: Person, bob: Person, carol: Person) -> None:
    """Published, claimed, claimed again, used up, published again, more than fit, and of whom there are none."""
    town.limit(stock_one_time=6, stock_kem=3, low_one_time=3, low_kem=2, claims_kept=5, claims_per_minute=3)
    town.do(carol[1], Claimed(bob[1], 1))
    town.do(bob[1], published(bob[1], range(2, 7), range(2, 5)))
    town.do(bob[1], published(bob[1], range(2, 7), range(2, 5)))
    for request in (1, 2, 1, 3, 4):  # the third is a repeat, the last is one too many
        town.do(carol[1], Claimed(bob[1], request))
    town.now += 60 * SECOND
    for request in (1, 5, 6):
        town.do(carol[1], Claimed(bob[1], request))
    town.do(alice[1], Claimed(bob[1], 1))  # nothing is left
    town.do(carol[1], Claimed(bob[1], 1))  # forgotten by now
    town.do(bob[1], published(bob[1], range(5, 15), range(4, 9), renewed=7))
    town.do(bob[1], published(bob[1], range(15, 16), range(0), renewed=6))  # what was replaced does not come back
    town.do(alice[1], Claimed(bob[1], 1))
    town.do(alice[2], Claimed(bob[1], 1))
    town.now += DAY_MS
    town.do(alice[1], Claimed(bob[1], 1))  # too late to be the same
    town.do(bob[1], published(bob[1], range(20, 21), range(20, 21), identity="another"))
    town.do(bob[1], published(bob[3], range(20, 21), range(20, 21)))
    town.do(bob[3], published(bob[3], range(2, 4), range(0)))  # goes with its keys, later
    town.do(device_id(bob.account, 99), published(bob[3], range(2, 4), range(2, 4)))
    town.do(carol[1], Claimed(device_id(bob.account, 99), 1))
    town.do(carol[1], Claimed(device_id(account_id("eve"), 1), 1))
    town.limit()


def _quotas(town: Town, carol: Person, dave: Person) -> None:
    town.limit(mailbox_entries=2, ring_acks=3)
    for n in (1, 2, 3, 4):
        town.send(carol[1], dave, n, text=f"filling {n}")
    town.link(dave)
    town.send(carol[1], dave, 3, text="one has room")
    town.do(dave[1], Acked(NORMAL, 1))
    for n in range(4, 8):
        town.send(carol[1], dave, n, text=f"more {n}", floor=n)
        town.do(dave[2], Acked(NORMAL, n - 2))
    town.limit()


def _time(town: Town, alice: Person, bob: Person, dave: Person) -> None:
    """Timers, expiry in one tick and in many, a clock that was set back, no expiry at all."""
    town.send(dave[1], bob, 1, text="for a minute", life_ms=60 * SECOND)
    town.send(dave[1], bob, 1, lane=HIGH, text="for an hour", life_ms=HOUR)
    town.send(alice[1], dave, 1, text="for long")
    town.wait(60 * SECOND)
    town.do(bob[1], Acked(HIGH, 2))
    town.wait(HOUR)
    town.now -= 10 * SECOND
    town.send(dave[1], bob, 2, text="while the clock was slow")
    town.now += 10 * SECOND
    town.limit(tick_items=1)
    town.wait(30 * DAY_MS)
    town.limit(ttl_ms=0)
    town.send(dave[1], bob, 3, text="for ever")
    town.wait(90 * DAY_MS)
    town.limit()


def _shares(town: Town, alice: Person, bob: Person, carol: Person, dave: Person) -> None:
    """A stranger who holds too much, a friend who may hold more, and what is acknowledged."""
    mal = town.join("mal")
    town.limit(stranger_entries=2, mailbox_entries=30, known_accounts=1)
    town.do(bob[1], Known(bob.account, alice.account, True))
    town.do(carol[1], Known(carol.account, alice.account, True))
    town.do(bob[1], Known(bob.account, dave.account, True))
    town.do(bob[1], Known(bob.account, dave.account, True))
    for n in (1, 2, 3):
        town.send(mal[1], bob, n, text=f"unwanted {n}")
    for n in (4, 5, 6, 7):
        town.send(dave[1], bob, n, text=f"of a friend {n}")
    box = town.mailbox(bob[1])
    assert box is not None
    town.do(bob[1], Acked(NORMAL, box.lanes[NORMAL].head))
    town.send(mal[1], bob, 3, text="one device has room")
    town.do(bob[1], Known(bob.account, dave.account, False))
    town.do(bob[1], Blocked(bob.account, mal.account, True))
    for n in (4, 5, 6):
        town.send(mal[1], bob, n, text=f"withheld {n}")
    town.do(bob[1], Blocked(bob.account, mal.account, False))
    town.limit()


def _endings(town: Town, alice: Person, bob: Person, carol: Person, dave: Person) -> None:
    """Devices and accounts go, with what waited for them; one comes back."""
    town.send(dave[1], bob, town.next_number(dave[1], bob), text="for devices that go")
    town.do(bob[1], Unlinked(bob[3]))
    town.do(bob[1], Unlinked(bob[3]))
    town.do(carol[1], Unlinked(bob[1]))
    town.send(alice[1], carol, 2, own_envelopes=(sealed(alice[2]), sealed(alice[3])))
    town.do(SERVER, Closed(carol.account))
    town.do(SERVER, Closed(carol.account))
    town.send(dave[1], carol, 1, envelopes=(sealed(carol[1]),), list_version=1)
    town.limit(handle_kept_ms=0)
    back = town.join("carol")
    town.limit()
    town.send(dave[1], back, 1, text="welcome back", envelopes=(sealed(back[1], registration=101),))


def _strangers(town: Town, alice: Person) -> None:
    """Who does not exist, and who says to be somebody else."""
    eve = account_id("eve")
    town.do(SERVER, Registered(alice.account, "alice", 7, b"another token", "phone", Platform.IOS))
    town.do(device_id(alice.account, 99), Linked(alice.account, 7, b"token", "phone", Platform.IOS))
    town.do(device_id(alice.account, 99), Acked(NORMAL, 1))
    town.do(device_id(alice.account, 99), ReceiptsAcked(1))
    town.do(device_id(eve, 1), Read(alice.account, ()))
    town.do(device_id(eve, 1), Voided(eve, NORMAL, 1, 1, name_of(device_id(eve, 1), 1)))
    town.do(SERVER, Closed(eve))


def _takeovers(town: Town, alice: Person, dave: Person) -> None:
    """A lost phone's owner begins anew: verified, by a PIN, and with wrong ones until no more are compared."""
    town.limit(pin_tries=2)
    salt, right, wrong = bytes(16), b"r" * 32, b"w" * 32

    def begin(name: str, verified: bool, pin: bytes) -> None:
        new = Registered(dave.account, "dave", 9, name.encode(), "new phone", Platform.WEB, verified, pin)
        town.do(SERVER, new)

    town.send(alice[1], dave, 9, text="for a phone that is lost")
    town.do(dave[2], Relabelled(dave[1], "lost phone"))
    town.do(dave[2], Relabelled(device_id(dave.account, 99), "nobody's"))
    town.do(alice[1], PinSet(dave.account, salt, wrong))
    begin("first", True, b"")
    third = device_id(dave.account, 3)
    town.do(third, PinSet(dave.account, salt, right))
    begin("second", False, b"")
    begin("second", True, b"")
    begin("second", True, wrong)
    begin("second", False, right)
    begin("second", False, right)
    for _ in range(3):
        begin("third", True, wrong)
    town.wait(7 * DAY_MS)
    begin("third", True, right)
    town.do(device_id(dave.account, 5), PinSet(dave.account, b"", b""))
    town.limit()


def _wrong_clock(town: Town, alice: Person, dave: Person) -> None:
    """Ten days ahead, until an operator sets the time back: timers of before, of meanwhile and of later."""
    third = device_id(dave.account, 3)
    town.send(third, alice, 1, text="before, for 11 days", life_ms=11 * DAY_MS)
    town.send(third, alice, 2, text="before, for long")
    town.wait(10 * DAY_MS)
    town.send(third, alice, 3, text="meanwhile, for a minute", life_ms=60 * SECOND)
    town.send(third, alice, 4, text="meanwhile, for long")
    wrong, town.now = town.now, town.now - 10 * DAY_MS
    for node in list(town.nodes.values()):
        node.fold(town.now, said(ClockSetBack(town.now, wrong)))
    town.send(third, alice, 5, text="afterwards, for long", seen=wrong)
    town.send(alice[1], alice, 2, text="to myself", seen=wrong)
    for ms in (60 * SECOND, 2 * DAY_MS, 10 * DAY_MS, 20 * DAY_MS):
        town.wait(ms)


def _doubted_clock(town: Town, alice: Person, dave: Person) -> None:
    """The servers were off for 40 days, and believe it after a minute."""
    third = device_id(dave.account, 3)
    town.send(third, alice, 6, text="before, for long")
    doubted = town.now
    town.now += SECOND
    town.send(third, alice, 7, text="during the doubt, for an hour", life_ms=HOUR)
    town.send(third, alice, 8, text="during the doubt, for long")
    town.now += 60 * SECOND
    for node in list(town.nodes.values()):
        node.fold(town.now, said(ClockBelieved(doubted, town.now + 40 * DAY_MS)))
    town.now += 40 * DAY_MS
    for ms in (0, HOUR, 30 * DAY_MS):
        town.wait(ms)


def _doubted_through_a_restart(town: Town, alice: Person, dave: Person) -> None:
    """A doubt that is no more, and one in the middle of which the servers start again."""
    third = device_id(dave.account, 3)
    nodes = list(town.nodes.values())
    for node in nodes:
        node.fold(town.now, said(ClockDoubted(town.now)))
        node.fold(town.now, said(ClockDoubted(0)))
    began = town.now
    for node in nodes:
        node.fold(town.now, said(ClockDoubted(began)))
    town.now += SECOND
    town.send(third, alice, 9, text="during the doubt, before the restart", life_ms=HOUR)
    restarted = town.now
    town.now += SECOND
    for node in nodes:
        node.fold(town.now, said(ClockDoubted(restarted)))
        node.fold(town.now, said(ClockBelieved(restarted, town.now + 40 * DAY_MS)))
    town.now += 40 * DAY_MS
    for ms in (0, HOUR):
        town.wait(ms)


def _second_wrong_clock(town: Town, alice: Person, dave: Person) -> None:
    """A timer that is set while stamps are ahead, and another clock that is wrong, believed and set back."""
    third = device_id(dave.account, 3)
    for days in (5, 2):
        town.send(third, alice, town.next_number(third, alice), text=f"before {days}", life_ms=3 * DAY_MS)
        town.now += days * DAY_MS
        town.send(third, alice, town.next_number(third, alice), text=f"meanwhile {days}", life_ms=DAY_MS)
        wrong, town.now = town.now, town.now - days * DAY_MS
        for node in list(town.nodes.values()):
            node.fold(town.now, said(ClockSetBack(town.now, wrong)))
        town.wait(HOUR)
    for ms in (DAY_MS, DAY_MS, 2 * DAY_MS):
        town.wait(ms)


def _handles(town: Town) -> None:
    """Two names that look alike are claimed; one is registered, closed, and let go after a while."""
    erin, look = account_id("erin"), CLAIM
    town.do(SERVER, HandleClaimed(look, "erin", erin, 1))
    town.do(SERVER, HandleClaimed(look, "er\u0456n", account_id("er\u0456n"), 1))
    town.do(SERVER, Registered(erin, "erin", 7, b"erin's token", "phone", Platform.IOS, claim=look))
    town.do(device_id(erin, 1), Closed(erin))
    town.do(SERVER, Registered(erin, "erin", 8, b"another token", "phone", Platform.IOS, claim=look))
    town.do(SERVER, HandleClaimed(look, "er\u0456n", account_id("er\u0456n"), 1))
    town.wait(30 * DAY_MS)
    town.do(SERVER, HandleClaimed(look, "er\u0456n", account_id("er\u0456n"), 1))


def _oddities(town: Town, alice: Person) -> None:
    """What only a zombie or a broken disk says."""
    node = town.of(alice.account)
    assert isinstance(node, Noted)
    node.fold(town.now, said(FoldRaised(1)))
    bodies = [decode_record(data).body for line in town.lines if line.shard == node.index for data in line.records]
    if told := [body for body in bodies if isinstance(body, Forwarded)]:
        last = told[-1]
        node.fold(town.now, said(last))  # again
        node.fold(town.now, said(Forwarded(last.source, last.k + 5, last.body)))  # out of its chain
    node.set_aside(town.now, b"rubbish")
    if node.state.knows_schedules:
        town.command(alice, Replayed(node.offset))
    node.set_aside(town.now, bytes(16) + b"\xc1")
