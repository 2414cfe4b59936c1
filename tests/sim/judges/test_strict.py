from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from nightmail.core.devices import needs_account, step_closed
from nightmail.core.due import NEXT_SLOT, moment_of_slot
from nightmail.core.state import ShardState, encode_row, missing_row
from nightmail.core.step import FOLDS, OPTIMISTIC
from nightmail.model.effects import Forward, ReceiptsGrew
from nightmail.model.ids import account_id, device_id, shard_of
from nightmail.model.records import Closed, Receipted, ReceiptsAcked, Ticked
from nightmail.model.rows import (
    Account,
    Claim,
    Due,
    DueHour,
    DueItem,
    Gap,
    Kept,
    Keys,
    Mailbox,
    Numbers,
    PendingReceipt,
    PendingReceipts,
    Queue,
    RowKey,
    Stream,
)
from nightmail.model.words import Lane, MessageState, Reason
from sim.judges.strict import Crooked, Foreign, Late, Misstep, StrictState, Unnamed, Unsaid, strict, strictly

ALICE, BOB = account_id("alice"), account_id("bob")
PHONE = device_id(ALICE, 1)
BODY = Ticked()
NORMAL = Lane.NORMAL


def take(step: Any, names: Any = None, state: ShardState | None = None) -> None:
    """Run one step under watch. `names` is what its needs look at."""

    def needs(state: ShardState, _by: int, _body: Ticked) -> tuple[()]:
        if names:
            names(state)
        return ()

    asked, taken = strict({1: {Ticked: (needs, lambda state, _by, _via, _body: step(state))}})[1][Ticked]
    state = state or with_alice()
    assert asked(state, 0, BODY) == ()
    taken(state, 0, 0, BODY)


def with_alice() -> StrictState:
    state = StrictState()
    state.install(RowKey(Kept.ACCOUNT, ALICE), None)
    state.accounts[ALICE] = Account("alice")
    return state


def name_alice(state: ShardState) -> None:
    assert ALICE in state.accounts


# --- rows out of turn -------------------------------------------------------------------------

TOUCHES = {
    "[]": lambda state: state.accounts[ALICE],
    "get": lambda state: state.accounts.get(ALICE),
    "in": lambda state: ALICE in state.accounts,
    "there": lambda state: state.accounts.there(ALICE),
    "put": lambda state: state.accounts.put(ALICE, None, 1),
    "changed": lambda state: state.accounts.changed.__setitem__(ALICE, 1),
}


@pytest.mark.parametrize("touch", TOUCHES.values(), ids=list(TOUCHES))
def test_a_step_may_touch_what_its_needs_named(touch: Any) -> None:
    take(touch, name_alice)


@pytest.mark.parametrize("touch", TOUCHES.values(), ids=list(TOUCHES))
def test_a_step_may_not_touch_what_its_needs_did_not_name(touch: Any) -> None:
    with pytest.raises(Unnamed, match=f"ACCOUNT {ALICE}"):
        take(touch)


@pytest.mark.parametrize("touch", TOUCHES.values(), ids=list(TOUCHES))
def test_what_was_named_for_one_record_is_not_named_for_the_next(touch: Any) -> None:
    state = with_alice()
    take(touch, name_alice, state)
    with pytest.raises(Unnamed):
        take(touch, None, state)


@pytest.mark.parametrize("touch", list(TOUCHES.values())[:4], ids=list(TOUCHES)[:4])
def test_a_step_may_not_tell_what_is_in_memory_from_what_is_not(touch: Any) -> None:
    with pytest.raises(Unnamed, match="is not in memory"):
        take(touch, lambda state: state.accounts.get(ALICE), StrictState())


@pytest.mark.parametrize("touch", TOUCHES.values(), ids=list(TOUCHES))
def test_a_row_of_another_shard_is_never_touched(touch: Any) -> None:
    elsewhere = StrictState(shard_of(ALICE, 256) ^ 1, 256)
    with pytest.raises(Foreign):
        touch(elsewhere)


