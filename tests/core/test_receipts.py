from __future__ import annotations

import pytest

from nightmail.model.answers import Accepted, Done
from nightmail.model.effects import ReceiptsGrew
from nightmail.model.ids import account_id, device_id
from nightmail.model.notes import Looked
from nightmail.model.records import Acked, Blocked, Closed, Read, ReceiptsAcked, ReceiptsSet, Record, Span, Unlinked
from nightmail.model.refusals import AckAboveHead, UnknownAccount, UnknownDevice
from nightmail.model.rows import PendingReceipt, PendingReceipts, ReceiptKey
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.world import START, Person, World

NORMAL, HIGH = Lane
DELIVERED, READ, FAILED = MessageState.DELIVERED, MessageState.READ, MessageState.FAILED


@pytest.fixture
def alice(world: World) -> Person:
    return world.join("alice")


@pytest.fixture
def bob(world: World) -> Person:
    return world.join("bob")


def write(world: World, by: int, to: Person, count: int = 1, lane: Lane = NORMAL) -> None:
    for _ in range(count):
        stream = world.stream(by, to)
        n = stream.lanes[lane].last + 1 if stream else 1
        assert isinstance(world.send(by, to, n, lane=lane), Accepted)


def about(by: int, to: Person, device: int, state: MessageState, n: int = 0, lane: Lane = NORMAL) -> ReceiptKey:
    return (by, to.account, lane, device, state, n)


def heard(world: World, device: int) -> list[tuple[MessageState, list[int]]]:
    return [(change.state, change.numbers) for change in world.receipts(device)]


# --- coalescing -------------------------------------------------------------------------------


def test_receipts_of_one_conversation_become_one_interval(world: World, alice: Person, bob: Person) -> None:
    for n in range(1, 6):
        write(world, alice[1], bob)
        world.do(bob[1], Acked(NORMAL, n))
    assert world.receipts(alice[1]) == [
        PendingReceipt(about(alice[1], bob, bob[1], DELIVERED), 5, START, Reason.NONE, [1, 5])
    ]


def test_numbers_that_nobody_acknowledged_stay_out_of_the_interval(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, 6)
    world.do(bob[1], Acked(NORMAL, 6, (2, 4, 5)))
    assert heard(world, alice[1])[0] == (DELIVERED, [1, 1, 3, 3, 6, 6])


def test_an_update_moves_its_receipt_behind_the_others(world: World, alice: Person, bob: Person) -> None:
    carol = world.join("carol")
    write(world, alice[1], bob, 2)
    write(world, alice[1], carol, 1)
    world.do(bob[1], Acked(NORMAL, 1))
    world.do(carol[1], Acked(NORMAL, 1))
    world.now += 40
    world.do(bob[1], Acked(NORMAL, 2))
    assert world.receipts(alice[1]) == [
        PendingReceipt(about(alice[1], carol, carol[1], DELIVERED), 2, START, Reason.NONE, [1, 1]),
        PendingReceipt(about(alice[1], bob, bob[1], DELIVERED), 3, START + 40, Reason.NONE, [1, 2]),
    ]


def test_lanes_devices_and_states_have_receipts_of_their_own(world: World, alice: Person) -> None:
    bob = world.join("bob", devices=2)
    write(world, alice[1], bob)
    write(world, alice[1], bob, lane=HIGH)
    for device in (bob[1], bob[2]):
        for lane in Lane:
            world.do(device, Acked(lane, 1))
    world.do(bob[1], Read(alice.account, (Span(alice[1], NORMAL, 1, 1),)))
    assert [change.key for change in world.receipts(alice[1])] == [
        about(alice[1], bob, bob[1], DELIVERED),
        about(alice[1], bob, bob[1], DELIVERED, lane=HIGH),
        about(alice[1], bob, bob[2], DELIVERED),
        about(alice[1], bob, bob[2], DELIVERED, lane=HIGH),
        about(alice[1], bob, bob[1], READ),
    ]


def test_failures_stand_alone(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, 3)
    world.do(bob[1], Acked(NORMAL, 3, (1, 2, 3)))
    assert world.receipts(alice[1]) == [
        PendingReceipt(about(alice[1], bob, bob[1], FAILED, n), n, START, Reason.UNDECRYPTABLE, [n, n])
        for n in (1, 2, 3)
    ]


