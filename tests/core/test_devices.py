from __future__ import annotations

import pytest

from nightmail.core.devices import FORMER_KEPT
from nightmail.model.answers import Accepted, Done, Joined
from nightmail.model.effects import Dismissed, ReceiptsGrew
from nightmail.model.ids import DEVICES_EVER, SERVER, account_id, device_id
from nightmail.model.records import (
    Acked,
    AnyBody,
    Blocked,
    Closed,
    Linked,
    Listed,
    ReceiptsSet,
    Registered,
    Relabelled,
    Unlinked,
)
from nightmail.model.refusals import (
    HandleTaken,
    ListConflict,
    NotAllowed,
    StaleDevices,
    TooManyBlocked,
    TooManyDevices,
    TooManyLinked,
    UnknownAccount,
    UnknownDevice,
)
from nightmail.model.rows import Account, Device, Kept, Mailbox, PendingReceipt, PendingReceipts
from nightmail.model.words import Lane, MessageState, Platform, Reason
from tests.core.world import START, Memory, Person, World, sealed

NORMAL, HIGH = Lane
CLI, IOS = Platform.CLI, Platform.IOS
ALICE = account_id("alice")


def registered(
    token: bytes = b"secret", registration: int = 7, handle: str = "alice", account: int = ALICE
) -> Registered:
    return Registered(account, handle, registration, token, "phone", IOS)


def linked(token: bytes = b"other", registration: int = 8) -> Linked:
    return Linked(ALICE, registration, token, "laptop", CLI)


def alice_of(world: World) -> Account:
    return world.of(ALICE).row(Kept.ACCOUNT, ALICE)


# --- coming into being ------------------------------------------------------------------------


def test_a_new_account_has_one_listed_device_with_an_empty_mailbox(world: World) -> None:
    first = device_id(ALICE, 1)
    assert world.do(SERVER, registered()) == Joined(first, 1)
    assert alice_of(world) == Account(
        "alice", devices={first: Device(7, b"secret", "phone", IOS)}, listed={first: 7}, list_version=1, next_index=2,
        revision=1, listed_since={first: 1},
    )  # fmt: skip
    assert world.mailbox(first) == Mailbox()
    assert world.offer(first) == []


def test_registering_again_with_the_same_token_is_answered_with_the_same_device(world: World) -> None:
    first = world.do(SERVER, registered())
    assert world.do(SERVER, registered()) == first == Joined(device_id(ALICE, 1), 1)
    assert len(alice_of(world).devices) == 1


@pytest.mark.parametrize("other", [registered(token=b"another"), registered(registration=9)])
def test_a_handle_is_taken_for_everybody_else(world: World, other: Registered) -> None:
    world.do(SERVER, registered())
    before = alice_of(world)
    assert world.do(SERVER, other) == HandleTaken("alice")
    assert alice_of(world) == before


def test_two_handles_with_one_id_are_not_confused(world: World) -> None:
    world.do(SERVER, registered())
    twin = registered(handle="alice's twin", token=b"another")
    assert world.do(SERVER, twin) == HandleTaken("alice's twin")
    world.do(SERVER, Closed(ALICE))
    assert world.do(SERVER, twin) == HandleTaken("alice's twin")