def test_every_kind_of_row_knows_where_it_belongs() -> None:
    here = StrictState(shard_of(ALICE, 256), 256)
    for row in (RowKey(Kept.ACCOUNT, ALICE), RowKey(Kept.MAILBOX, PHONE), RowKey(Kept.RECEIPTS, PHONE),
                RowKey(Kept.STREAM, device_id(BOB, 1), ALICE), RowKey(Kept.DUE, 7), RowKey(Kept.DUE_HOUR, 7),
                RowKey(Kept.DEAD_LETTER, 7), RowKey(Kept.KEYS, PHONE)):  # fmt: skip
        here.install(row, None)
        assert here.row(row) is None
    for row in (RowKey(Kept.ACCOUNT, BOB), RowKey(Kept.MAILBOX, device_id(BOB, 1)),
                RowKey(Kept.RECEIPTS, device_id(BOB, 1)), RowKey(Kept.STREAM, PHONE, BOB),
                RowKey(Kept.KEYS, device_id(BOB, 1))):  # fmt: skip
        with pytest.raises(Foreign):
            here.install(row, None)


def test_nothing_is_written_while_asking() -> None:
    with pytest.raises(Unsaid, match="while asking"):
        take(lambda _: None, lambda state: state.accounts.put(ALICE, None, 1))


def test_a_record_whose_needs_are_not_met_is_not_taken() -> None:
    state = StrictState()
    ((needs, step),) = strict({1: {Closed: (needs_account, step_closed)}})[1].values()
    assert needs(state, PHONE, Closed(ALICE)) == [RowKey(Kept.ACCOUNT, ALICE)]
    with pytest.raises(Unnamed, match="before its needs were met"):
        step(state, PHONE, 0, Closed(ALICE))


def attempt(step: Any, state: StrictState) -> None:
    """Try a step without having asked for its needs, which are Alice's account and the first dead letter."""

    def needs(state: ShardState, _by: int, _body: ReceiptsAcked) -> list[RowKey]:
        missing: list[Any] = []
        missing_row(state.accounts, Kept.ACCOUNT, ALICE, missing)
        missing_row(state.dead_letters, Kept.DEAD_LETTER, 1, missing)
        return missing

    assert ReceiptsAcked in OPTIMISTIC
    _, taken = strict({1: {ReceiptsAcked: (needs, lambda state, _by, _via, _body: step(state))}})[1][ReceiptsAcked]
    taken(state, 0, 0, ReceiptsAcked(1))


def test_a_record_that_looks_first_may_be_tried_and_stumbles_over_what_is_not_in_memory() -> None:
    def looks_and_closes(state: ShardState) -> None:
        account = state.accounts.there(ALICE)
        assert state.dead_letters[1] is None
        account.closed = True
        state.accounts.changed[ALICE] = 1

    state = with_alice()
    with pytest.raises(KeyError):
        attempt(looks_and_closes, state)
    assert state.accounts == {ALICE: Account("alice")}
    state.install(RowKey(Kept.DEAD_LETTER, 1), None)
    attempt(looks_and_closes, state)
    assert state.accounts == {ALICE: Account("alice", closed=True)}


def test_a_record_that_is_tried_may_not_touch_what_its_needs_do_not_name() -> None:
    with pytest.raises(Unnamed, match="DEAD_LETTER 2"):
        attempt(lambda state: state.dead_letters[2], with_alice())


@pytest.mark.parametrize("says_so", [True, False])
def test_a_record_that_changes_a_row_before_it_stumbles_is_stopped(says_so: bool) -> None:
    def closes_and_looks(state: ShardState) -> None:
        state.accounts.there(ALICE).closed = True
        if says_so:
            state.accounts.changed[ALICE] = 1
        assert state.dead_letters[1] is None

    with pytest.raises(Late, match="before it had looked at all"):
        attempt(closes_and_looks, with_alice())


def test_a_row_that_changes_in_silence_is_noticed() -> None:
    def closes(state: ShardState) -> None:
        state.accounts.there(ALICE).closed = True

    with pytest.raises(Unsaid, match="changed in Ticked"):
        take(closes, name_alice)


