"""Handing out what has to be read first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from nightmail.engine.desk import ASK_AGAIN_MS
from nightmail.engine.ports import Desk, Failed, Offered
from nightmail.gateway.limits import GatewayLimits
from nightmail.model.answers import Said
from nightmail.model.records import Acked, Record
from nightmail.model.rows import Account, PendingReceipt
from nightmail.model.traces import Trace
from nightmail.model.words import Lane
from nightmail.wire.items import Answered, Ask, Drained, Ping, Receipts
from tests.gateway.rig import (
    PHONE,
    TABLET,
    Town,
    a_message,
    a_town,
    greeted,
    numbers_of,
    shape,
    token_of,
)

NORMAL, HIGH = Lane.NORMAL, Lane.HIGH
T = TypeVar("T")


# --- rows that are not in memory ---------------------------------------------------------------


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
    assert [shape(item) for item in ben.take()] == ["Welcome", "high 1-2", "normal 1-3", "Drained"]


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
        self.note_connection, self.shards, self.submit_to = desk.note_connection, desk.shards, desk.submit_to
        self.relations, self.attend_group = desk.relations, desk.attend_group
        self.about_group, self.high_heads = desk.about_group, desk.high_heads
        self.push, self.push_platforms = desk.push, desk.push_platforms

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

    def receipts(self, device: int, after: int, limit: int, then: Callable[[Sequence[PendingReceipt]], None]) -> None:
        self._later(lambda: self._desk.receipts(device, after, limit, then))

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
    assert [shape(item) for item in ben.take()] == ["high 1-5", "normal 1-5"]


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
    got = [change for item in ada.link.take() if isinstance(item, Receipts) for change in item.receipts]
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
