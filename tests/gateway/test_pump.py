"""Live push, drain, repeat, pacing and the slow reader."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

from nightmail.engine.desk import ASK_AGAIN_MS
from nightmail.engine.ports import Desk, Failed, Offered
from nightmail.gateway.limits import GatewayLimits
from nightmail.model.answers import Said
from nightmail.model.records import Acked, ChangesAcked, Record
from nightmail.model.rows import Account, Change
from nightmail.model.traces import Trace
from nightmail.model.words import Lane, Reason, State
from nightmail.wire.items import Answered, Ask, Drained, Entries, FromServer, Gone, Ping, Receipts
from tests.gateway.rig import BEN, PHONE, TABLET, Phone, Town, a_message, a_town, as_entry, numbers_of, token_of

NORMAL, HIGH = Lane.NORMAL, Lane.HIGH
T = TypeVar("T")


def shapes(frames: list[list[FromServer]]) -> list[list[str]]:
    """What each frame brings, in short."""
    return [[_shape(item) for item in frame] for frame in frames]


def _shape(item: FromServer) -> str:
    if isinstance(item, Entries):
        return f"{item.lane.name.lower()} {item.first}-{item.first + len(item.entries) - 1}"
    return type(item).__name__


def greeted(town: Town, *, normal: int = 0) -> Phone:
    """Ben, who has said hello; what that brings is still to be seen."""
    ben = town.stranger()
    ben.hello(normal=normal)
    return ben


# --- draining ---------------------------------------------------------------------------------


def test_what_waits_comes_in_batches_of_a_hundred_as_far_as_credit_reaches() -> None:
    town = a_town()
    town.write(300)
    ben = greeted(town)
    town.turn()
    assert shapes(ben.link.frames) == [["Welcome", "normal 1-100"], ["normal 101-200"], ["normal 201-256"]]
    ben.link.take()
    ben.ack(256)
    town.turn()
    assert shapes(ben.link.frames) == [["normal 257-300", "Drained"]]
    assert ben.link.frames[0][1] == Drained(300, 0, 0)


def test_queue_empty_is_said_once_and_only_when_everything_was_handed_out() -> None:
    town = a_town(GatewayLimits(credit_entries=10))
    town.write(25)
    ben = greeted(town)
    seen: list[FromServer] = []
    for upto in (10, 20, 25):
        items = ben.take()
        seen += items
        assert (Drained(25, 0, 0) in items) == (upto == 25)
        ben.ack(upto)
    town.write(5, first=26)
    seen += ben.take()
    assert [item for item in seen if isinstance(item, Drained)] == [Drained(25, 0, 0)]
    assert numbers_of(seen) == list(range(1, 31))


def test_a_device_that_has_everything_is_handed_nothing() -> None:
    town = a_town()
    town.write(3)
    ben = greeted(town, normal=3)
    assert [type(item).__name__ for item in ben.take()] == ["Welcome", "Drained"]


def test_what_the_device_has_is_not_handed_out_even_if_its_ack_was_lost() -> None:
    town = a_town()
    town.write(5)
    ben = greeted(town, normal=3)
    assert ben.numbers() == [4, 5]


def test_the_high_lane_comes_first() -> None:
    town = a_town()
    town.write(3)
    town.write(2, lane=HIGH)
    ben = greeted(town)
    town.turn()
    assert shapes(ben.link.frames) == [["Welcome", "high 1-2", "normal 1-3", "Drained"]]


def test_a_frame_brings_a_hundred_entries_of_both_lanes_together() -> None:
    town = a_town()
    town.write(90)
    town.write(90, lane=HIGH)
    ben = greeted(town)
    town.turn()
    assert shapes(ben.link.frames) == [["Welcome", "high 1-90", "normal 1-10"], ["normal 11-90", "Drained"]]


def test_a_frame_of_large_entries_stays_well_below_the_limit() -> None:
    town = a_town()
    town.write(12, bytes(65_536))
    ben = greeted(town)
    town.turn()
    assert shapes(ben.link.frames)[:3] == [["Welcome", "normal 1-4"], ["normal 5-8"], ["normal 9-12", "Drained"]]
    assert max(ben.link.sizes) < GatewayLimits().frame_bytes / 2


def test_gaps_are_served_in_their_place() -> None:
    town = a_town()
    town.fold(PHONE, *(a_message(n, life_ms=1_000 if n in {2, 3, 5} else 0) for n in range(1, 7)))
    town.wait(2_100)
    ben = greeted(town)
    items = ben.take()
    start = town.clock - town.pace + 1_000
    e = {n: as_entry(a_message(n), at) for n, at in zip(range(1, 7), range(start, start + 6), strict=True)}
    assert items[1:] == [
        Entries(NORMAL, 1, (e[1],)),
        Gone(NORMAL, 2, 3, Reason.EXPIRED),
        Entries(NORMAL, 4, (e[4],)),
        Gone(NORMAL, 5, 5, Reason.EXPIRED),
        Entries(NORMAL, 6, (e[6],)),
        Drained(6, 0, 0),
    ]


def test_a_gap_uses_credit_until_it_is_acknowledged_like_an_entry() -> None:
    town = a_town(GatewayLimits(credit_entries=3))
    town.fold(PHONE, *(a_message(n, life_ms=1_000 if n <= 3 else 0) for n in range(1, 6)))
    town.wait(2_100)
    ben = greeted(town)
    assert ben.take()[1:] == [Gone(NORMAL, 1, 3, Reason.EXPIRED)]
    ben.ack(3)
    assert ben.numbers() == [4, 5]


# --- receipts ---------------------------------------------------------------------------------


def test_receipts_come_after_messages_and_before_queue_empty() -> None:
    town = a_town()
    town.write(3)
    town.fold(TABLET, Acked(NORMAL, 3), a_message(1, by=TABLET, to=PHONE))
    at = town.clock
    ada = town.stranger(PHONE)
    ada.hello()
    key = (PHONE, BEN, NORMAL, TABLET, State.DELIVERED, 0)
    assert ada.take()[1:] == [
        Entries(NORMAL, 1, (as_entry(a_message(1, by=TABLET, to=PHONE), at, TABLET),)),
        Receipts((Change(key, 1, at, Reason.NONE, [1, 3]),)),
        Drained(1, 0, 1),
    ]


def test_a_receipt_that_moves_on_comes_again_under_a_new_number() -> None:
    town = a_town()
    ada = town.connect(PHONE)
    town.write(4)
    for upto in (2, 4):
        town.fold(TABLET, Acked(NORMAL, upto))
        town.turn()
    key = (PHONE, BEN, NORMAL, TABLET, State.DELIVERED, 0)
    assert ada.take() == [
        Receipts((Change(key, 1, town.clock, Reason.NONE, [1, 2]),)),
        Receipts((Change(key, 2, town.clock, Reason.NONE, [1, 4]),)),
    ]
    ada.say(Ask(0, ChangesAcked(2)))
    town.turn()
    again = town.stranger(PHONE)
    again.hello(changes=0)
    assert [type(item).__name__ for item in again.take()] == ["Welcome", "Drained"]


def test_more_receipts_than_a_batch_come_in_several() -> None:
    town = a_town(GatewayLimits(batch_entries=2))
    town.fold(PHONE, *(a_message(n, life_ms=1_000) for n in range(1, 6)))
    town.wait(2_100)
    ada = town.stranger(PHONE)
    ada.hello()
    town.turn()
    found = [len(item.changes) for item in ada.link.take() if isinstance(item, Receipts)]
    assert found == [2, 2, 1]


# --- credit -----------------------------------------------------------------------------------


def test_a_device_that_never_acknowledges_gets_256_entries_and_no_more() -> None:
    town = a_town()
    ben = town.connect()
    for first in range(1, 1_001, 50):
        town.write(50, first=first)
    assert ben.numbers() == list(range(1, 257))
    town.wait(5_000)
    assert ben.numbers() == []


def test_a_device_that_never_acknowledges_gets_a_mebibyte_and_a_batch_and_no_more() -> None:
    town = a_town()
    ben = town.connect()
    town.write(200, bytes(16_384))
    handed = len(ben.numbers())
    limits = GatewayLimits()
    assert limits.credit_bytes <= handed * 16_384 <= limits.credit_bytes + limits.batch_bytes + 16_384
    ben.ack(handed)
    assert ben.numbers() == list(range(handed + 1, 2 * handed + 1))


def test_credit_comes_back_as_it_is_acknowledged() -> None:
    town = a_town(GatewayLimits(credit_entries=10))
    ben = town.connect()
    town.write(30)
    assert ben.numbers() == list(range(1, 11))
    ben.ack(4)
    assert ben.numbers() == list(range(11, 15))
    ben.ack(4)
    assert ben.numbers() == []


def test_nothing_is_read_for_a_device_that_does_not_read() -> None:
    town = a_town()
    ben = town.connect()
    ben.link.unsent_bytes = GatewayLimits().unsent_bytes + 1
    town.write(50)
    assert ben.take() == []
    ben.link.unsent_bytes = 0
    ben.session.wake()
    assert ben.numbers() == list(range(1, 51))


def test_a_window_that_one_device_has_used_up_is_nobody_elses() -> None:
    town = a_town(GatewayLimits(credit_entries=5))
    town.register("cy")
    ben = town.connect()
    ada = town.connect(PHONE)
    town.write(20)
    town.fold(TABLET, a_message(1, by=TABLET, to=PHONE))
    assert (ben.numbers(), ada.numbers()) == ([1, 2, 3, 4, 5], [1])


# --- offering again ---------------------------------------------------------------------------


def test_an_entry_is_offered_again_after_100_ms_and_after_500_more_then_the_device_counts_as_offline() -> None:
    town = a_town()
    ben = town.connect()
    seat = town.registry.find(TABLET, town.pace)
    town.write(3)
    assert ben.numbers() == [1, 2, 3]
    repeats: list[tuple[int, list[int]]] = []
    start = town.pace
    while town.pace < start + 3_000:
        town.wait(20)
        if numbers := ben.numbers():
            repeats.append((town.pace - start, numbers))
    assert repeats == [(100, [1]), (600, [1])]
    assert (seat is not None, town.registry.find(TABLET, town.pace)) == (True, None)
    assert (ben.link.closed, town.gateway.counters.suspected, town.gateway.counters.repeated) == (None, 1, 2)


def test_a_late_ack_restores_the_device() -> None:
    town = a_town()
    ben = town.connect()
    town.write(3)
    town.wait(3_000)
    assert town.registry.find(TABLET, town.pace) is None
    ben.ack(3)
    ben.take()
    assert town.registry.find(TABLET, town.pace) == ben.session.seat
    town.write(1, first=4)
    assert ben.numbers() == [4]
    town.wait(200)
    assert ben.numbers() == [4]


def test_a_late_ack_of_a_part_starts_the_clock_anew_for_the_rest() -> None:
    town = a_town()
    ben = town.connect()
    for n in (1, 2, 3):
        town.write(1, first=n)
        town.turn()
    town.wait(3_000)
    ben.link.take()
    ben.ack(1)
    town.turn()
    town.wait(80)
    assert ben.numbers() == []
    town.wait(60)
    assert ben.numbers() == [2]
    assert town.gateway.counters.suspected == 1


def test_nothing_is_repeated_while_the_first_offer_is_still_on_its_way() -> None:
    town = a_town()
    ben = town.connect()
    town.write(3)
    ben.take()
    ben.link.is_stalled = True
    town.wait(560)
    assert (ben.numbers(), town.gateway.counters.repeated) == ([], 0)
    ben.link.is_stalled = False
    town.wait(60)
    assert ben.numbers() == [1]


def test_a_line_that_takes_nothing_any_more_counts_as_offline_without_a_repeat() -> None:
    town = a_town()
    ben = town.connect()
    town.write(3)
    ben.take()
    ben.link.is_stalled = True
    town.wait(5_000)
    assert (ben.numbers(), town.gateway.counters.suspected, town.gateway.counters.repeated) == ([], 1, 0)


def test_only_the_oldest_entry_is_repeated_and_of_the_high_lane_first() -> None:
    town = a_town()
    town.write(3)
    town.write(3, lane=HIGH)
    ben = town.connect()
    town.wait(120)
    assert [(item.lane, item.first, len(item.entries)) for item in ben.take() if isinstance(item, Entries)] == [
        (HIGH, 1, 1)
    ]


def test_the_clock_does_not_run_while_the_device_catches_up() -> None:
    town = a_town(GatewayLimits(credit_entries=10))
    town.write(25)
    ben = town.connect()
    town.wait(5_000)
    assert (ben.numbers(), town.gateway.counters.suspected) == ([], 0)


def test_the_clock_begins_when_the_device_has_caught_up() -> None:
    town = a_town(GatewayLimits(credit_entries=10))
    town.write(15)
    ben = town.connect()
    town.wait(5_000)
    ben.ack(5)
    assert ben.numbers() == [11, 12, 13, 14, 15]
    town.wait(80)
    assert ben.numbers() == []


def test_the_clock_does_not_run_while_the_window_is_closed_and_begins_when_it_opens() -> None:
    town = a_town(GatewayLimits(credit_entries=2))
    ben = town.connect()
    town.write(2)
    ben.take()
    town.wait(5_000)
    assert (ben.numbers(), town.gateway.counters.suspected) == ([], 0)
    ben.ack(1)
    town.wait(80)
    assert ben.numbers() == []
    town.wait(60)
    assert ben.numbers() == [2]


def test_a_device_that_reads_and_acknowledges_is_never_repeated_to() -> None:
    town = a_town()
    ben = town.connect()
    for n in range(1, 51):
        town.write(1, first=n)
        assert ben.numbers() == [n]
        town.wait(80)
        ben.ack(n)
    town.wait(2_000)
    assert (town.gateway.counters.repeated, town.gateway.counters.suspected) == (0, 0)


# --- a slow line ------------------------------------------------------------------------------


class SlowLine:
    """Ben's phone behind a line that takes `ms` each way, and acknowledges whatever arrives."""

    def __init__(self, town: Town, ms: int) -> None:
        self.town, self.ms = town, ms
        self.ben = town.stranger()
        self.held = False
        """Nothing gets through, in either direction; what is sent meanwhile comes later."""
        self.got: list[int] = []
        self._to_phone: deque[tuple[int, list[FromServer]]] = deque()
        self._to_server: deque[tuple[int, int]] = deque()
        self.ben.link.on_frame = lambda items: self._to_phone.append((town.pace + self.ms, items))
        town.wait(2 * ms)
        self.ben.hello()

    def wait(self, ms: int, jitter: Callable[[], int] = lambda: 0) -> None:
        town, end = self.town, self.town.pace + ms
        while town.pace < end:
            town.wait(20)
            # Sent, and not confirmed by the other side's machine.
            self.ben.link.is_stalled = any(town.pace < at + self.ms for at, _ in self._to_phone)
            while not self.held and self._to_phone and self._to_phone[0][0] <= town.pace:
                _, items = self._to_phone.popleft()
                if numbers := numbers_of(items):
                    self.got += numbers
                    self._to_server.append((town.pace + self.ms + jitter(), numbers[-1]))
            while not self.held and self._to_server and self._to_server[0][0] <= town.pace:
                self.ben.ack(self._to_server.popleft()[1])


