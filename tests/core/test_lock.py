from __future__ import annotations

import pytest

from nightmail.model.answers import Accepted, Done, Joined
from nightmail.model.effects import Dismissed, ReceiptsGrew
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.records import Blocked, Closed, PinSet, ReceiptsSet, Registered, Unlinked
from nightmail.model.refusals import (
    AnyRefusal,
    HandleTaken,
    NotAllowed,
    PinLocked,
    PinNeeded,
    PinWrong,
    StaleDevices,
    UnknownDevice,
)
from nightmail.model.rows import Account, Device, Kept, Lock, Mailbox
from nightmail.model.words import MessageState, Platform, Reason
from tests.core.world import World, sealed

ALICE = account_id("alice")
SALT, RIGHT, WRONG = bytes(16), b"r" * 32, b"w" * 32
WEEK_MS = 7 * 24 * 60 * 60 * 1000


def again(token: bytes = b"new", *, verified: bool = False, pin: bytes = b"") -> Registered:
    return Registered(ALICE, "alice", 9, token, "new phone", Platform.IOS, verified, pin)


def alice_of(world: World) -> Account:
    return world.of(ALICE).row(Kept.ACCOUNT, ALICE)


def locked(world: World, devices: int = 1) -> int:
    """Alice, with a lock; her last device."""
    alice = world.join("alice", devices)
    assert world.do(alice[1], PinSet(ALICE, SALT, RIGHT)) == Done()
    return alice[devices]


# --- taking an account over -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lock", "new", "answer"),
    [
        (False, again(), HandleTaken("alice")),
        (False, again(pin=RIGHT), HandleTaken("alice")),
        (False, again(verified=True), None),
        (False, again(verified=True, pin=WRONG), None),
        (True, again(), HandleTaken("alice")),
        (True, again(pin=WRONG), PinWrong(9)),
        (True, again(pin=RIGHT), None),
        (True, again(verified=True), PinNeeded("alice")),
        (True, again(verified=True, pin=WRONG), PinWrong(9)),
        (True, again(verified=True, pin=RIGHT), None),
    ],
)
def test_a_handle_goes_to_whoever_is_verified_and_knows_the_pin_if_there_is_one(
    world: World, lock: bool, new: Registered, answer: AnyRefusal | None
) -> None:
    old = locked(world) if lock else world.join("alice")[1]
    if answer:
        assert world.do(SERVER, new) == answer
        assert list(alice_of(world).devices) == [old]
        assert world.effects == []
    else:
        assert world.do(SERVER, new) == Joined(device_id(ALICE, 2), 2)
        assert list(alice_of(world).devices) == [device_id(ALICE, 2)]


def test_a_takeover_ends_every_former_device_and_keeps_what_is_the_persons(world: World) -> None:
    alice, bob = world.join("alice", 3), world.join("bob")
    world.do(alice[1], Blocked(ALICE, account_id("eve"), True))
    world.do(alice[1], ReceiptsSet(ALICE, False))
    world.do(alice[1], PinSet(ALICE, SALT, RIGHT))
    new = device_id(ALICE, 4)
    assert world.do(SERVER, again(verified=True, pin=RIGHT)) == Joined(new, 4)
    row = alice_of(world)
    assert row == Account(
        "alice", devices={new: Device(9, b"new", "new phone", Platform.IOS)}, listed={new: 9}, list_version=4,
        signed_list=b"", blocked=row.blocked, read_receipts=False, next_index=5, lock=Lock(SALT, RIGHT),
        revision=4, listed_since={new: 4}, former=row.former,
    )  # fmt: skip
    assert [former.device for former in row.former] == [alice[1], alice[2], alice[3]]
    assert list(row.blocked) == [account_id("eve")]
    assert [effect for effect in world.effects if isinstance(effect, Dismissed)] == [
        Dismissed(alice[1]), Dismissed(alice[2]), Dismissed(alice[3]),
    ]  # fmt: skip
    assert world.mailbox(new) == Mailbox()
    assert world.do(alice[1], ReceiptsSet(ALICE, True)) == UnknownDevice(alice[1])
    assert isinstance(world.send(bob[1], alice, 1, envelopes=(sealed(alice[1]),)), StaleDevices)
    assert isinstance(world.send(bob[1], alice, 1, envelopes=(sealed(new, registration=9),)), Accepted)


