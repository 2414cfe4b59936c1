from __future__ import annotations

from nightmail.model.answers import Accepted, Done
from nightmail.model.limits import DAY_MS, FoldLimits
from nightmail.model.records import Acked, Known, Unlinked
from nightmail.model.refusals import MailboxFull, NotAllowed, OutOfOrder, ShareFull, UnknownDevice
from nightmail.model.rows import Kept, KnownAccounts, MailboxShares
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.world import START, Person, World

NORMAL, HIGH = Lane


def body(n: int) -> str:
    """A text of a length that does not depend on its number."""
    return f"{n:04}" + "." * 30


def size(world: World, by: int, to: Person) -> int:
    return len(world.sent(by, to, 1, text=body(1)).envelopes[0].ciphertext)


def flood(world: World, by: int, to: Person, count: int, first: int = 1, lane: Lane = NORMAL) -> list[object]:
    """Send so many messages; what each is answered, *sent* being True."""
    said = [world.send(by, to, n, text=body(n), floor=n, lane=lane) for n in range(first, first + count)]
    return [True if isinstance(each, Accepted) else each for each in said]


def shares(world: World, device: int) -> MailboxShares | None:
    return world.of(device >> 12).row(Kept.SHARES, device)


def known(world: World, person: Person) -> KnownAccounts | None:
    return world.of(person.account).row(Kept.KNOWN, person.account)


def test_a_stranger_may_leave_a_hundred_entries_and_not_one_more() -> None:
    world = World()
    mal, bob = world.join("mal"), world.join("bob")
    assert flood(world, mal[1], bob, 101) == [True] * 100 + [ShareFull(100)]
    assert flood(world, mal[1], bob, 1, lane=HIGH) == [ShareFull(100)]


def test_a_stranger_may_leave_as_many_bytes_as_the_limit_says_and_no_more(world: World) -> None:
    mal, bob = world.join("mal"), world.join("bob")
    world.limit(stranger_bytes=3 * size(world, mal[1], bob))
    assert flood(world, mal[1], bob, 4) == [True, True, True, ShareFull(100)]


def test_what_one_stranger_may_leave_does_not_depend_on_others_and_a_refused_number_stays_free(world: World) -> None:
    world.limit(stranger_entries=2)
    mal, eve, bob = world.join("mal"), world.join("eve"), world.join("bob")
    assert flood(world, mal[1], bob, 3) == [True, True, ShareFull(2)]
    assert flood(world, eve[1], bob, 3) == [True, True, ShareFull(2)]
    world.do(bob[1], Acked(NORMAL, 1))
    assert flood(world, mal[1], bob, 2, first=3) == [True, ShareFull(2)]
    assert flood(world, eve[1], bob, 1, first=3) == [ShareFull(2)]


def test_somebody_known_may_hold_a_tenth_of_a_mailbox_and_no_more(world: World) -> None:
    world.limit(stranger_entries=2, mailbox_entries=40)
    ada, bob = world.join("ada"), world.join("bob")
    assert world.do(bob[1], Known(bob.account, ada.account, True)) == Done()
    assert flood(world, ada[1], bob, 5) == [True] * 4 + [ShareFull(4)]


def test_a_tenth_of_a_mailbox_is_counted_in_bytes_too(world: World) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    each = size(world, ada[1], bob)
    world.limit(stranger_bytes=each, mailbox_bytes=30 * each)
    world.do(bob[1], Known(bob.account, ada.account, True))
    assert flood(world, ada[1], bob, 4) == [True, True, True, ShareFull(1_000)]


def test_strangers_together_fill_half_of_a_mailbox_and_the_rest_is_for_those_who_are_known(world: World) -> None:
    world.limit(stranger_entries=2, mailbox_entries=8, share_parts=2)
    bob, ada = world.join("bob"), world.join("ada")
    world.do(bob[1], Known(bob.account, ada.account, True))
    strangers = [world.join(f"mal{index}") for index in range(3)]
    assert [flood(world, each[1], bob, 2) for each in strangers] == [
        [True, True],
        [True, True],
        [ShareFull(2), OutOfOrder(1)],
    ]
    assert flood(world, ada[1], bob, 5) == [True] * 4 + [MailboxFull(8)]


def test_all_devices_of_one_account_have_one_share(world: World) -> None:
    world.limit(stranger_entries=3)
    mal, bob = world.join("mal", devices=2), world.join("bob")
    assert flood(world, mal[1], bob, 2) == [True, True]
    assert flood(world, mal[2], bob, 2) == [True, ShareFull(3)]


def test_a_full_share_on_one_device_fails_that_device_alone(world: World) -> None:
    world.limit(stranger_entries=2)
    mal, bob = world.join("mal"), world.join("bob", devices=2)
    flood(world, mal[1], bob, 2)
    world.do(bob[1], Acked(NORMAL, 2))
    assert flood(world, mal[1], bob, 1, first=3) == [True]
    assert (len(world.texts(bob[1])), len(world.texts(bob[2]))) == (1, 2)
    failed = [r for r in world.receipts(mal[1]) if r.state is MessageState.FAILED]
    assert [(r.key[3], r.reason, r.numbers) for r in failed] == [(bob[2], Reason.MAILBOX_FULL, [3, 3])]