def test_on_a_line_of_400_ms_nothing_is_repeated_and_the_device_is_never_suspected() -> None:
    town = a_town()
    line = SlowLine(town, 200)
    for n in range(1, 101):
        town.write(1, first=n)
        line.wait(60)
    line.wait(2_000)
    assert line.got == list(range(1, 101))
    assert (town.gateway.counters.repeated, town.gateway.counters.suspected) == (0, 0)


@pytest.mark.parametrize("jitter_ms", [0, 20, 60, 80])
@pytest.mark.parametrize("every_ms", [60, 1_000])
def test_a_line_whose_delay_changes_by_less_than_the_shortest_wait_is_not_taken_for_a_stall(
    jitter_ms: int, every_ms: int
) -> None:
    town = a_town()
    line = SlowLine(town, 200)
    for n in range(1, 101):
        town.write(1, first=n)
        # Long the same, then for once late: the mean deviation has shrunk by then.
        line.wait(every_ms, lambda n=n: jitter_ms if n % 20 == 0 else 0)
    line.wait(3_000)
    assert line.got == list(range(1, 101))
    assert (town.gateway.counters.repeated, town.gateway.counters.suspected) == (0, 0)


def test_a_line_that_becomes_slow_is_known_as_slow_after_a_few_repeats() -> None:
    town = a_town()
    line = SlowLine(town, 20)
    for n in range(1, 51):
        if n == 11:
            line.ms = 300
        town.write(1, first=n)
        line.wait(2_000)
    assert (town.gateway.counters.repeated <= 5, town.gateway.counters.suspected) == (True, 0)


