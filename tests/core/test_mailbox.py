from __future__ import annotations

import msgspec
import pytest

from nightmail.core.mailbox import file, needs_offer, step_acked
from nightmail.core.state import ShardState
from nightmail.model.answers import Accepted, Done
from nightmail.model.effects import Grew, ReceiptsGrew
from nightmail.model.ids import account_id, device_id
from nightmail.model.notes import Taken
from nightmail.model.records import Acked, Record, Unlinked
from nightmail.model.refusals import AckAboveHead, UnknownDevice
from nightmail.model.rows import Entry, EntryRange, Gap, Kept, Mailbox, PendingReceipt, Queue, RowKey, queue_id
from nightmail.model.words import Kind, Lane, MessageState, Reason
from tests.core.world import START, Memory, Person, World, opened, sealed

NORMAL, HIGH = Lane
DELIVERED, FAILED = MessageState.DELIVERED, MessageState.FAILED


@pytest.fixture
def alice(world: World) -> Person:
    return world.join("alice")


@pytest.fixture
def bob(world: World) -> Person:
    return world.join("bob")


def write(world: World, by: int, to: Person, *texts: str, lane: Lane = NORMAL, life_ms: int = 0) -> None:
    for text in texts:
        stream = world.stream(by, to)
        n = stream.lanes[lane].last + 1 if stream else 1
        assert isinstance(world.send(by, to, n, lane=lane, text=text, life_ms=life_ms), Accepted)


def queue(world: World, device: int, lane: Lane = NORMAL) -> Queue:
    mailbox = world.mailbox(device)
    assert mailbox is not None
    return mailbox.lanes[lane]


def seqs(offered: list[tuple[int, Entry] | Gap]) -> list[int]:
    return [item.low if isinstance(item, Gap) else item[0] for item in offered]


# --- filing -----------------------------------------------------------------------------------


def test_each_lane_is_numbered_from_one_without_gaps(world: World, alice: Person, bob: Person) -> None:
    carol = world.join("carol")
    write(world, alice[1], bob, "a", "b")
    write(world, carol[1], bob, "c")
    write(world, alice[1], bob, "now", lane=HIGH)
    assert [(seq, opened(entry)) for seq, entry in world.offer(bob[1])] == [(1, "a"), (2, "b"), (3, "c")]  # type: ignore[misc]
    assert [(seq, opened(entry)) for seq, entry in world.offer(bob[1], HIGH)] == [(1, "now")]  # type: ignore[misc]
    assert queue(world, bob[1]) == Queue(head=3, acked=0, waiting=3)
    assert queue(world, bob[1], HIGH) == Queue(head=1, acked=0, waiting=1)


def test_the_bytes_that_wait_are_counted_in_and_out(world: World, alice: Person, bob: Person) -> None:
    def waiting() -> int:
        box = world.mailbox(bob[1])
        assert box is not None
        return box.bytes

    def size(*texts: str) -> int:
        return sum(len(sealed(bob[1], text).ciphertext) for text in texts)

    write(world, alice[1], bob, "one", "three", "x")
    write(world, alice[1], bob, "high", lane=HIGH)
    write(world, alice[1], bob, "soon over", life_ms=30_000)
    assert waiting() == size("one", "three", "x", "high", "soon over")
    world.do(bob[1], Acked(NORMAL, 1))
    assert waiting() == size("three", "x", "high", "soon over")
    world.wait(31_000)
    assert waiting() == size("three", "x", "high")
    world.do(bob[1], Acked(NORMAL, 4, (2,)))
    assert waiting() == size("high")
    world.do(bob[1], Acked(HIGH, 1))
    assert waiting() == 0


def test_what_was_filed_before_bytes_were_counted_never_counts_below_zero() -> None:
    before = msgspec.msgpack.decode(msgspec.msgpack.encode([[[3, 0, 3, []], [0, 0, 0, []]], 9]), type=Mailbox)
    assert before == Mailbox((Queue(3, 0, 3), Queue()), 9, 0)
    before.bytes += 4
    before.let_go(5, 1)
    assert before.bytes == 0


def test_a_number_is_never_given_twice_even_when_the_queue_was_empty(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, "a")
    world.do(bob[1], Acked(NORMAL, 1))
    write(world, alice[1], bob, "b")
    assert seqs(world.offer(bob[1])) == [2]


# --- handing out ------------------------------------------------------------------------------


def test_what_is_handed_out_starts_behind_what_the_device_has(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, *"abcde")
    assert seqs(world.offer(bob[1], after=2)) == [3, 4, 5]
    world.do(bob[1], Acked(NORMAL, 4))
    assert seqs(world.offer(bob[1], after=2)) == [5]
    assert world.offer(bob[1], after=5) == []
    assert world.offer(bob[1], after=99) == []


