from __future__ import annotations

import msgspec
import pytest

from nightmail.core.state import SHARD, BadRow, ShardState, Table, encode_row, missing_row
from nightmail.model.effects import Forward
from nightmail.model.ids import account_id, device_id, shard_of
from nightmail.model.letter_rows import DeadLetter, LetterClass, LetterClasses, LetterPage
from nightmail.model.records import Acked, Receipted
from nightmail.model.rows import (
    Account,
    Due,
    DueHour,
    DueItem,
    Entry,
    Gap,
    HandleClaim,
    Kept,
    Mailbox,
    Need,
    Numbers,
    PendingReceipt,
    PendingReceipts,
    Queue,
    ReceiptKey,
    Row,
    RowKey,
    Shard,
    Stream,
    queue_id,
)
from nightmail.model.words import Kind, Lane, MessageState, Reason
from tests.core.world import START, Memory, World

NORMAL, HIGH = Lane
ALICE, BOB = account_id("alice"), account_id("bob")
PHONE = device_id(BOB, 1)
KEY: ReceiptKey = (1, 2, NORMAL, 3, MessageState.DELIVERED, 0)

ROWS: list[tuple[RowKey, Row]] = [
    (RowKey(Kept.ACCOUNT, ALICE), Account("alice", blocked={7: START, 3: START})),
    (RowKey(Kept.STREAM, PHONE, ALICE), Stream(5, (Numbers(9, 9, bytearray(b"ring")), Numbers()))),
    (RowKey(Kept.MAILBOX, PHONE), Mailbox((Queue(5, 1, 3, [Gap(3, 3, Reason.EXPIRED)]), Queue()), 77)),
    (RowKey(Kept.RECEIPTS, PHONE), PendingReceipts(1, {KEY: PendingReceipt(KEY, 1, START, Reason.NONE, [1, 4])})),
    (RowKey(Kept.DUE_HOUR, 4), DueHour([4 * 3600, 4 * 3600 + 9])),
    (RowKey(Kept.DUE, 4 * 3600), Due([DueItem(PHONE, HIGH, 2)])),
    (RowKey(Kept.DEAD_LETTER, 12), DeadLetter(b"poison", ["ValueError"], START)),
    (RowKey(Kept.LETTER_CLASSES, 0), LetterClasses({"ValueError": LetterClass(1, 12)})),
    (RowKey(Kept.LETTER_PAGE, 12), LetterPage("ValueError", [12])),
    (RowKey(Kept.HANDLE, 9), HandleClaim("alice", ALICE, START, 1)),
]
ids = [key.kind.name for key, _ in ROWS]


def entry(n: int) -> Entry:
    return Entry(device_id(ALICE, 1), BOB, n, f"id {n}", b"tag", Kind.TEXT, None, START + n, 0, b"ciphertext")


def with_mailbox(queue: Queue) -> ShardState:
    state = ShardState()
    state.install(RowKey(Kept.MAILBOX, PHONE), encode_row(Mailbox((queue, Queue()))))
    return state


# --- rows come in and go out ------------------------------------------------------------------


@pytest.mark.parametrize(("key", "row"), ROWS, ids=ids)
def test_a_row_comes_back_as_it_was_saved(key: RowKey, row: Row) -> None:
    state = ShardState()
    state.install(key, encode_row(row))
    assert state.row(key) == row
    assert dict(state.known_rows()) == {key: row}
    assert list(state.changed_rows()) == [(SHARD, 0, Shard())]


@pytest.mark.parametrize(("key", "row"), ROWS, ids=ids)
def test_saved_twice_a_row_is_the_same_bytes(key: RowKey, row: Row) -> None:
    state = ShardState()
    state.install(key, encode_row(row))
    assert encode_row(state.row(key)) == encode_row(row)


@pytest.mark.parametrize(("key", "row"), ROWS, ids=ids)
def test_a_row_that_is_here_is_newer_than_the_one_that_is_loaded(key: RowKey, row: Row) -> None:
    state = ShardState()
    state.install(key, None)
    state.install(key, encode_row(row))
    assert state.row(key) is None