def test_each_stall_of_a_slow_line_repeats_one_entry_at_most_and_the_device_comes_back_once() -> None:
    town = a_town()
    line = SlowLine(town, 200)
    n = 0
    for _ in range(5):
        line.held = True
        for _ in range(10):
            n += 1
            town.write(1, first=n)
            line.wait(60)
        line.wait(5_000)
        line.held = False
        line.wait(3_000)
    repeated = len(line.got) - len(set(line.got))
    assert sorted(set(line.got)) == list(range(1, n + 1))
    assert (repeated <= 5, town.gateway.counters.suspected <= 5) == (True, True)
    assert town.registry.find(TABLET, town.pace) == line.ben.session.seat


# --- pressure ---------------------------------------------------------------------------------


def test_under_pressure_what_waits_is_handed_out_at_a_hundred_per_second() -> None:
    town = a_town()
    town.write(500)
    town.gateway.press(1_000, 0)
    ben = greeted(town)
    counts: list[int] = []
    for _ in range(6):
        got = ben.numbers()
        counts.append(len(got))
        if got:
            ben.ack(got[-1])
        town.wait(1_000)
    assert sum(counts) == 500
    assert max(counts) <= 102
    assert ben.numbers() == []


def test_a_few_entries_do_not_wait_for_a_whole_batch_of_pace() -> None:
    town = a_town()
    town.write(5)
    town.gateway.press(1_000, 0)
    ben = greeted(town)
    assert [_shape(item) for item in ben.take()] == ["Welcome", "normal 1-5", "Drained"]