def test_beyond_a_bound_failures_share_an_interval_and_each_number_is_told_once_with_its_reason(
    world: World, bob: Person
) -> None:
    world.limit(failures_alone=4, mailbox_entries=5)
    anna = world.join("anna", devices=2)
    write(world, anna[1], bob, 5)
    world.do(bob[1], Acked(NORMAL, 5, (1, 2, 4, 5)))  # and 3 is delivered
    alone = [about(anna[1], bob, bob[1], FAILED, n) for n in (1, 2, 4)]
    shared = about(anna[1], bob, bob[1], FAILED, -Reason.UNDECRYPTABLE)
    assert {c.key: c.numbers for c in world.receipts(anna[2])} == {
        about(anna[1], bob, bob[1], DELIVERED): [3, 3],
        **{key: [key[5], key[5]] for key in alone},
        shared: [5, 5],
    }
    write(world, anna[1], bob, 3)
    world.do(bob[1], Acked(NORMAL, 7, (6, 7)))
    world.do(bob[1], Unlinked(bob[1]))
    removed = about(anna[1], bob, bob[1], FAILED, -Reason.DEVICE_REMOVED)
    told = world.receipts(anna[2])
    assert [(c.key, c.seq, c.reason, c.numbers) for c in told[-2:]] == [
        (shared, 6, Reason.UNDECRYPTABLE, [5, 7]),
        (removed, 7, Reason.DEVICE_REMOVED, [8, 8]),
    ]
    world.do(anna[2], ReceiptsAcked(6))
    assert [c.key for c in world.receipts(anna[2])] == [removed]


def test_a_device_that_heard_them_gets_failures_alone_again(world: World, alice: Person, bob: Person) -> None:
    world.limit(failures_alone=1)
    write(world, alice[1], bob, 4)
    world.do(bob[1], Acked(NORMAL, 3, (1, 2, 3)))
    assert heard(world, alice[1]) == [(FAILED, [1, 1]), (FAILED, [2, 3])]
    world.do(alice[1], ReceiptsAcked(2))
    world.do(bob[1], Acked(NORMAL, 4, (4,)))
    assert [change.key for change in world.receipts(alice[1])] == [about(alice[1], bob, bob[1], FAILED, 4)]


def test_the_number_of_receipts_does_not_grow_with_the_number_of_messages(
    world: World, alice: Person, bob: Person
) -> None:
    for n in range(1, 101):
        write(world, alice[1], bob)
        world.do(bob[1], Acked(NORMAL, n))
        world.do(bob[1], Read(alice.account, (Span(alice[1], NORMAL, n, n),)))
    assert heard(world, alice[1]) == [(DELIVERED, [1, 100]), (READ, [1, 100])]


def test_every_device_of_the_sender_hears(world: World, bob: Person) -> None:
    anna = world.join("anna", devices=3)
    world.link(anna, listed=False)
    write(world, anna[1], bob)
    world.do(bob[1], Acked(NORMAL, 1))
    assert world.effects == [ReceiptsGrew(anna[index]) for index in (1, 2, 3, 4)]
    for index in (1, 2, 3, 4):
        assert world.receipts(anna[index]) == [
            PendingReceipt(about(anna[1], bob, bob[1], DELIVERED), 1, START, Reason.NONE, [1, 1])
        ]


def test_the_other_devices_still_hear_of_what_a_removed_device_had_sent(world: World, bob: Person) -> None:
    anna = world.join("anna", devices=2)
    write(world, anna[2], bob)
    world.do(anna[1], Unlinked(anna[2]))
    world.do(bob[1], Acked(NORMAL, 1))
    assert world.receipts(anna[1])[-1] == PendingReceipt(
        about(anna[2], bob, bob[1], DELIVERED), 1, START, Reason.NONE, [1, 1]
    )  # fmt: skip