def test_a_batch_is_as_long_as_was_asked_for(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, *"abcde")
    assert seqs(world.offer(bob[1], limit=2)) == [1, 2]
    assert seqs(world.offer(bob[1], after=2, limit=2)) == [3, 4]
    assert seqs(world.offer(bob[1], after=4, limit=2)) == [5]


def test_handing_out_changes_nothing(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, "a")
    assert world.offer(bob[1]) == world.offer(bob[1])


def test_nothing_is_handed_out_to_a_device_that_is_no_more(world: World, alice: Person) -> None:
    bob = world.join("bob", devices=2)
    write(world, alice[1], bob, "a")
    world.do(bob[1], Unlinked(bob[2]))
    assert world.offer(bob[2]) == []


def test_a_gap_is_handed_out_in_its_place_so_that_nothing_is_waited_for(
    world: World, alice: Person, bob: Person
) -> None:
    write(world, alice[1], bob, "a")
    write(world, alice[1], bob, "b", "c", life_ms=30_000)
    write(world, alice[1], bob, "d")
    write(world, alice[1], bob, "e", life_ms=30_000)
    world.wait(31_000)
    assert world.texts(bob[1]) == ["a", "gap 2-3 expired", "d", "gap 5-5 expired"]
    assert world.offer(bob[1], after=2) == [Gap(3, 3, Reason.EXPIRED), *world.offer(bob[1], after=3)]
    # A gap counts as one step, however long it is: the device is told all of it at once.
    assert seqs(world.offer(bob[1], after=1, limit=1)) == [2]
    assert world.offer(bob[1], after=1, limit=1) == [Gap(2, 3, Reason.EXPIRED)]


def test_whatever_the_cursor_and_the_batch_size_the_numbers_have_no_holes(
    world: World, alice: Person, bob: Person
) -> None:
    for n in range(12):
        write(world, alice[1], bob, str(n), life_ms=30_000 if n in {0, 3, 4, 7, 11} else 0)
    world.wait(31_000)
    world.do(bob[1], Acked(NORMAL, 1))
    for limit in range(1, 14):
        for after in range(13):
            reach = max(after, 1)
            for item in world.offer(bob[1], after=after, limit=limit):
                low, high = (item.low, item.high) if isinstance(item, Gap) else (item[0], item[0])
                assert low == reach + 1
                reach = high
            assert reach >= min(12, max(after, 1) + limit)


def test_only_what_is_not_in_memory_is_asked_for() -> None:
    world = World(1, Memory.SAVES)
    alice, bob = world.join("alice"), world.join("bob")
    write(world, alice[1], bob, *"abcd")
    node, number = world.of(bob.account), queue_id(bob[1], NORMAL)
    state = node.state
    assert needs_offer(state, bob[1], NORMAL, 0, 100) == []
    for seq in (2, 3):
        del state.entries[number][seq]
    assert needs_offer(state, bob[1], NORMAL, 0, 1) == []
    assert needs_offer(state, bob[1], NORMAL, 0, 3) == [EntryRange(number, 2, 3)]
    assert needs_offer(state, bob[1], NORMAL, 3, 3) == []
    node.forget()
    assert needs_offer(node.state, bob[1], NORMAL, 0, 3) == [RowKey(Kept.MAILBOX, bob[1])]


# --- acknowledging ----------------------------------------------------------------------------


def test_an_ack_frees_what_it_covers_and_tells_the_sender(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, *"abc")
    world.now += 250
    assert world.do(bob[1], Acked(NORMAL, 2)) == Done()
    assert world.effects == [ReceiptsGrew(alice[1])]
    assert world.texts(bob[1]) == ["c"]
    assert queue(world, bob[1]) == Queue(head=3, acked=2, waiting=1)
    key = (alice[1], bob.account, NORMAL, bob[1], DELIVERED, 0)
    assert world.receipts(alice[1]) == [PendingReceipt(key, 1, START + 250, Reason.NONE, [1, 2])]
    assert world.notes(bob)[-1] == Taken(START + 250, bob[1], NORMAL, 1, 2, ())


def test_an_ack_that_nobody_waits_for_is_not_answered(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, "a")
    assert world.fold(world.of(bob.account), Record(bob[1], 0, Acked(NORMAL, 1))) == []
    assert world.texts(bob[1]) == []


def test_each_sender_hears_of_its_own_messages_only(world: World, alice: Person, bob: Person) -> None:
    carol = world.join("carol")
    write(world, alice[1], bob, "a")
    write(world, carol[1], bob, "b", "c")
    write(world, alice[1], bob, "d")
    world.do(bob[1], Acked(NORMAL, 4))
    assert [(change.key[0], change.numbers) for change in world.receipts(alice[1])] == [(alice[1], [1, 2])]
    assert [(change.key[0], change.numbers) for change in world.receipts(carol[1])] == [(carol[1], [1, 2])]


