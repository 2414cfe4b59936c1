"""The sender's own copies: the same stamp and number, on every other device."""

from __future__ import annotations

from nightmail.model.answers import Accepted
from nightmail.model.effects import Grew, ReceiptsGrew
from nightmail.model.notes import Placed
from nightmail.model.records import Acked, Closed
from nightmail.model.rows import Entry, PendingReceipt
from nightmail.model.words import Kind, Lane, MessageState, Reason
from tests.core.world import START, World, name_of, sealed, stamp, tag

NORMAL, HIGH = Lane


def test_own_copies_carry_the_same_stamp_and_number(world: World) -> None:
    alice, bob = world.join("alice", devices=3), world.join("bob")
    said = world.send(alice[1], bob, text="mine", seen=START + 500)
    assert world.effects == [Grew(bob[1], NORMAL), Grew(alice[2], NORMAL), Grew(alice[3], NORMAL)]
    for device in (alice[2], alice[3]):
        ((seq, entry),) = world.offer(device)  # pyright: ignore[reportGeneralTypeIssues]
        assert (seq, entry.at) == (1, stamp(said))
        assert entry == Entry(
            alice[1], bob.account, 1, name_of(alice[1], 1), tag("mine"), Kind.TEXT, None, START + 501, 0,
            f"{device}|mine".encode(),
        )  # fmt: skip
    assert world.texts(alice[1]) == []
    placed = Placed(
        START + 501, alice[1], bob.account, NORMAL, 1, name_of(alice[1], 1), None, True, False,
        ((alice[2], 1), (alice[3], 1)),
    )  # fmt: skip
    assert world.notes(alice)[-1] == placed


def test_a_retry_files_no_second_copy(world: World) -> None:
    alice, bob = world.join("alice", devices=2), world.join("bob")
    world.send(alice[1], bob)
    world.send(alice[1], bob)
    assert world.texts(alice[2]) == ["hello"]


def test_the_sending_device_alone_learns_which_own_device_got_no_copy(world: World) -> None:
    alice, bob = world.join("alice", devices=3), world.join("bob")
    world.send(alice[1], bob, own_envelopes=(sealed(alice[2]),))
    assert world.effects == [Grew(bob[1], NORMAL), Grew(alice[2], NORMAL), ReceiptsGrew(alice[1])]
    key = (alice[1], bob.account, NORMAL, alice[3], MessageState.FAILED, 1)
    assert world.receipts(alice[1]) == [PendingReceipt(key, 1, START, Reason.STALE_DEVICES, [1, 1])]
    assert (world.receipts(alice[2]), world.receipts(alice[3])) == ([], [])


def test_a_copy_sealed_for_a_former_key_is_a_copy_that_is_missing(world: World) -> None:
    alice, bob = world.join("alice", devices=2), world.join("bob")
    world.send(alice[1], bob, own_envelopes=(sealed(alice[2], registration=7),))
    key = (alice[1], bob.account, NORMAL, alice[2], MessageState.FAILED, 1)
    assert world.receipts(alice[1]) == [PendingReceipt(key, 1, START, Reason.STALE_DEVICES, [1, 1])]
    assert world.texts(alice[2]) == []


def test_a_copy_for_a_full_own_device_fails_alone(world: World) -> None:
    alice, bob = world.join("alice", devices=2), world.join("bob", devices=2)
    world.limit(mailbox_entries=1)
    world.send(alice[1], bob, 1)
    world.do(bob[1], Acked(NORMAL, 1))
    world.do(bob[2], Acked(NORMAL, 1))
    seen = world.changes(alice[1])
    assert seen is not None
    head = seen.head
    world.send(alice[1], bob, 2)
    key = (alice[1], bob.account, NORMAL, alice[2], MessageState.FAILED, 2)
    assert world.receipts(alice[1], after=head) == [PendingReceipt(key, head + 1, START, Reason.MAILBOX_FULL, [2, 2])]
    assert world.texts(alice[2]) == ["hello"]


def test_a_copy_for_a_device_of_somebody_else_goes_nowhere(world: World) -> None:
    alice, bob, carol = world.join("alice"), world.join("bob"), world.join("carol")
    world.send(alice[1], bob, own_envelopes=(sealed(carol[1]),))
    assert world.texts(carol[1]) == []


def test_a_message_sealed_again_does_not_say_that_other_copies_are_missing(world: World) -> None:
    alice, bob = world.join("alice", devices=3), world.join("bob")
    world.send(alice[1], bob, of="original", own_envelopes=(sealed(alice[3], "again"),))
    assert (world.texts(alice[2]), world.texts(alice[3])) == ([], ["again"])
    assert world.receipts(alice[1]) == []


def test_a_note_to_oneself_reaches_the_other_devices(world: World) -> None:
    alice = world.join("alice", devices=2)
    assert isinstance(world.send(alice[1], alice, text="milk"), Accepted)
    assert (world.texts(alice[1]), world.texts(alice[2])) == ([], ["milk"])
    world.do(alice[2], Acked(NORMAL, 1))
    assert world.receipts(alice[1]) == []


def test_copies_for_an_account_that_closed_meanwhile_go_nowhere() -> None:
    world = World(256)
    alice, bob = world.join("alice", devices=2), world.join("bob")
    world.carries = False
    world.send(alice[1], bob)
    world.do(alice[1], Closed(alice.account))
    while world.forwards:
        world.hear(*world.forwards.popleft())
    assert world.mailbox(alice[2]) is None
    assert world.changes(alice[1]) is None