def test_senders_learn_that_the_former_devices_were_removed(world: World) -> None:
    alice, bob = world.join("alice", 2), world.join("bob")
    world.send(bob[1], alice, 1)
    world.do(SERVER, again(verified=True))
    assert ReceiptsGrew(bob[1]) in world.effects
    assert [(each.state, each.reason, each.key[3]) for each in world.receipts(bob[1])] == [
        (MessageState.FAILED, Reason.DEVICE_REMOVED, alice[1]),
        (MessageState.FAILED, Reason.DEVICE_REMOVED, alice[2]),
    ]
    assert (world.offer(alice[1]), world.offer(alice[2])) == ([], [])


def test_who_lost_the_answer_to_a_takeover_asks_again_and_needs_no_proof_any_more(world: World) -> None:
    world.join("alice", 2)
    first = world.do(SERVER, again(verified=True))
    before = alice_of(world)
    assert world.do(SERVER, again()) == first == Joined(device_id(ALICE, 3), 3)
    assert alice_of(world) == before
    assert world.effects == []


def test_an_account_whose_last_device_is_gone_still_has_its_lock(world: World) -> None:
    phone = locked(world)
    world.do(phone, Unlinked(phone))
    assert world.do(SERVER, again()) == PinNeeded("alice")
    assert world.do(SERVER, again(pin=RIGHT)) == Joined(device_id(ALICE, 2), 2)


def test_an_account_that_was_closed_has_no_lock(world: World) -> None:
    world.limit(handle_kept_ms=0)
    world.do(locked(world), Closed(ALICE))
    assert world.do(SERVER, again()) == Joined(device_id(ALICE, 2), 2)
    assert alice_of(world).lock is None


def test_two_handles_with_one_id_are_not_taken_over_from_each_other(world: World) -> None:
    locked(world)
    twin = Registered(ALICE, "alice's twin", 9, b"new", "phone", Platform.IOS, True, RIGHT)
    assert world.do(SERVER, twin) == HandleTaken("alice's twin")


# --- wrong PINs -------------------------------------------------------------------------------


def test_after_ten_wrong_pins_none_is_compared_for_a_week(world: World) -> None:
    locked(world)
    for left in range(9, 0, -1):
        assert world.do(SERVER, again(verified=True, pin=WRONG)) == PinWrong(left)
    assert world.do(SERVER, again(verified=True, pin=WRONG)) == PinLocked(WEEK_MS)
    world.wait(WEEK_MS - 1)
    assert world.do(SERVER, again(verified=True, pin=RIGHT)) == PinLocked(1)
    assert world.do(SERVER, again(verified=True, pin=WRONG)) == PinLocked(1)
    world.wait(1)
    assert world.do(SERVER, again(verified=True, pin=WRONG)) == PinWrong(9), "ten new tries"
    assert isinstance(world.do(SERVER, again(verified=True, pin=RIGHT)), Joined)


def test_the_right_pin_forgets_the_wrong_ones(world: World) -> None:
    locked(world)
    world.do(SERVER, again(pin=WRONG))
    world.do(SERVER, again(pin=RIGHT))
    assert alice_of(world).lock == Lock(SALT, RIGHT)
    assert world.do(SERVER, again(b"newer", pin=WRONG)) == PinWrong(9)


def test_a_new_pin_forgets_them_too_and_ends_the_week(world: World) -> None:
    phone = locked(world)
    world.limit(pin_tries=1)
    assert world.do(SERVER, again(pin=WRONG)) == PinLocked(WEEK_MS)
    assert world.do(phone, PinSet(ALICE, SALT, WRONG)) == Done()
    assert isinstance(world.do(SERVER, again(pin=WRONG)), Joined)


# --- the lock itself --------------------------------------------------------------------------


def test_only_a_device_of_the_account_sets_its_lock_or_removes_it(world: World) -> None:
    phone, bob = locked(world), world.join("bob")
    assert world.do(bob[1], PinSet(ALICE, b"", b"")) == NotAllowed()
    assert alice_of(world).lock == Lock(SALT, RIGHT)
    for _ in range(2):
        assert world.do(phone, PinSet(ALICE, b"", b"")) == Done()
    assert alice_of(world).lock is None
