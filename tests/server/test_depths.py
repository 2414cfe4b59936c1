"""The deepest mailboxes and accounts: found among those that get mail, and followed."""

from __future__ import annotations

from nightmail.core.state import ShardState
from nightmail.model.ids import account_id, device_id, log_of
from nightmail.model.notes import Placed
from nightmail.model.rows import Account, Device, Mailbox
from nightmail.model.words import Lane, Platform
from nightmail.server.depths import FOLLOWED, LOOKED_AT, Depths

ADA, BOB = device_id(account_id("ada"), 1), account_id("bob")
PHONE, LAPTOP = device_id(BOB, 1), device_id(BOB, 2)
CAP = ShardState().shard.limits.mailbox_entries


def placed(device: int, to: int = BOB) -> Placed:
    return Placed(1, ADA, to, Lane.NORMAL, 1, f"{ADA:x}:1:1:x", None, False, False, ((device, 1),))


def a_state(phone: int, laptop: int) -> ShardState:
    state = ShardState()
    state.accounts[BOB] = Account("bob", {each: Device(1, b"", "", Platform.CLI) for each in (PHONE, LAPTOP)})
    for device, waiting in ((PHONE, phone), (LAPTOP, laptop)):
        state.mailboxes[device] = Mailbox()
        state.mailboxes.there(device).lanes[Lane.NORMAL].waiting = waiting
    return state


def seen(depths: Depths) -> tuple[int, int, float, int]:
    return depths.account, depths.mailbox, depths.fill, depths.nearly_full


def test_an_account_is_as_deep_as_its_devices_together() -> None:
    depths = Depths()
    depths.look(a_state(CAP * 8 // 10, CAP * 7 // 10), [placed(PHONE)])
    assert seen(depths) == (CAP * 15 // 10, CAP * 8 // 10, 0.8, 1)


def test_bytes_fill_a_mailbox_as_entries_do() -> None:
    depths, state = Depths(), a_state(1, 0)
    state.mailboxes.there(PHONE).bytes = state.shard.limits.mailbox_bytes // 2
    depths.look(state, [placed(PHONE)])
    assert depths.fill == 0.5


def test_what_was_seen_is_followed_and_forgotten_when_it_is_empty() -> None:
    depths = Depths()
    depths.look(a_state(9, 3), [placed(PHONE)])
    depths.follow(a_state(4, 3))
    assert seen(depths)[:2] == (7, 4)
    depths.follow(a_state(0, 0))
    assert seen(depths) == (0, 0, 0.0, 0)


def test_a_mailbox_that_left_memory_is_as_deep_as_it_was() -> None:
    depths = Depths()
    depths.look(a_state(9, 3), [placed(PHONE)])
    depths.follow(ShardState())
    assert seen(depths)[:2] == (12, 9)


def test_a_log_of_a_group_is_no_mailbox_of_anybody() -> None:
    depths, group = Depths(), 2 * account_id("a group")
    state = a_state(1, 1)
    state.mailboxes[log_of(group)] = Mailbox()
    state.mailboxes.there(log_of(group)).lanes[Lane.NORMAL].waiting = 50
    depths.look(state, [placed(log_of(group), group)])
    assert seen(depths) == (0, 0, 0.0, 0)


def test_of_many_messages_a_few_are_looked_at_and_the_deepest_are_kept() -> None:
    depths, state = Depths(), ShardState()
    devices = [device_id(account_id(f"p{number}"), 1) for number in range(10 * FOLLOWED)]
    for waiting, device in enumerate(devices, 1):
        state.mailboxes[device] = Mailbox()
        state.mailboxes.there(device).lanes[Lane.NORMAL].waiting = waiting
    for device in devices:
        depths.look(state, [placed(device)])
        depths.follow(state)
    assert depths.mailbox == len(devices)
    depths = Depths()
    depths.look(state, [placed(device) for device in devices])
    depths.follow(state)
    assert 0 < depths.mailbox <= len(devices)
    assert LOOKED_AT < FOLLOWED