@pytest.mark.parametrize("upto", [3, 2, 1, 0])
def test_a_repeated_or_late_ack_says_nothing_new(world: World, alice: Person, bob: Person, upto: int) -> None:
    write(world, alice[1], bob, *"abcd")
    world.do(bob[1], Acked(NORMAL, 3))
    before = (world.mailbox(bob[1]), world.changes(alice[1]), world.notes(bob)[:])
    assert world.do(bob[1], Acked(NORMAL, upto, (1, 2, 3))) == Done()
    assert world.effects == []
    assert (world.mailbox(bob[1]), world.changes(alice[1]), world.notes(bob)) == before


def test_an_ack_above_the_head_is_refused_and_frees_nothing(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, "a", "b")
    assert world.do(bob[1], Acked(NORMAL, 3)) == AckAboveHead(2)
    assert world.do(bob[1], Acked(HIGH, 1)) == AckAboveHead(0)
    assert world.texts(bob[1]) == ["a", "b"]
    assert world.receipts(alice[1]) == []


def test_an_ack_of_one_lane_leaves_the_other_alone(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, "a", "b")
    write(world, alice[1], bob, "now", lane=HIGH)
    world.do(bob[1], Acked(HIGH, 1))
    assert (world.texts(bob[1], HIGH), world.texts(bob[1])) == ([], ["a", "b"])
    key = (alice[1], bob.account, HIGH, bob[1], DELIVERED, 0)
    assert world.receipts(alice[1]) == [PendingReceipt(key, 1, START, Reason.NONE, [1, 1])]


def test_what_a_device_could_not_open_has_failed_and_is_not_delivered(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, *"abcd")
    assert world.do(bob[1], Acked(NORMAL, 4, (2, 3))) == Done()
    delivered = (alice[1], bob.account, NORMAL, bob[1], DELIVERED, 0)
    second, third = ((alice[1], bob.account, NORMAL, bob[1], FAILED, n) for n in (2, 3))
    assert world.receipts(alice[1]) == [
        PendingReceipt(delivered, 1, START, Reason.NONE, [1, 1, 4, 4]),
        PendingReceipt(second, 2, START, Reason.UNDECRYPTABLE, [2, 2]),
        PendingReceipt(third, 3, START, Reason.UNDECRYPTABLE, [3, 3]),
    ]
    assert world.texts(bob[1]) == []
    assert world.notes(bob)[-1] == Taken(START, bob[1], NORMAL, 1, 4, (2, 3))


def test_unreadable_numbers_outside_of_the_ack_mean_nothing(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, *"abcd")
    world.do(bob[1], Acked(NORMAL, 1))
    world.do(bob[1], Acked(NORMAL, 2, (1, 3, 99)))
    assert [(change.state, change.numbers) for change in world.receipts(alice[1])] == [(DELIVERED, [1, 2])]
    world.do(bob[1], Acked(NORMAL, 4))
    assert [(change.state, change.numbers) for change in world.receipts(alice[1])] == [(DELIVERED, [1, 4])]


def test_an_ack_across_a_gap_tells_nothing_about_what_is_not_there(world: World, alice: Person, bob: Person) -> None:
    write(world, alice[1], bob, "a")
    write(world, alice[1], bob, "b", "c", life_ms=30_000)
    write(world, alice[1], bob, "d")
    world.wait(31_000)
    failed = world.receipts(alice[1])
    world.do(bob[1], Acked(NORMAL, 2))
    assert queue(world, bob[1]) == Queue(head=4, acked=2, waiting=1, gaps=[Gap(3, 3, Reason.EXPIRED)])
    world.do(bob[1], Acked(NORMAL, 4))
    assert queue(world, bob[1]) == Queue(head=4, acked=4, waiting=0)
    key = (alice[1], bob.account, NORMAL, bob[1], DELIVERED, 0)
    assert world.receipts(alice[1]) == [*failed, PendingReceipt(key, 4, START + 31_000, Reason.NONE, [1, 1, 4, 4])]


def test_an_acked_own_copy_never_changes_ticks(world: World, bob: Person) -> None:
    anna = world.join("anna", devices=2)
    write(world, anna[1], bob, "a")
    write(world, bob[1], anna, "b")
    world.do(anna[2], Acked(NORMAL, 2))
    assert world.receipts(anna[1]) == []
    key = (bob[1], anna.account, NORMAL, anna[2], DELIVERED, 0)
    assert world.receipts(bob[1]) == [PendingReceipt(key, 1, START, Reason.NONE, [1, 1])]