@pytest.mark.parametrize(("key", "row"), ROWS, ids=ids)
def test_a_row_that_nobody_asked_for_is_an_error_not_an_absence(key: RowKey, row: Row) -> None:
    with pytest.raises(KeyError):
        ShardState().row(key)


def test_the_shards_own_row_comes_back_as_it_was_saved() -> None:
    shard = Shard(now=5, due={1: 3600}, next_due=3600, told={7: 1, 2: 4}, heard={3: 9}, out_of_chain=2, dead=1)
    state = ShardState()
    state.install(SHARD, encode_row(shard))
    assert state.shard == shard
    state.install(SHARD, None)
    assert state.shard == Shard()


def test_receipts_keep_their_order_through_a_save() -> None:
    changes = PendingReceipts(300)
    for seq, n in enumerate((300, 2, 70_000, 1), 1):
        key = (1, 2, 0, 3, int(MessageState.FAILED), n)
        changes.items[key] = PendingReceipt(key, seq, START, Reason.EXPIRED, [n, n])
    loaded = msgspec.msgpack.decode(encode_row(changes), type=PendingReceipts)
    assert list(loaded.items.items()) == list(changes.items.items())


def test_no_row_holds_a_set_whose_order_would_depend_on_the_machine() -> None:
    shapes = [kind for kind in Row.__args__ if "set[" in str(kind.__annotations__)]  # type: ignore[attr-defined]
    assert shapes == []


# --- what changed -----------------------------------------------------------------------------


def test_a_changed_row_is_saved_under_the_offset_of_its_last_change() -> None:
    state = ShardState()
    state.accounts.put(ALICE, Account("alice"), 3)
    state.streams.put((PHONE, ALICE), Stream(), 4)
    state.accounts.put(ALICE, Account("alice", closed=True), 5)
    state.mailboxes.put(PHONE, None, 6)
    state.offset = 6
    assert list(state.changed_rows()) == [
        (SHARD, 6, Shard()),
        (RowKey(Kept.STREAM, PHONE, ALICE), 4, Stream()),
        (RowKey(Kept.ACCOUNT, ALICE), 5, Account("alice", closed=True)),
        (RowKey(Kept.MAILBOX, PHONE), 6, None),
    ]
    assert state.count_changed() == 3


def test_what_is_being_saved_counts_as_unchanged_but_stays_in_memory() -> None:
    state = ShardState()
    state.accounts.put(ALICE, Account("alice"), 3)
    state.forget_changes()
    assert list(state.changed_rows()) == [(SHARD, 0, Shard())]
    assert state.count_changed() == 0
    assert state.accounts == {ALICE: Account("alice")}


def test_a_row_that_must_exist_and_does_not_is_our_mistake() -> None:
    accounts = Table(Account)
    accounts[ALICE] = None
    with pytest.raises(AssertionError):
        accounts.there(ALICE)
    with pytest.raises(KeyError):
        accounts.there(BOB)


def test_a_row_that_is_known_to_be_absent_is_not_missing() -> None:
    state = ShardState()
    missing: list[Need] = []
    assert missing_row(state.accounts, Kept.ACCOUNT, ALICE, missing)
    state.install(RowKey(Kept.ACCOUNT, ALICE), None)
    assert not missing_row(state.accounts, Kept.ACCOUNT, ALICE, missing)
    assert missing == [RowKey(Kept.ACCOUNT, ALICE)]


# --- entries ----------------------------------------------------------------------------------


def test_loaded_entries_that_ended_meanwhile_stay_out() -> None:
    state = with_mailbox(Queue(head=5, acked=2, waiting=2, gaps=[Gap(4, 4, Reason.EXPIRED)]))
    number = queue_id(PHONE, NORMAL)
    state.install_entries(number, [(seq, encode_row(entry(seq))) for seq in range(1, 6)])
    assert state.entries == {number: {3: entry(3), 5: entry(5)}}
    assert state.loaded == [(number, 3), (number, 5)]