# --- rows that contradict themselves ----------------------------------------------------------

EXPIRED = Reason.EXPIRED
KEY = (1, 2, 0, 3, int(MessageState.DELIVERED), 0)
OTHER = (1, 2, 0, 4, int(MessageState.DELIVERED), 0)


def change(key: tuple[int, int, int, int, int, int], seq: int, *numbers: int) -> PendingReceipt:
    return PendingReceipt(key, seq, 0, Reason.NONE, list(numbers))


def crooked_rows() -> Iterator[tuple[str, Any]]:
    def box(*queue: Any) -> Any:
        return lambda state: state.mailboxes.put(PHONE, Mailbox((Queue(*queue), Queue())), 1)

    def told(changes: PendingReceipts) -> Any:
        return lambda state: state.receipts.put(PHONE, changes, 1)

    def stream(numbers: Numbers) -> Any:
        return lambda state: state.streams.put((PHONE, ALICE), Stream(0, (numbers, Numbers())), 1)

    def key(number: int) -> bytes:
        return number.to_bytes(4, "big")

    def keys(**rest: Any) -> Any:
        return lambda state: state.keys.put(PHONE, Keys(7, b"", b"", b"", **rest), 1)

    def an_hour(first: int, *others: int) -> Any:
        def step(state: ShardState) -> None:
            state.shard.due[0] = state.shard.next_due = moment_of_slot(state.shard, first)
            state.due_hours.put(0, DueHour([first, *others]), 1)

        return step

    yield "acked above head", box(1, 2, -1)
    yield "wrong count", box(3, 1, 3)
    yield "gap not counted", box(3, 0, 3, [Gap(2, 2, EXPIRED)])
    yield "gap below acked", box(3, 2, 0, [Gap(2, 3, EXPIRED)])
    yield "gap above head", box(3, 2, 0, [Gap(3, 4, EXPIRED)])
    yield "gaps out of order", box(5, 0, 3, [Gap(4, 4, EXPIRED), Gap(2, 2, EXPIRED)])
    yield "gaps not merged", box(5, 0, 3, [Gap(2, 2, EXPIRED), Gap(3, 3, EXPIRED)])
    yield "bytes of nothing", lambda state: state.mailboxes.put(PHONE, Mailbox(bytes=1), 1)
    yield "receipts out of order", told(PendingReceipts(2, {KEY: change(KEY, 2, 1, 1), OTHER: change(OTHER, 1, 1, 1)}))
    yield "receipt above head", told(PendingReceipts(1, {KEY: change(KEY, 2, 1, 1)}))
    yield "receipt under another key", told(PendingReceipts(1, {OTHER: change(KEY, 1, 1, 1)}))
    yield "receipt of nothing", told(PendingReceipts(1, {KEY: change(KEY, 1)}))
    yield "intervals that touch", told(PendingReceipts(1, {KEY: change(KEY, 1, 1, 2, 3, 4)}))
    yield "interval upside down", told(PendingReceipts(1, {KEY: change(KEY, 1, 4, 3)}))
    yield "ring above last", stream(Numbers(1, 1, {2: None}))  # pyright: ignore[reportArgumentType]
    yield "ring below low", stream(Numbers(3, 2, {1: None}))  # pyright: ignore[reportArgumentType]
    yield "keys out of order", keys(one_time=[key(2), key(1)], highest=2)
    yield "a key twice", keys(one_time=[key(2), key(2)], highest=2)
    yield "a key above the highest", keys(one_time_kem=[b"\0" + key(2)], highest_kem=1)
    yield "a key that is gone and there", keys(one_time=[key(1)], highest=1, claims={(5, 1): Claim(1, key(1), None)})
    yield "a key that two took", keys(highest_kem=1, claims={(5, n): Claim(1, None, b"\0" + key(1)) for n in (1, 2)})
    yield "claims out of order", keys(claims={(5, n): Claim(9 - n, None, None) for n in (1, 2)})
    yield "hour without seconds", lambda state: state.due_hours.put(0, DueHour(), 1)
    yield "hour not in the shard", lambda state: state.due_hours.put(0, DueHour([5]), 1)
    yield "slots out of order", an_hour(5 + NEXT_SLOT, 5)
    yield "slot that no hour lists", lambda state: state.due.put(5, Due([DueItem(PHONE, NORMAL, 0)]), 1)
    yield "wrong next due", lambda state: setattr(state.shard, "next_due", 5)
    yield "effect elsewhere", lambda state: state.effects.append(ReceiptsGrew(device_id(BOB, 1)))
    yield "strange consequence", lambda state: state.derived.append(Closed(ALICE))