def test_under_pressure_live_traffic_goes_on_as_ever() -> None:
    town = a_town()
    ben = town.connect()
    town.gateway.press(0, 1_000)
    for n in range(1, 301):
        town.write(1, first=n)
        assert ben.numbers() == [n]
        ben.ack(n)


def test_when_the_pressure_ends_so_does_the_pace() -> None:
    town = a_town()
    town.write(250)
    town.gateway.press(1_000, 0)
    ben = greeted(town)
    assert len(ben.numbers()) == 100
    town.gateway.press(0, 0)
    town.wait(20)
    assert len(ben.numbers()) == 150


# --- rows that are not in memory --------------------------------------------------------------


def restarted(town: Town, limits: GatewayLimits | None = None) -> Town:
    """Everything is saved, and another process has nothing of it in memory."""
    town.loop.save(at_once=True)
    return Town(limits, log=town.log, rows=town.rows)


def test_what_must_be_read_first_comes_when_it_is_read() -> None:
    town = a_town()
    town.write(3)
    town.write(2, lane=HIGH)
    again = restarted(town)
    again.rows.holds_loads = True
    ben = greeted(again)
    for _ in range(20):
        again.turn()
        if again.rows.loads:
            again.rows.answer_load()
    assert [_shape(item) for item in ben.take()] == ["Welcome", "high 1-2", "normal 1-3", "Drained"]