def test_an_entry_that_is_here_is_not_loaded_again() -> None:
    state = with_mailbox(Queue(head=1, waiting=1))
    number = queue_id(PHONE, NORMAL)
    state.entries[number] = {1: entry(7)}
    state.install_entries(number, [(1, encode_row(entry(1)))])
    assert state.entries == {number: {1: entry(7)}}
    assert state.loaded == []


def test_entries_of_a_mailbox_that_was_let_go_stay_out() -> None:
    state = ShardState()
    state.install_entries(queue_id(PHONE, NORMAL), [(1, encode_row(entry(1)))])
    assert (state.entries, state.loaded) == ({}, [])


def test_entries_of_a_mailbox_that_is_gone_stay_out() -> None:
    state = ShardState()
    state.install(RowKey(Kept.MAILBOX, PHONE), None)
    state.install_entries(queue_id(PHONE, NORMAL), [(1, encode_row(entry(1)))])
    assert state.entries == {}


def test_a_loaded_mailbox_tells_what_the_store_may_hold() -> None:
    state = ShardState()
    box = Mailbox((Queue(head=5, acked=2, waiting=3), Queue(head=4, acked=4)))
    state.install(RowKey(Kept.MAILBOX, PHONE), encode_row(box))
    assert state.stored == {queue_id(PHONE, NORMAL): 5}


def test_an_entry_that_was_never_saved_need_not_be_cleared() -> None:
    world = World()
    alice, bob = world.join("alice"), world.join("bob")
    world.send(alice[1], bob)
    world.do(bob[1], Acked(NORMAL, 1))
    state = world.node(0).state
    assert (state.cleared, state.dropped) == ({}, [])


def test_an_entry_that_was_saved_is_cleared_when_it_is_acknowledged() -> None:
    world = World(1, Memory.SAVES)
    alice, bob = world.join("alice"), world.join("bob")
    world.send(alice[1], bob)
    node = world.node(0)
    assert list(node.entries[queue_id(bob[1], NORMAL)]) == [1]
    world.do(bob[1], Acked(NORMAL, 1))
    assert node.entries[queue_id(bob[1], NORMAL)] == {}


# --- telling other shards ---------------------------------------------------------------------


def receipt(by: int) -> Receipted:
    return Receipted(by, BOB, NORMAL, PHONE, MessageState.DELIVERED, Reason.NONE, START, ((1, 1),))


def test_what_is_for_this_shard_follows_at_once() -> None:
    for state in (ShardState(), ShardState(shard_of(ALICE, 256), 256)):
        state.tell(ALICE, receipt(device_id(ALICE, 1)))
        assert list(state.derived) == [receipt(device_id(ALICE, 1))]
        assert (state.forwards, state.shard.told) == ([], {})


def test_what_is_for_other_shards_is_counted_for_each() -> None:
    state = ShardState(shard_of(BOB, 256), 256)
    carol = account_id("carol")
    there, elsewhere = shard_of(ALICE, 256), shard_of(carol, 256)
    to_alice, to_carol = receipt(device_id(ALICE, 1)), receipt(device_id(carol, 1))
    for account, body in ((ALICE, to_alice), (carol, to_carol), (ALICE, to_alice)):
        state.tell(account, body)
    assert state.forwards == [Forward(there, 1, to_alice), Forward(elsewhere, 1, to_carol), Forward(there, 2, to_alice)]
    assert state.shard.told == {there: 2, elsewhere: 1}
    assert not state.derived


def test_bytes_that_are_no_row_are_named_and_not_taken() -> None:
    state = ShardState()
    for key in (RowKey(Kept.ACCOUNT, 7), RowKey(Kept.STREAM, 1, 2), SHARD):
        with pytest.raises(BadRow, match="cannot be read"):
            state.install(key, b"\x93\xc1\xff")
    assert list(state.known_rows()) == []