def test_a_linked_device_is_not_written_to_before_a_list_names_it(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    second = device_id(ALICE, 2)
    assert world.do(alice[1], linked()) == Joined(second, 1)
    assert alice_of(world).listed == {alice[1]: 101}
    assert world.mailbox(second) == Mailbox()
    assert isinstance(world.send(bob[1], alice, 1), Accepted)
    assert world.texts(second) == []
    assert world.list_devices(alice[1], alice, (alice[1], second)) == Done()
    assert isinstance(world.send(bob[1], alice, 2, text="both"), Accepted)
    assert world.texts(second) == ["both"]


def test_linking_again_with_the_same_token_is_answered_with_the_same_device(world: World) -> None:
    alice = world.join("alice")
    first = world.do(alice[1], linked())
    assert world.do(alice[1], linked()) == first == Joined(device_id(ALICE, 2), 1)
    assert world.do(alice[1], linked(token=b"third")) == Joined(device_id(ALICE, 3), 1)


@pytest.mark.parametrize("memory", Memory)
def test_the_request_of_a_device_that_was_removed_comes_late_and_lets_nobody_join(memory: Memory) -> None:
    """A cluster may take a request twice: its first answer was lost, and the log had it all the same."""
    world = World(2, memory, fold=8)
    alice = world.join("alice", devices=3)
    world.do(alice[1], Unlinked(alice[2]))
    before = alice_of(world)
    second = Linked(ALICE, 102, b"token 2", "another", Platform.CLI)
    assert world.do(alice[1], second) == Joined(alice[2], before.list_version)
    again = Registered(ALICE, "alice", 109, b"new", "phone", Platform.CLI, verified=True)
    assert world.do(SERVER, again) == Joined(device_id(ALICE, 4), 4)
    first = Registered(ALICE, "alice", 101, b"token 1", "phone", Platform.CLI, verified=True)
    assert world.do(SERVER, first) == Joined(alice[1], 4)
    assert list(alice_of(world).devices) == [device_id(ALICE, 4)]


def test_only_the_devices_that_were_removed_last_are_remembered() -> None:
    world = World(2, Memory.KEEPS, fold=8)
    alice = world.join("alice", devices=2)
    for index in range(3, 4 + FORMER_KEPT):
        world.do(alice[1], linked(token=f"{index}".encode()))
        world.do(alice[1], Unlinked(device_id(ALICE, index)))
    assert [former.device for former in alice_of(world).former] == [
        device_id(ALICE, index) for index in range(4, 4 + FORMER_KEPT)
    ]


def test_an_account_can_have_4095_devices_over_its_life(world: World) -> None:
    alice = world.join("alice")
    node = world.of(ALICE)
    row = node.row(Kept.ACCOUNT, ALICE)
    row.next_index = DEVICES_EVER
    node.state.accounts.put(ALICE, row, node.offset)
    assert world.do(alice[1], linked()) == Joined(device_id(ALICE, DEVICES_EVER), 1)
    assert world.do(alice[1], linked(token=b"one more")) == TooManyDevices(DEVICES_EVER)
    world.limit(handle_kept_ms=0)
    world.do(alice[1], Closed(ALICE))
    assert world.do(SERVER, registered(token=b"one more")) == TooManyDevices(DEVICES_EVER)
    assert alice_of(world).closed


def test_so_many_devices_are_linked_at_once_listed_or_not(world: World) -> None:
    world.limit(devices=3)
    alice = world.join("alice", devices=2)
    third = world.do(alice[1], linked(token=b"third"))
    assert third == Joined(device_id(ALICE, 3), 2)
    assert world.do(alice[1], linked(token=b"one more")) == TooManyLinked(3)
    assert world.do(alice[1], linked(token=b"third")) == third, "asking again is not linking again"
    world.do(alice[1], Unlinked(device_id(ALICE, 3)))
    assert world.do(alice[1], linked(token=b"one more")) == Joined(device_id(ALICE, 4), 2)


def test_beginning_anew_ends_as_many_devices_as_there_are(world: World) -> None:
    world.limit(devices=2)
    world.join("alice", devices=2)
    again = Registered(ALICE, "alice", 7, b"again", "phone", CLI, verified=True)
    assert world.do(SERVER, again) == Joined(device_id(ALICE, 3), 3)
    assert list(alice_of(world).devices) == [device_id(ALICE, 3)]


# --- the device list --------------------------------------------------------------------------


def test_the_next_list_replaces_the_one_before(world: World) -> None:
    alice = world.join("alice")
    world.link(alice, listed=False)
    assert world.do(alice[1], Listed(ALICE, 2, (alice[1], alice[2]), b"signed")) == Done()
    row = alice_of(world)
    assert (row.listed, row.list_version, row.signed_list) == ({alice[1]: 101, alice[2]: 102}, 2, b"signed")


def test_the_same_list_again_is_answered_alike(world: World) -> None:
    alice = world.join("alice")
    for _ in range(2):
        assert world.do(alice[1], Listed(ALICE, 2, (alice[1],), b"signed")) == Done()
    assert alice_of(world).list_version == 2


@pytest.mark.parametrize(
    ("version", "indices"),
    [(1, (1,)), (3, (1,)), (0, (1,)), (2, (1, 2)), (2, (1, 9))],
    ids=["not the next", "too new", "too old", "names an unlinked device", "names a device that never was"],
)
def test_a_list_that_is_not_built_on_the_last_one_is_refused(
    world: World, version: int, indices: tuple[int, ...]
) -> None:
    alice = world.join("alice")
    before = alice_of(world)
    devices = tuple(device_id(ALICE, index) for index in indices)
    assert world.do(alice[1], Listed(ALICE, version, devices, b"signed")) == ListConflict(1)
    assert alice_of(world) == before


def test_of_two_lists_for_one_version_the_first_wins(world: World) -> None:
    alice = world.join("alice", devices=2)
    assert world.do(alice[1], Listed(ALICE, 3, (alice[1], alice[2]), b"one")) == Done()
    assert world.do(alice[2], Listed(ALICE, 3, (alice[1], alice[2]), b"two")) == ListConflict(3)


def test_whom_the_next_list_leaves_out_is_removed_at_once(world: World) -> None:
    alice, bob = world.join("alice", devices=3), world.join("bob")
    world.send(bob[1], alice)
    assert world.list_devices(alice[1], alice, (alice[2],)) == Done()
    assert world.effects == [Dismissed(alice[1]), Dismissed(alice[3]), ReceiptsGrew(bob[1]), ReceiptsGrew(bob[1])]
    assert list(alice_of(world).devices) == [alice[2]]
    assert (world.mailbox(alice[1]), world.mailbox(alice[3])) == (None, None)
    assert world.texts(alice[2]) == ["hello"]


def test_a_linked_device_that_was_never_listed_survives_a_list_without_it(world: World) -> None:
    alice = world.join("alice")
    world.link(alice, listed=False)
    world.list_devices(alice[1], alice, (alice[1],))
    assert list(alice_of(world).devices) == [alice[1], alice[2]]


def test_the_order_in_which_a_list_names_devices_is_kept_whether_loaded_or_not(world: World) -> None:
    alice = world.join("alice", devices=3)
    world.list_devices(alice[1], alice, (alice[3], alice[1], alice[2]))
    assert list(alice_of(world).listed) == [alice[3], alice[1], alice[2]]


# --- a device is revoked ----------------------------------------------------------------------


def test_a_revoked_device_is_gone_and_its_senders_are_told_at_once(world: World) -> None:
    alice, bob, carol = world.join("alice", devices=2), world.join("bob"), world.join("carol")
    world.send(bob[1], alice, 1)
    world.send(bob[1], alice, 2)
    world.send(carol[1], alice, 1)
    world.send(bob[1], alice, 1, lane=HIGH)
    world.now += 70
    assert world.do(alice[1], Unlinked(alice[2])) == Done()
    assert world.mailbox(alice[2]) is None
    assert alice_of(world).listed == {alice[1]: 101}

    def failed(by: int, n: int, seq: int, lane: Lane = NORMAL) -> PendingReceipt:
        return PendingReceipt(
            (by, ALICE, lane, alice[2], MessageState.FAILED, n), seq, START + 70, Reason.DEVICE_REMOVED, [n, n]
        )

    assert world.receipts(bob[1]) == [failed(bob[1], 1, 1), failed(bob[1], 2, 2), failed(bob[1], 1, 3, HIGH)]
    assert world.receipts(carol[1]) == [failed(carol[1], 1, 1)]
    assert world.texts(alice[1]) == ["hello", "hello", "hello"]


def test_the_connections_of_a_revoked_device_are_closed(world: World) -> None:
    alice = world.join("alice", devices=2)
    world.do(alice[1], Unlinked(alice[2]))
    assert world.effects == [Dismissed(alice[2])]


def test_what_a_revoked_device_had_taken_is_not_failed(world: World) -> None:
    alice, bob = world.join("alice", devices=2), world.join("bob")
    world.send(bob[1], alice)
    world.do(alice[2], Acked(NORMAL, 1))
    world.do(alice[1], Unlinked(alice[2]))
    key = (bob[1], ALICE, NORMAL, alice[2], MessageState.DELIVERED, 0)
    assert world.receipts(bob[1]) == [PendingReceipt(key, 1, START, Reason.NONE, [1, 1])]


def test_a_late_ack_of_a_revoked_device_is_refused(world: World) -> None:
    alice, bob = world.join("alice", devices=2), world.join("bob")
    world.send(bob[1], alice)
    world.do(alice[1], Unlinked(alice[2]))
    before = world.receipts(bob[1])
    assert world.do(alice[2], Acked(NORMAL, 1)) == UnknownDevice(alice[2])
    assert world.receipts(bob[1]) == before


def test_own_copies_of_a_revoked_device_fail_silently(world: World) -> None:
    alice, bob = world.join("alice", devices=2), world.join("bob")
    world.send(alice[1], bob)
    world.do(alice[1], Unlinked(alice[2]))
    assert world.receipts(alice[1]) == []


def test_senders_learn_that_a_revoked_device_is_extra(world: World) -> None:
    alice, bob = world.join("alice", devices=2), world.join("bob")
    stale = world.sent(bob[1], alice)
    world.do(alice[1], Unlinked(alice[2]))
    assert world.do(bob[1], stale) == StaleDevices(2, (), (alice[2],), ())
    assert isinstance(world.send(bob[1], alice, envelopes=(sealed(alice[1]),)), Accepted)


def test_a_device_can_revoke_itself(world: World) -> None:
    alice = world.join("alice", devices=2)
    assert world.do(alice[2], Unlinked(alice[2])) == Done()
    assert list(alice_of(world).devices) == [alice[1]]


def test_a_device_that_never_was_cannot_be_revoked(world: World) -> None:
    alice = world.join("alice")
    assert world.do(alice[1], Unlinked(device_id(ALICE, 5))) == UnknownDevice(device_id(ALICE, 5))


def test_a_revoked_device_number_is_never_given_again(world: World) -> None:
    alice = world.join("alice", devices=2)
    world.do(alice[1], Unlinked(alice[2]))
    assert world.do(alice[1], linked()) == Joined(device_id(ALICE, 3), 2)


# --- an account ends --------------------------------------------------------------------------


def test_a_closed_account_has_no_devices_left_and_everybody_is_told(world: World) -> None:
    alice, bob = world.join("alice", devices=2), world.join("bob")
    world.send(bob[1], alice)
    assert world.do(alice[1], Closed(ALICE)) == Done()
    assert [effect for effect in world.effects if isinstance(effect, Dismissed)] == [
        Dismissed(alice[1]),
        Dismissed(alice[2]),
    ]
    assert alice_of(world) == Account(
        "alice", list_version=2, signed_list=b"signed 2", next_index=3, closed=True, closed_at=world.now, revision=3
    )
    assert [(change.key[3], change.reason) for change in world.receipts(bob[1])] == [
        (alice[1], Reason.DEVICE_REMOVED),
        (alice[2], Reason.DEVICE_REMOVED),
    ]
    assert world.do(alice[1], Closed(ALICE)) == UnknownAccount(ALICE)


def test_a_handle_that_comes_back_gets_new_device_numbers_and_a_newer_list(world: World) -> None:
    alice, bob = world.join("alice", devices=2), world.join("bob")
    stale = world.sent(bob[1], alice)
    world.limit(handle_kept_ms=0)
    world.do(alice[1], Closed(ALICE))
    third = device_id(ALICE, 3)
    assert world.do(SERVER, registered(b"token 1", 101)) == Joined(third, 3)
    assert alice_of(world).listed == {third: 101}
    assert world.do(bob[1], stale) == StaleDevices(3, (third,), (alice[1], alice[2]), ())
    assert world.mailbox(third) == Mailbox()


def test_a_sender_keeps_its_number_through_closing_and_coming_back(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    first = world.send(bob[1], alice, 1)
    world.limit(handle_kept_ms=0)
    world.do(alice[1], Closed(ALICE))
    world.do(SERVER, registered())
    assert world.send(bob[1], alice, 1) == first
    assert isinstance(world.send(bob[1], alice, 2, text="back"), Accepted)
    assert world.texts(device_id(ALICE, 2)) == ["back"]


def test_whom_a_closed_account_had_blocked_is_forgotten(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.do(alice[1], Blocked(ALICE, bob.account, True))
    world.limit(handle_kept_ms=0)
    world.do(alice[1], Closed(ALICE))
    world.do(SERVER, registered())
    assert alice_of(world).blocked == {}


def test_the_handle_of_a_closed_account_is_kept_for_its_owner_for_a_while(world: World) -> None:
    alice = world.join("alice")
    world.limit(handle_kept_ms=1_000)
    world.do(alice[1], Closed(ALICE))
    world.wait(999)
    assert world.do(SERVER, registered(b"a stranger's")) == HandleTaken("alice")
    verified = Registered(ALICE, "alice", 8, b"the owner's", "phone", IOS, True)
    assert world.do(SERVER, verified) == Joined(device_id(ALICE, 2), 2)
    assert (alice_of(world).closed, alice_of(world).closed_at) == (False, 0)
    world.do(SERVER, Closed(ALICE))
    world.wait(1_000)
    assert world.do(SERVER, registered(b"a stranger's")) == Joined(device_id(ALICE, 3), 3)


# --- wishes -----------------------------------------------------------------------------------


def test_blocking_and_unblocking_may_be_repeated(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    for on, blocked in ((True, {bob.account: START}), (False, {})):
        for _ in range(2):
            assert world.do(alice[1], Blocked(ALICE, bob.account, on)) == Done()
            assert alice_of(world).blocked == blocked


def test_the_block_list_is_bounded(world: World) -> None:
    world.limit(blocked_accounts=2)
    alice = world.join("alice")
    for peer in (1, 2):
        assert world.do(alice[1], Blocked(ALICE, peer, True)) == Done()
    assert world.do(alice[1], Blocked(ALICE, 3, True)) == TooManyBlocked(2)
    assert world.do(alice[1], Blocked(ALICE, 2, True)) == Done()
    assert world.do(alice[1], Blocked(ALICE, 1, False)) == Done()
    assert world.do(alice[1], Blocked(ALICE, 3, True)) == Done()
    assert list(alice_of(world).blocked) == [2, 3]


def test_read_receipts_are_on_until_they_are_switched_off(world: World) -> None:
    alice = world.join("alice")
    assert alice_of(world).read_receipts
    assert world.do(alice[1], ReceiptsSet(ALICE, False)) == Done()
    assert not alice_of(world).read_receipts


# --- rights -----------------------------------------------------------------------------------

OF_AN_ACCOUNT: list[AnyBody] = [
    Linked(ALICE, 1, b"token", "label", CLI),
    Listed(ALICE, 3, (device_id(ALICE, 1),), b"signed"),
    Unlinked(device_id(ALICE, 1)),
    Closed(ALICE),
    Blocked(ALICE, 99, True),
    ReceiptsSet(ALICE, False),
]
names = [type(body).__name__ for body in OF_AN_ACCOUNT]


@pytest.mark.parametrize("body", OF_AN_ACCOUNT, ids=names)
def test_only_a_device_of_the_account_may(world: World, body: AnyBody) -> None:
    world.join("alice", devices=2)
    bob = world.join("bob")
    before = alice_of(world)
    assert world.do(bob[1], body) == NotAllowed()
    assert alice_of(world) == before


@pytest.mark.parametrize("body", OF_AN_ACCOUNT, ids=names)
def test_a_revoked_device_of_the_account_may_not(world: World, body: AnyBody) -> None:
    alice = world.join("alice", devices=2)
    world.do(alice[1], Unlinked(alice[2]))
    before = alice_of(world)
    assert world.do(alice[2], body) == UnknownDevice(alice[2])
    assert alice_of(world) == before


@pytest.mark.parametrize("body", OF_AN_ACCOUNT, ids=names)
def test_the_server_itself_may(world: World, body: AnyBody) -> None:
    world.join("alice", devices=2)
    assert isinstance(world.do(SERVER, body), Done | Joined)


@pytest.mark.parametrize("body", OF_AN_ACCOUNT, ids=names)
def test_nobody_may_where_there_is_no_account(world: World, body: AnyBody) -> None:
    assert world.do(SERVER, body) == UnknownAccount(ALICE)
    assert world.do(device_id(ALICE, 1), body) == UnknownAccount(ALICE)


def test_a_device_keeps_the_receipts_that_came_before_it_was_listed(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.link(alice, listed=False)
    world.send(alice[1], bob)
    world.do(bob[1], Acked(NORMAL, 1))
    world.list_devices(alice[1], alice, (alice[1], alice[2]))
    key = (alice[1], bob.account, NORMAL, bob[1], MessageState.DELIVERED, 0)
    assert world.changes(alice[2]) == PendingReceipts(1, {key: PendingReceipt(key, 1, START, Reason.NONE, [1, 1])})


def test_people_are_not_confused(world: World) -> None:
    people: list[Person] = [world.join(handle) for handle in ("alice", "bob", "carol", "dave")]
    assert len({person[1] for person in people}) == 4


# --- names ------------------------------------------------------------------------------------


def test_a_device_gets_another_name_from_any_device_of_its_account(world: World) -> None:
    alice, bob = world.join("alice", 2), world.join("bob")
    for _ in range(2):
        assert world.do(alice[2], Relabelled(alice[1], "old phone")) == Done()
    assert [device.label for device in alice_of(world).devices.values()] == ["old phone", "another"]
    assert world.do(bob[1], Relabelled(alice[1], "mine")) == NotAllowed()
    assert world.do(alice[1], Relabelled(device_id(ALICE, 9), "nobody's")) == UnknownDevice(device_id(ALICE, 9))
    assert alice_of(world).devices[alice[1]].label == "old phone"


# --- a device that is linked, but on no list ----------------------------------------------------


def test_a_device_that_no_list_names_may_not_list_revoke_or_close_and_may_leave(world: World) -> None:
    bob = world.join("bob")
    pending = world.link(bob, listed=False)
    before = world.account(bob)
    assert world.list_devices(pending, bob, (bob[1], pending)) == NotAllowed()
    assert world.do(pending, Unlinked(bob[1])) == NotAllowed()
    assert world.do(pending, Closed(bob.account)) == NotAllowed()
    assert world.account(bob) == before
    assert world.do(pending, Unlinked(pending)) == Done()
    assert list(world.account(bob).devices) == [bob[1]]