def test_receipts_for_an_account_that_closed_go_nowhere(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.do(alice[1], Closed(alice.account))
    world.do(bob[1], Acked(NORMAL, 1))
    assert world.effects == []
    assert world.changes(alice[1]) is None


# --- handing out and acknowledging ------------------------------------------------------------


def test_receipts_are_handed_out_oldest_first_behind_a_cursor(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, 4)
    world.do(bob[1], Acked(NORMAL, 4, (1, 2, 3, 4)))
    assert [change.seq for change in world.receipts(alice[1], after=1)] == [2, 3, 4]
    assert [change.seq for change in world.receipts(alice[1], after=1, limit=2)] == [2, 3]
    assert world.receipts(alice[1], after=4) == []
    assert world.receipts(bob[1]) == []


def test_acknowledged_receipts_are_gone(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, 4)
    world.do(bob[1], Acked(NORMAL, 4, (1, 2, 3, 4)))
    assert world.do(alice[1], ReceiptsAcked(3)) == Done()
    assert [change.seq for change in world.receipts(alice[1])] == [4]
    assert world.do(alice[1], ReceiptsAcked(4)) == Done()
    assert world.changes(alice[1]) == PendingReceipts(head=4)


def test_a_receipt_that_moved_on_outlives_the_ack_of_its_former_self(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, 2)
    world.do(bob[1], Acked(NORMAL, 1))
    (offered,) = world.receipts(alice[1])
    seq = offered.seq
    world.do(bob[1], Acked(NORMAL, 2))
    world.do(alice[1], ReceiptsAcked(seq))
    assert heard(world, alice[1]) == [(DELIVERED, [1, 2])]


def test_numbers_keep_growing_after_everything_was_acknowledged(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, 2)
    world.do(bob[1], Acked(NORMAL, 1))
    world.do(alice[1], ReceiptsAcked(1))
    world.do(bob[1], Acked(NORMAL, 2))
    assert world.receipts(alice[1]) == [
        PendingReceipt(about(alice[1], bob, bob[1], DELIVERED), 2, START, Reason.NONE, [2, 2])
    ]


@pytest.mark.parametrize("upto", [1, 0])
def test_a_repeated_or_late_ack_of_receipts_is_answered_and_changes_nothing(
    world: World, alice: Person, bob: Person, upto: int
) -> None:
    write(world, alice[1], bob, 2)
    world.do(bob[1], Acked(NORMAL, 2, (1, 2)))
    world.do(alice[1], ReceiptsAcked(1))
    before = world.changes(alice[1])
    assert world.do(alice[1], ReceiptsAcked(upto)) == Done()
    assert world.effects == []
    assert world.changes(alice[1]) == before


def test_an_ack_of_receipts_that_asks_for_no_answer_gets_none(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.do(bob[1], Acked(NORMAL, 1))
    acked = ReceiptsAcked(1)
    assert world.fold(world.home(alice[1], acked), Record(alice[1], 0, acked)) == []
    assert world.receipts(alice[1]) == []


def test_an_ack_of_receipts_that_never_were_is_refused(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.do(bob[1], Acked(NORMAL, 1))
    assert world.do(alice[1], ReceiptsAcked(2)) == AckAboveHead(1)
    assert heard(world, alice[1]) == [(DELIVERED, [1, 1])]


def test_a_device_without_receipts_may_acknowledge_none_of_them(world: World, alice: Person) -> None:
    assert world.do(alice[1], ReceiptsAcked(0)) == Done()
    assert world.do(alice[1], ReceiptsAcked(1)) == AckAboveHead(0)
    assert world.changes(alice[1]) is None


def test_a_device_that_is_no_more_cannot_acknowledge_receipts(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.do(bob[1], Acked(NORMAL, 1))
    world.do(alice[1], Unlinked(alice[1]))
    for upto in (0, 1):
        assert world.do(alice[1], ReceiptsAcked(upto)) == UnknownDevice(alice[1])


# --- reading ----------------------------------------------------------------------------------


def test_the_sender_hears_what_was_read(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, 3)
    world.now += 9
    read = Read(alice.account, (Span(alice[1], NORMAL, 1, 2),))
    assert world.do(bob[1], read) == Done()
    assert world.effects == [ReceiptsGrew(alice[1])]
    assert world.receipts(alice[1]) == [
        PendingReceipt(about(alice[1], bob, bob[1], READ), 1, START + 9, Reason.NONE, [1, 2])
    ]  # fmt: skip
    assert world.notes(bob)[-1] == Looked(START + 9, bob[1], alice[1], NORMAL, 1, 2)


def test_one_read_mark_covers_all_devices_of_the_peer(world: World, bob: Person) -> None:
    anna = world.join("anna", devices=2)
    write(world, anna[1], bob, 2)
    write(world, anna[2], bob, 1)
    world.do(bob[1], Read(anna.account, (Span(anna[1], NORMAL, 1, 2), Span(anna[2], NORMAL, 1, 1))))
    for index in (1, 2):
        assert [change.key for change in world.receipts(anna[index])] == [
            about(anna[1], bob, bob[1], READ),
            about(anna[2], bob, bob[1], READ),
        ]


def test_a_read_mark_is_one_receipt_per_author_and_lane_whatever_it_lists(world: World, bob: Person) -> None:
    anna = world.join("anna", devices=2)
    write(world, anna[1], bob, 9)
    write(world, anna[2], bob, 1)
    listed = [(5, 6), (1, 2), (1, 2), (2, 3), (8, 99), (9, 9)]
    spans = (*(Span(anna[1], NORMAL, low, high) for low, high in listed), *(Span(anna[2], NORMAL, 1, 1),) * 3)
    world.do(bob[1], Read(anna.account, spans))
    assert [(change.seq, change.key[0], change.numbers) for change in world.receipts(anna[2])] == [
        (1, anna[1], [1, 3, 5, 6, 8, 9]),
        (2, anna[2], [1, 1]),
    ]
    assert [note for note in world.notes(bob) if isinstance(note, Looked)] == [
        *(Looked(START, bob[1], anna[1], NORMAL, low, high) for low, high in ((1, 3), (5, 6), (8, 9))),
        Looked(START, bob[1], anna[2], NORMAL, 1, 1),
    ]


def test_a_repeated_read_mark_is_told_again_under_the_next_number_and_the_newer_time(
    world: World, alice: Person, bob: Person
) -> None:
    write(world, alice[1], bob, 2)
    read = Read(alice.account, (Span(alice[1], NORMAL, 1, 2),))
    key = about(alice[1], bob, bob[1], READ)
    for seq, acknowledged in ((1, False), (2, True), (3, False)):
        world.now = START + seq
        assert world.do(bob[1], read) == Done()
        assert world.receipts(alice[1]) == [PendingReceipt(key, seq, START + seq, Reason.NONE, [1, 2])]
        if acknowledged:
            world.do(alice[1], ReceiptsAcked(seq))


def test_a_span_of_somebody_else_is_not_taken(world: World, alice: Person, bob: Person) -> None:
    carol = world.join("carol")
    write(world, carol[1], bob)
    world.do(bob[1], Read(alice.account, (Span(carol[1], NORMAL, 1, 1),)))
    assert (world.receipts(alice[1]), world.receipts(carol[1])) == ([], [])


def test_reading_ones_own_notes_tells_nobody(world: World) -> None:
    anna = world.join("anna", devices=2)
    write(world, anna[1], anna)
    world.do(anna[2], Read(anna.account, (Span(anna[1], NORMAL, 1, 1),)))
    assert world.effects == []


def test_who_keeps_reading_private_sends_no_read_receipts(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.do(bob[1], ReceiptsSet(bob.account, False))
    world.do(bob[1], Acked(NORMAL, 1))
    world.do(bob[1], Read(alice.account, (Span(alice[1], NORMAL, 1, 1),)))
    assert heard(world, alice[1]) == [(DELIVERED, [1, 1])]


def test_who_keeps_reading_private_sees_no_read_receipts_either(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.do(alice[1], ReceiptsSet(alice.account, False))
    world.do(bob[1], Acked(NORMAL, 1))
    world.do(bob[1], Read(alice.account, (Span(alice[1], NORMAL, 1, 1),)))
    assert heard(world, alice[1]) == [(DELIVERED, [1, 1])]


def test_read_receipts_can_be_switched_on_again(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, 2)
    world.do(bob[1], ReceiptsSet(bob.account, False))
    world.do(bob[1], Read(alice.account, (Span(alice[1], NORMAL, 1, 1),)))
    world.do(bob[1], ReceiptsSet(bob.account, True))
    world.do(bob[1], Read(alice.account, (Span(alice[1], NORMAL, 2, 2),)))
    assert heard(world, alice[1]) == [(READ, [2, 2])]


def test_a_blocked_peer_does_not_learn_what_was_read(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob)
    world.do(bob[1], Blocked(bob.account, alice.account, True))
    world.do(bob[1], Read(alice.account, (Span(alice[1], NORMAL, 1, 1),)))
    assert world.receipts(alice[1]) == []


def test_a_device_that_is_no_more_reads_nothing(world: World, alice: Person) -> None:
    bob = world.join("bob", devices=2)
    write(world, alice[1], bob)
    world.do(bob[1], Unlinked(bob[2]))
    before = heard(world, alice[1])
    read = Read(alice.account, (Span(alice[1], NORMAL, 1, 1),))
    assert world.do(bob[2], read) == UnknownAccount(bob.account)
    stranger = account_id("stranger")
    assert world.do(device_id(stranger, 1), read) == UnknownAccount(stranger)
    assert heard(world, alice[1]) == before