CROOKED = dict(crooked_rows())


@pytest.mark.parametrize("step", CROOKED.values(), ids=list(CROOKED))
def test_a_row_that_contradicts_itself_is_noticed(step: Any) -> None:
    state = StrictState(shard_of(ALICE, 256), 256)
    for key in (RowKey(Kept.MAILBOX, PHONE), RowKey(Kept.RECEIPTS, PHONE), RowKey(Kept.STREAM, PHONE, ALICE)):
        state.install(key, None)
    state.install(RowKey(Kept.DUE_HOUR, 0), None)
    state.install(RowKey(Kept.DUE, 5), None)
    state.install(RowKey(Kept.KEYS, PHONE), None)

    def names(state: ShardState) -> None:
        assert PHONE in state.keys
        assert PHONE in state.mailboxes
        assert PHONE in state.receipts
        assert (PHONE, ALICE) in state.streams
        assert 0 in state.due_hours
        assert 5 in state.due

    with pytest.raises(Crooked):
        take(step, names, state)


@pytest.mark.parametrize(("first", "is_sound"), [(5, True), (6, False)])
def test_of_an_hour_that_is_not_in_memory_a_slot_is_compared_with_the_first_moment(first: int, is_sound: bool) -> None:
    state = StrictState(shard_of(ALICE, 256), 256)
    state.install(RowKey(Kept.DUE, 5), encode_row(Due([DueItem(PHONE, NORMAL, 0)])))
    state.shard.due[0] = state.shard.next_due = moment_of_slot(state.shard, first)

    def step(state: ShardState) -> None:
        state.due.put(5, Due([DueItem(PHONE, NORMAL, 0)] * 2), 1)

    def names(state: ShardState) -> None:
        assert 5 in state.due

    with nullcontext() if is_sound else pytest.raises(Crooked):
        take(step, names, state)


def test_what_is_forwarded_to_the_wrong_shard_is_noticed() -> None:
    body = Receipted(device_id(BOB, 1), ALICE, NORMAL, PHONE, MessageState.DELIVERED, Reason.NONE, 0, ((1, 1),))
    here, there = shard_of(ALICE, 256), shard_of(BOB, 256)

    def forwards(shard: int, k: int) -> Any:
        def step(state: ShardState) -> None:
            state.shard.told[shard] = 1
            state.forwards.append(Forward(shard, k, body))

        return step

    take(forwards(there, 1), None, StrictState(here, 256))
    for shard, k in ((there ^ 1, 1), (here, 1), (there, 2)):
        with pytest.raises(Crooked):
            take(forwards(shard, k), None, StrictState(here, 256))
    with pytest.raises(Crooked):
        take(lambda state: state.derived.append(body), None, StrictState(here, 256))


# --- around the whole program -----------------------------------------------------------------


def test_every_fold_is_watched_inside_the_block_and_none_outside() -> None:
    plain = dict(FOLDS)
    with strictly():
        assert all(FOLDS[1][body] != plain[1][body] for body in plain[1])
        FOLDS[99] = FOLDS[1]
    assert plain == FOLDS


def test_what_is_watched_already_is_not_watched_twice() -> None:
    with strictly():
        once = dict(FOLDS)
        assert strict(once) == once


def test_a_state_that_is_not_strict_is_left_alone() -> None:
    take(lambda state: state.shard.due, None, ShardState())


def test_the_net_for_poison_records_does_not_catch_a_misstep() -> None:
    assert not issubclass(Misstep, Exception)
