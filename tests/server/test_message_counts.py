"""Counting lines of the delivery log, and following messages to their acknowledgement."""

from __future__ import annotations

from msgspec import structs

from nightmail.core.state import ShardState
from nightmail.model.ids import account_id, device_id, shard_of
from nightmail.model.notes import ConnectionChanged, Note, Placed, Taken
from nightmail.model.rows import Mailbox
from nightmail.model.words import Lane
from nightmail.server.message_counts import AT_ONCE, FOLLOWED, WAIT_MS, MessageCounts

ADA, BOB = device_id(account_id("ada"), 1), device_id(account_id("bob"), 1)
NORMAL = Lane.NORMAL


def placed(at: int, seq: int, *, copy: bool = False, blocked: bool = False) -> Placed:
    return Placed(at, ADA, account_id("bob"), NORMAL, seq, f"{ADA:x}:1:1:x", None, copy, blocked, ((BOB, seq),))


def a_state(*notes: Note) -> ShardState:
    state = ShardState()
    state.mailboxes[BOB] = Mailbox()
    state.notes.extend(notes)
    return state


def ack(state: ShardState, at: int, upto: int) -> None:
    mailbox = state.mailboxes.there(BOB)
    low = mailbox.lanes[NORMAL].acked + 1
    mailbox.lanes[NORMAL].acked = upto
    state.notes.append(Taken(at, BOB, NORMAL, low, upto, ()))


def test_each_line_is_counted_once() -> None:
    counts, state = (
        MessageCounts(lambda _: False),
        a_state(placed(1, 1), placed(1, 2, copy=True), placed(2, 0), placed(3, 0, blocked=True)),
    )
    counts.look(state, 0)
    counts.look(state, 0)
    assert (counts.accepted, counts.blocked, counts.filed) == (3, 1, 2)


def test_after_a_checkpoint_it_begins_at_the_first_line() -> None:
    counts, state = MessageCounts(lambda _: False), a_state(placed(1, 1), placed(1, 2))
    counts.look(state, 0)
    state.notes.clear()
    counts.skip(state)
    state.notes.extend([placed(2, 3)] * 5)
    counts.look(state, 0)
    assert counts.accepted == 7


def test_a_message_is_followed_to_its_acknowledgement() -> None:
    counts, state = MessageCounts(lambda _: True), a_state(placed(1_000, 1))
    counts.look(state, 0)
    ack(state, 1_030, 1)
    counts.look(state, 40)
    assert (counts.latency.count, counts.latency.total) == (1, 30)


def test_what_is_acknowledged_before_the_first_look_counts_too() -> None:
    counts, state = MessageCounts(lambda _: True), a_state(placed(1_000, 1))
    ack(state, 1_004, 1)
    counts.look(state, 0)
    assert (counts.latency.count, counts.latency.total) == (1, 4)


def test_every_delivery_to_a_connected_device_is_measured_and_none_to_one_that_is_away() -> None:
    for online, measured in ((True, 40), (False, 0)):
        counts, state = MessageCounts(lambda _, online=online: online), a_state()
        for n in range(1, 41):
            state.notes.append(placed(1_000 + n, n))
            counts.look(state, n)
        ack(state, 1_050, 40)
        counts.look(state, 50)
        total = sum(1_050 - 1_000 - n for n in range(1, 41)) if online else 0
        assert (counts.latency.count, counts.latency.total) == (measured, total)


def test_a_message_to_several_devices_is_measured_at_each() -> None:
    other = device_id(account_id("bob"), 2)
    state = a_state(structs.replace(placed(1_000, 1), places=((BOB, 1), (other, 1))))
    state.mailboxes[other] = Mailbox()
    counts = MessageCounts(lambda _: True)
    counts.look(state, 0)
    for device, at in ((BOB, 1_010), (other, 1_300)):
        state.mailboxes.there(device).lanes[NORMAL].acked = 1
        state.notes.append(Taken(at, device, NORMAL, 1, 1, ()))
    counts.look(state, 1)
    assert (counts.latency.count, counts.latency.total) == (2, 310)


def test_of_very_many_deliveries_an_even_part_is_measured() -> None:
    many = 10 * AT_ONCE
    counts, state = MessageCounts(lambda _: True), a_state(*(placed(n, n) for n in range(1, many + 1)))
    ack(state, many, many)
    counts.look(state, 0)
    # The first of every ten.
    assert (counts.latency.count, counts.latency.total) == (AT_ONCE, sum(many - n for n in range(1, many, 10)))


def test_devices_that_never_acknowledge_are_not_remembered_without_end() -> None:
    counts, state = MessageCounts(lambda _: True), a_state()
    for n in range(1, FOLLOWED + 100):
        state.notes.append(placed(n, n))
        counts.look(state, 0)
    ack(state, 2_000, FOLLOWED + 99)
    counts.look(state, 0)
    assert counts.latency.count == FOLLOWED


def test_a_device_that_never_acknowledges_is_not_followed_for_ever() -> None:
    counts, state = MessageCounts(lambda _: True), a_state(placed(1_000, 1))
    counts.look(state, 0)
    state.notes.append(placed(1_010, 2))
    counts.look(state, WAIT_MS + 1)
    ack(state, 30_000, 1)
    counts.look(state, WAIT_MS + 2)
    assert counts.latency.count == 0


def test_lines_of_several_shards_are_counted_apart_and_a_shard_that_left_is_forgotten() -> None:
    counts, home = MessageCounts(None), shard_of(account_id("bob"), 4)
    here, other = ShardState(home, 4), ShardState((home + 1) % 4, 4)
    here.mailboxes[BOB] = Mailbox()
    counts.skip(here)
    here.notes.extend([ConnectionChanged(900, BOB, True), placed(1_000, 1)])
    other.notes.extend([placed(1_000, 7)])
    counts.skip(other)
    for state in (here, other):
        counts.look(state, 0)
    assert counts.accepted == 1
    ack(here, 1_030, 1)
    for state in (other, here):
        counts.look(state, 40)
    assert (counts.latency.count, counts.latency.total) == (1, 30)
    counts.forget(home, 4)
    counts.skip(here)
    here.notes.append(placed(2_000, 2))
    ack(here, 2_005, 2)
    counts.look(here, 80)
    assert (counts.accepted, counts.latency.count) == (2, 1)