def test_an_unreadable_own_copy_is_told_to_the_device_that_sealed_it_and_to_no_other(world: World, bob: Person) -> None:
    anna = world.join("anna", devices=3)
    write(world, anna[1], bob, *"abc")
    world.do(anna[2], Acked(NORMAL, 3, (1, 3)))
    first, third = ((anna[1], bob.account, NORMAL, anna[2], FAILED, n) for n in (1, 3))
    assert world.receipts(anna[1]) == [
        PendingReceipt(first, 1, START, Reason.UNDECRYPTABLE, [1, 1]),
        PendingReceipt(third, 2, START, Reason.UNDECRYPTABLE, [3, 3]),
    ]
    assert [world.receipts(device) for device in (anna[2], anna[3], bob[1])] == [[], [], []]


def test_an_unreadable_note_to_oneself_is_told_to_the_device_that_wrote_it(world: World) -> None:
    anna = world.join("anna", devices=2)
    write(world, anna[1], anna, "a")
    world.do(anna[2], Acked(NORMAL, 1, (1,)))
    key = (anna[1], anna.account, NORMAL, anna[2], FAILED, 1)
    assert world.receipts(anna[1]) == [PendingReceipt(key, 1, START, Reason.UNDECRYPTABLE, [1, 1])]
    assert world.receipts(anna[2]) == []


def test_an_unreadable_own_copy_by_a_device_that_is_gone_is_told_to_nobody(world: World, bob: Person) -> None:
    anna = world.join("anna", devices=3)
    write(world, anna[2], bob, "a")
    world.do(anna[1], Unlinked(anna[2]))
    world.do(anna[3], Acked(NORMAL, 1, (1,)))
    assert (world.receipts(anna[1]), world.receipts(anna[3])) == ([], [])


def test_an_own_copy_that_ends_otherwise_is_told_to_nobody(world: World, bob: Person) -> None:
    anna = world.join("anna", devices=3)
    write(world, anna[1], bob, "a", life_ms=30_000)
    world.do(bob[1], Acked(NORMAL, 1))
    heard = world.receipts(anna[1])
    world.do(anna[1], Unlinked(anna[3]))
    world.wait(31_000)
    assert world.texts(anna[2]) == ["gap 1-1 expired"]
    assert world.receipts(anna[1]) == heard


def test_room_is_free_again_after_an_ack(world: World, alice: Person, bob: Person) -> None:
    world.limit(mailbox_entries=1)
    write(world, alice[1], bob, "a")
    world.do(bob[1], Acked(NORMAL, 1))
    world.send(alice[1], bob, 2, text="b")
    assert world.effects == [Grew(bob[1], NORMAL)]


def test_an_ack_of_a_device_that_never_was_is_refused(world: World, bob: Person) -> None:
    stranger = device_id(account_id("stranger"), 1)
    assert world.do(stranger, Acked(NORMAL, 1)) == UnknownDevice(stranger)
    other = device_id(bob.account, 7)
    assert world.do(other, Acked(NORMAL, 0)) == UnknownDevice(other)


def test_an_ack_takes_back_what_was_counted_towards_a_checkpoint() -> None:
    world = World(memory=Memory.KEEPS)
    alice, bob = world.join("alice"), world.join("bob")
    for n in (1, 2, 3):
        world.send(alice[1], bob, n)
    state = world.of(bob.account).state
    before = state.filed_bytes
    world.do(bob[1], Acked(NORMAL, 2))
    assert 0 < state.filed_bytes < before
    world.do(bob[1], Acked(NORMAL, 3))
    assert state.filed_bytes == 0


# --- entries that may wake their device -------------------------------------------------------


def waking(world: World, device: int) -> int:
    mailbox = world.mailbox(device)
    assert mailbox is not None
    return mailbox.waking


def test_a_mailbox_counts_the_entries_that_may_wake_its_device(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    for n, kind in enumerate((Kind.TEXT, Kind.CONTROL, Kind.MEDIA, Kind.CONTROL), 1):
        world.do(alice[1], msgspec.structs.replace(world.sent(alice[1], bob, n), kind=kind))
    assert waking(world, bob[1]) == 2
    for upto, left in ((1, 1), (2, 1), (4, 0)):
        world.do(bob[1], Acked(NORMAL, upto))
        assert waking(world, bob[1]) == left


def test_an_entry_that_expires_wakes_nobody_any_more(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.send(alice[1], bob, life_ms=60_000)
    world.send(alice[1], bob, 2)
    world.wait(61_000)
    assert waking(world, bob[1]) == 1


def test_what_was_filed_in_fold_1_is_not_counted_and_never_counts_below_zero() -> None:
    state = ShardState()
    box = Mailbox()
    state.mailboxes.put(8, box, 0)
    entry = Entry(16, 1, 1, "id", b"tag", Kind.TEXT, None, 5, 60_000, b"body")
    state.due_hours[0] = state.due[61] = None
    state.shard.now = 1_000
    file(state, 8, box, NORMAL, entry)
    assert box.waking == 0
    step_acked(state, 8, 0, Acked(NORMAL, 1))
    assert box.waking == 0
