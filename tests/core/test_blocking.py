from __future__ import annotations

from nightmail.core.blocking import PAGE
from nightmail.model.answers import Accepted, Done
from nightmail.model.limits import DAY_MS
from nightmail.model.notes import Withheld
from nightmail.model.records import Acked, Blocked, Closed, Known
from nightmail.model.refusals import NotAllowed, ShareFull
from nightmail.model.rows import Kept, KnownAccounts
from nightmail.model.words import Lane
from tests.core.world import START, Memory, Person, World

NORMAL, HIGH = Lane


def send(world: World, by: Person, to: Person, *numbers: int, lane: Lane = NORMAL) -> list[object]:
    said = [world.send(by[1], to, n, text=f"{by.handle} {n}", floor=n, lane=lane) for n in numbers]
    return [True if isinstance(each, Accepted) else each for each in said]


def block(world: World, who: Person, peer: Person, *, on: bool = True) -> None:
    assert world.do(who[1], Blocked(who.account, peer.account, on)) == Done()


def known(world: World, person: Person) -> KnownAccounts | None:
    return world.of(person.account).row(Kept.KNOWN, person.account)


def test_blocking_turns_what_waits_from_that_account_into_gaps_on_every_device_and_lane(world: World) -> None:
    mal, ada, bob = world.join("mal"), world.join("ada"), world.join("bob", devices=2)
    send(world, mal, bob, 1)
    send(world, ada, bob, 1)
    send(world, mal, bob, 2)
    send(world, mal, bob, 1, lane=HIGH)
    block(world, bob, mal)
    for device in (bob[1], bob[2]):
        assert world.texts(device) == ["gap 1-1 expired", "ada 1", "gap 3-3 expired"]
        assert world.texts(device, HIGH) == ["gap 1-1 expired"]
        box = world.mailbox(device)
        assert box is not None
        assert (box.waiting, box.bytes) == (1, len(f"{device}|ada 1"))


def test_a_sender_who_is_blocked_hears_nothing_of_what_waited(world: World) -> None:
    mal, bob = world.join("mal", devices=2), world.join("bob")
    send(world, mal, bob, 1)
    block(world, bob, mal)
    world.do(bob[1], Acked(NORMAL, 1))
    world.wait(31 * DAY_MS)
    assert (world.receipts(mal[1]), world.receipts(mal[2])) == ([], [])


def test_the_operator_can_see_what_a_block_has_ended(world: World) -> None:
    mal, bob = world.join("mal"), world.join("bob")
    send(world, mal, bob, 1, 2)
    block(world, bob, mal)
    assert world.notes(bob)[-1] == Withheld(START, bob[1], NORMAL, (1, 2))


def test_a_long_mailbox_is_looked_through_by_pages() -> None:
    world = World(256, Memory.SAVES)
    world.limit(stranger_entries=1_000)
    mal, ada, bob = world.join("mal"), world.join("ada"), world.join("bob")
    send(world, mal, bob, *range(1, PAGE))
    send(world, ada, bob, 1, 2)
    send(world, mal, bob, *range(PAGE, PAGE + 3))
    block(world, bob, mal)
    box = world.mailbox(bob[1])
    assert box is not None
    assert box.waiting == 2 + 3
    assert world.wait(1_000) == 1
    gaps = [f"gap 1-{PAGE - 1} expired", "ada 1", "ada 2", f"gap {PAGE + 2}-{PAGE + 4} expired"]
    assert world.texts(bob[1]) == gaps


def test_an_account_that_is_unblocked_before_its_page_comes_keeps_what_is_left() -> None:
    world = World()
    world.limit(stranger_entries=1_000)
    mal, bob = world.join("mal"), world.join("bob")
    send(world, mal, bob, *range(1, PAGE + 2))
    block(world, bob, mal)
    block(world, bob, mal, on=False)
    world.wait(1_000)
    assert world.texts(bob[1]) == [f"gap 1-{PAGE} expired", f"mal {PAGE + 1}"]


def test_blocking_frees_room_for_others_and_counts_it_exactly(world: World) -> None:
    world.limit(mailbox_entries=4, stranger_entries=2)
    mal, eve, ada, bob = world.join("mal"), world.join("eve"), world.join("ada"), world.join("bob")
    assert send(world, mal, bob, 1, 2) == [True, True]
    assert send(world, eve, bob, 1) == [ShareFull(2)]
    block(world, bob, mal)
    assert send(world, eve, bob, 1) == [True]
    world.do(bob[1], Known(bob.account, ada.account, True))
    assert send(world, ada, bob, 1, 2) == [True, True]


def test_only_a_device_of_the_account_frees_anything(world: World) -> None:
    mal, bob = world.join("mal"), world.join("bob")
    send(world, mal, bob, 1)
    assert world.do(mal[1], Blocked(bob.account, mal.account, True)) == NotAllowed()
    assert world.texts(bob[1]) == ["mal 1"]


# --- what the blocked account can tell ---------------------------------------------------------


def test_a_blocked_sender_is_refused_when_its_share_would_be_full_as_if_nobody_had_blocked_it(world: World) -> None:
    world.limit(stranger_entries=3)
    mal, bob = world.join("mal"), world.join("bob", devices=2)
    assert send(world, mal, bob, 1, 2) == [True, True]
    block(world, bob, mal)
    assert send(world, mal, bob, 3, 4) == [True, ShareFull(3)]
    assert send(world, mal, bob, 4) == [ShareFull(3)]


def test_a_sender_whose_share_is_full_does_not_hear_that_it_was_freed_by_a_block(world: World) -> None:
    world.limit(stranger_entries=2)
    mal, bob = world.join("mal"), world.join("bob")
    assert send(world, mal, bob, 1, 2, 3) == [True, True, ShareFull(2)]
    block(world, bob, mal)
    assert send(world, mal, bob, 3) == [ShareFull(2)]
    world.wait(30 * DAY_MS)
    assert send(world, mal, bob, 3) == [True]
    block(world, bob, mal, on=False)
    assert known(world, bob) == KnownAccounts()


def test_whom_an_account_knows_is_forgotten_with_it(world: World) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.do(bob[1], Known(bob.account, ada.account, True))
    assert world.do(bob[1], Closed(bob.account)) == Done()
    assert known(world, bob) is None
