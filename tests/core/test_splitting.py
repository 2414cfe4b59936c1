"""One shard's rows as those of many."""

from __future__ import annotations

import pytest

from nightmail.core.due import SLOT_MS, hour_of, moment_of_slot, schedule
from nightmail.core.homes import OF_NOBODY, home_of
from nightmail.core.splitting import Split
from nightmail.core.state import SHARD, ShardState, decode_shard, encode_row
from nightmail.model.blob_rows import PAGE_BITS
from nightmail.model.ids import account_id, account_of, device_id, shard_of
from nightmail.model.ledger import CopyLedger
from nightmail.model.rows import DueFor, DueItem, Kept, Mailbox, RowKey
from nightmail.model.words import Lane

SHARDS = 4
NAMES = ["ada", "bob", "cleo", "dan", "eve", "finn", "gus", "hal"]
HOUR_MOMENTS = 3_600_000 // SLOT_MS


def a_state() -> ShardState:
    state = ShardState()
    state.shard.fold = 5
    state.knows_schedules = True
    for number, name in enumerate(NAMES):
        account, device = account_id(name), device_id(account_id(name), 1)
        items = (
            DueItem(device, Lane.NORMAL, 0),
            DueItem(account, Lane.NORMAL, 7, DueFor.SCHEDULE),
            DueItem(0, Lane.NORMAL, account, DueFor.RELISTING),
            DueItem(0, Lane.NORMAL, 99, DueFor.DEAD_LETTER),
        )
        for nth, item in enumerate(items):
            moment = 30_000_000_000 + number * HOUR_MOMENTS // 3 + nth
            state.due_hours.rows.setdefault(hour_of(state.shard, moment), None)
            schedule(state, moment, item)
        state.mailboxes[device] = Mailbox()
        state.mailboxes.there(device).lanes[Lane.NORMAL].waiting = number
    state.shard.ledger = CopyLedger(owed=100, delivered=60, waiting=sum(range(len(NAMES))) + 12)
    return state


def rows_of(state: ShardState) -> list[tuple[RowKey, int, bytes]]:
    found = [(SHARD, 3, encode_row(state.shard))]
    tables = ((Kept.DUE, state.due), (Kept.DUE_HOUR, state.due_hours), (Kept.MAILBOX, state.mailboxes))
    for kind, table in tables:
        found += [(RowKey(kind, key), 2, encode_row(row)) for key, row in table.rows.items() if row is not None]
    return found


def test_every_due_item_goes_to_the_shard_of_its_account_in_its_slot_and_those_of_dead_letters_stay_behind() -> None:
    state = a_state()
    split = Split(SHARDS)
    for row in rows_of(state):
        split.place(*row)
    items = 0
    for shard in range(SHARDS):
        rest = {key: value for key, _, value in split.rest(shard)}
        head = decode_shard(rest[SHARD])
        slots: list[int] = []
        for key, value in rest.items():
            if key.kind is Kept.DUE_HOUR:
                kept = state.due_hours.decode(value).slots
                assert head.due[key.a] == moment_of_slot(head, kept[0])
                slots += kept
        assert sorted(slots) == sorted(key.a for key in rest if key.kind is Kept.DUE)
        assert head.next_due == min(head.due.values(), default=0)
        for key, value in rest.items():
            if key.kind is not Kept.DUE:
                continue
            for item in state.due.decode(value).items:
                items += 1
                assert item.what is not DueFor.DEAD_LETTER
                home = {DueFor.RELISTING: item.seq, DueFor.SCHEDULE: item.device}.get(item.what)
                assert shard_of(account_of(item.device) if home is None else home, SHARDS) == shard
    assert items == 3 * len(NAMES)


def test_ledgers_add_up_to_what_the_one_shard_counted() -> None:
    state = a_state()
    split = Split(SHARDS)
    placed = [split.place(*row) for row in rows_of(state)]
    assert {shard for shard in placed if shard is not None} == {shard_of(account_id(n), SHARDS) for n in NAMES}
    ledgers = [
        decode_shard(value).ledger for shard in range(SHARDS) for key, _, value in split.rest(shard) if key == SHARD
    ]
    assert sum(ledger.lost for ledger in ledgers) == state.shard.ledger.lost
    assert sum(ledger.waiting for ledger in ledgers) == state.shard.ledger.waiting


@pytest.mark.parametrize("kind", list(Kept))
def test_every_kind_of_row_is_about_an_account_or_is_a_shards_own(kind: Kept) -> None:
    device = device_id(account_id("ada"), 1)
    homes = {home_of(kind, device, account_id("bob"))}
    assert homes <= {None, account_id("bob"), account_id("ada"), device, device >> PAGE_BITS}
    assert (homes == {None}) == (kind in OF_NOBODY)