def test_what_a_person_wrote_waits_for_their_own_devices_without_a_share(world: World) -> None:
    world.limit(stranger_entries=2)
    ada, bob = world.join("ada", devices=2), world.join("bob")
    for n in range(1, 6):
        world.send(ada[1], bob, n, text=body(n))
        world.do(bob[1], Acked(NORMAL, n))
    assert len(world.texts(ada[2])) == 5
    assert flood(world, ada[1], ada, 3) == [True] * 3


# --- counted ----------------------------------------------------------------------------------


def test_nothing_is_counted_until_a_mailbox_holds_as_much_as_a_stranger_may(world: World) -> None:
    world.limit(stranger_entries=3)
    mal, eve, bob = world.join("mal"), world.join("eve"), world.join("bob")
    flood(world, mal[1], bob, 3)
    assert shares(world, bob[1]) is None
    flood(world, eve[1], bob, 1)
    each = size(world, mal[1], bob)
    assert shares(world, bob[1]) == MailboxShares({mal.account: (3, 3 * each), eve.account: (1, each)})


def test_shares_follow_what_is_acknowledged_and_are_forgotten_when_little_is_left(world: World) -> None:
    world.limit(stranger_entries=4)
    mal, eve, bob = world.join("mal"), world.join("eve"), world.join("bob")
    flood(world, mal[1], bob, 4)
    flood(world, eve[1], bob, 1)
    each = size(world, mal[1], bob)
    world.do(bob[1], Acked(NORMAL, 3))
    assert shares(world, bob[1]) == MailboxShares({mal.account: (1, each), eve.account: (1, each)})
    flood(world, mal[1], bob, 1, first=5)
    assert shares(world, bob[1]) == MailboxShares({mal.account: (2, 2 * each), eve.account: (1, each)})
    world.do(bob[1], Acked(NORMAL, 5))
    assert shares(world, bob[1]) is None
    assert flood(world, mal[1], bob, 1, first=6) == [True]


def test_shares_follow_what_expires(world: World) -> None:
    world.limit(stranger_entries=2)
    mal, eve, bob = world.join("mal"), world.join("eve"), world.join("bob")
    world.send(mal[1], bob, 1, text=body(1), life_ms=60_000)
    flood(world, mal[1], bob, 1, first=2)
    flood(world, eve[1], bob, 1)
    assert flood(world, mal[1], bob, 1, first=3) == [ShareFull(2)]
    world.wait(61_000)
    assert flood(world, mal[1], bob, 1, first=3) == [True]
    world.wait(31 * DAY_MS)
    assert shares(world, bob[1]) is None


def test_shares_end_with_their_device(world: World) -> None:
    world.limit(stranger_entries=2)
    mal, bob = world.join("mal"), world.join("bob", devices=2)
    flood(world, mal[1], bob, 3)
    assert shares(world, bob[2]) is not None
    world.do(bob[1], Unlinked(bob[2]))
    assert shares(world, bob[2]) is None


def test_a_mailbox_that_filled_up_under_roomier_limits_is_counted_once(world: World) -> None:
    mal, bob = world.join("mal"), world.join("bob")
    flood(world, mal[1], bob, 7)
    world.limit(stranger_entries=5)
    assert flood(world, mal[1], bob, 1, first=8) == [ShareFull(5)]
    assert shares(world, bob[1]) == MailboxShares({mal.account: (7, 7 * size(world, mal[1], bob))})


# --- whom an account knows ---------------------------------------------------------------------


def test_whom_an_account_knows_is_said_once_and_may_be_repeated_and_taken_back(world: World) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    assert world.do(bob[1], Known(bob.account, ada.account, True)) == Done()
    world.now += 5
    assert world.do(bob[1], Known(bob.account, ada.account, True)) == Done()
    assert known(world, bob) == KnownAccounts({ada.account: START})
    assert world.do(bob[1], Known(bob.account, ada.account, False)) == Done()
    assert world.do(bob[1], Known(bob.account, ada.account, False)) == Done()
    assert known(world, bob) == KnownAccounts({})


def test_only_a_device_of_the_account_says_whom_it_knows(world: World) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    assert world.do(ada[1], Known(bob.account, ada.account, True)) == NotAllowed()
    assert world.do(bob[1] + 1, Known(bob.account, ada.account, True)) == UnknownDevice(bob[1] + 1)
    assert known(world, bob) is None


def test_of_too_many_known_accounts_the_oldest_is_dropped(world: World) -> None:
    world.limit(known_accounts=2)
    bob, others = world.join("bob"), [world.join(f"friend{index}").account for index in range(3)]
    for each in others:
        world.do(bob[1], Known(bob.account, each, True))
    assert known(world, bob) == KnownAccounts(dict.fromkeys(others[1:], START))


def test_the_limits_are_those_that_were_promised() -> None:
    limits = FoldLimits()
    assert (limits.mailbox_entries // limits.share_parts, limits.mailbox_bytes // limits.share_parts) == (
        1_000,
        6_710_886,
    )
    assert (limits.stranger_entries, limits.stranger_bytes) == (100, 1 << 20)