def test_queue_empty_waits_for_what_is_still_being_read() -> None:
    town = a_town()
    town.write(3)
    again = restarted(town)
    ben = greeted(again)
    again.rows.holds_loads = True
    again.turn()
    seen = ben.link.take()
    while again.rows.loads:
        assert not any(isinstance(item, Drained) for item in seen)
        again.rows.answer_load()
        again.turn()
        seen += ben.link.take()
    assert (numbers_of(seen), seen[-1]) == ([1, 2, 3], Drained(3, 0, 0))


def test_a_read_that_failed_is_asked_again() -> None:
    town = a_town()
    town.write(3)
    again = restarted(town)
    ben = greeted(again)
    again.rows.holds_loads = True
    again.turn()
    again.rows.answer_load(Failed("a cable was pulled"))
    assert ben.numbers() == []
    again.rows.holds_loads = False
    got: list[int] = []
    while not got and again.pace < 3 * ASK_AGAIN_MS:
        again.wait(20)
        got = ben.numbers()
    assert got == [1, 2, 3]


class SlowDesk:
    """A `Desk` whose answers about mailboxes come when a test says so, or never."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.holds = False
        self.held: deque[Callable[[], None]] = deque()
        self.open_line, self.close_line, self.submit = desk.open_line, desk.close_line, desk.submit

    def _later(self, call: Callable[[], None]) -> None:
        if self.holds:
            self.held.append(call)
        else:
            call()

    def answer(self) -> None:
        self.held.popleft()()

    def offer(
        self, device: int, lane: Lane, after: int, limit: int, limit_bytes: int,
        then: Callable[[Sequence[Offered], bool], None],
    ) -> None:  # fmt: skip
        self._later(lambda: self._desk.offer(device, lane, after, limit, limit_bytes, then))

    def changes(self, device: int, after: int, limit: int, then: Callable[[Sequence[Change]], None]) -> None:
        self._later(lambda: self._desk.changes(device, after, limit, then))

    def account(self, account: int, then: Callable[[Account | None], None]) -> None:
        self._later(lambda: self._desk.account(account, then))

    def trace(self, message_id: str, then: Callable[[Trace | None], None]) -> None:
        self._desk.trace(message_id, then)


def a_slow_town(limits: GatewayLimits | None = None) -> tuple[Town, SlowDesk]:
    desks: list[SlowDesk] = []

    def wrap(desk: Desk) -> Desk:
        desks.append(SlowDesk(desk))
        return desks[0]

    town = Town(limits, wrap=wrap)
    town.register("ada", "ben")
    return town, desks[0]


def test_while_one_answer_is_awaited_nothing_else_is_asked_for() -> None:
    town, desk = a_slow_town()
    ben = town.connect()
    desk.holds = True
    for n in range(1, 6):
        town.write(1, first=n, lane=HIGH)
        town.write(1, first=n)
        town.turn()
    assert (ben.take(), len(desk.held)) == ([], 1)
    while desk.held:
        desk.answer()
        town.turn()
    assert [_shape(item) for item in ben.take()] == ["high 1-5", "normal 1-5"]


def test_a_repeat_whose_entry_was_acknowledged_meanwhile_brings_nothing_ahead_of_its_turn() -> None:
    town, desk = a_slow_town(GatewayLimits(credit_entries=2))
    ben = town.connect()
    town.write(1)
    assert ben.numbers() == [1]
    desk.holds = True
    town.wait(120)
    assert len(desk.held) == 1
    ben.ack(1)
    town.turn()
    town.write(1, first=2)
    while desk.held:
        desk.answer()
        town.turn()
    assert ben.numbers() == [2]


def test_a_receipt_that_changes_while_it_waits_to_go_out_keeps_its_number() -> None:
    town, desk = a_slow_town()
    ada = town.connect(PHONE)
    town.write(2)
    desk.holds = True
    town.fold(TABLET, Acked(NORMAL, 1))
    town.turn()
    desk.answer()
    town.fold(TABLET, Acked(NORMAL, 2))
    while town.turn_once() or desk.held:
        if desk.held:
            desk.answer()
    got = [change for item in ada.link.take() if isinstance(item, Receipts) for change in item.changes]
    assert [(change.seq, change.numbers) for change in got] == [(1, [1, 1]), (2, [1, 2])]


def test_an_answer_that_comes_after_the_connection_is_gone_changes_nothing() -> None:
    town, desk = a_slow_town()
    town.write(3)
    ben = town.stranger()
    ben.hello(token=token_of(TABLET))
    desk.holds = True
    town.turn()
    desk.answer()
    town.turn()
    ben.link.take()
    ben.session.lost()
    while desk.held:
        desk.answer()
    town.turn()
    assert (ben.link.frames, town.gateway.connections) == ([], 0)


def test_other_words_go_out_while_the_mailbox_is_being_read() -> None:
    town, desk = a_slow_town()
    ben = town.connect()
    desk.holds = True
    town.write(1)
    ben.say(Ping(3), Ask(9, Acked(NORMAL, 5)))
    said = ben.take()
    assert {type(item) for item in said if not isinstance(item, Answered)} == {type(said[0])}
    assert numbers_of(said) == []
    assert len(said) == 2


def test_desks_are_told_apart_by_line_not_by_ref() -> None:
    town = a_town()
    said: list[tuple[int, Said]] = []
    line = town.desk.open_line(lambda ref, what: said.append((ref, what)))
    ada = town.connect(PHONE)
    town.desk.submit([Record(PHONE, line << 24 | 1, a_message(1))])
    ada.say(Ask(1, a_message(2)))
    town.turn()
    assert ([ref for ref, _ in said], len(ada.link.take())) == ([1], 1)
