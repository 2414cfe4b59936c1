"""A message's life, told from notes alone."""

from __future__ import annotations

import msgspec
import pytest

from nightmail.core.tracing import author_of, placements, trace
from nightmail.model.ids import SERVER, account_id, device_id, log_of
from nightmail.model.notes import ConnectionChanged, Dropped, Fetched, Looked, Note, Placed, Taken, Withheld
from nightmail.model.traces import Event, Trace
from nightmail.model.words import Lane, MessageState, Reason

NORMAL, HIGH = Lane
ALICE, BOB = account_id("alice"), account_id("bob")
PHONE, LAPTOP, TABLET, WATCH = device_id(ALICE, 1), device_id(ALICE, 2), device_id(BOB, 1), device_id(BOB, 2)
ID, RESEAL, OTHER = (f"{PHONE:x}:1700000000000:{n:05d}:abc" for n in (1, 2, 3))


def placed(
    at: int, *places: tuple[int, int], n: int = 1, name: str = ID, of: str | None = None, lane: Lane = NORMAL
) -> Placed:
    return Placed(at, PHONE, BOB, lane, n, name, of, False, False, places)


def copied(at: int, *places: tuple[int, int]) -> Placed:
    return Placed(at, PHONE, BOB, NORMAL, 1, ID, None, True, False, places)


def life(*notes: Note, message_id: str = ID) -> Trace:
    """From a delivery log of one line per block."""
    blocks = [msgspec.msgpack.encode([note]) for note in notes]
    return trace(message_id, placements(message_id, blocks), blocks)


def test_an_ordinary_life_is_told_in_order() -> None:
    assert life(
        placed(10, (TABLET, 4)),
        Taken(20, TABLET, NORMAL, 1, 9, ()),
        Looked(30, TABLET, PHONE, NORMAL, 1, 3),
    ) == Trace(
        ID,
        [
            Event(10, 0, "accepted"),
            Event(10, TABLET, "queued:4"),
            Event(20, TABLET, "delivered"),
            Event(20, TABLET, "deleted"),
            Event(30, TABLET, "read"),
        ],
        {TABLET: MessageState.READ},
    )


def test_a_message_that_is_blocked_at_once_looks_to_its_sender_like_one_that_waits() -> None:
    blocked = Placed(10, PHONE, BOB, NORMAL, 1, ID, None, False, True, ((TABLET, 0), (WATCH, 0)))
    assert life(blocked) == Trace(ID, [Event(10, 0, "blocked")], {TABLET: MessageState.SENT, WATCH: MessageState.SENT})


def test_a_message_whose_sender_is_blocked_later_stays_sent_and_is_told_to_the_operator() -> None:
    assert life(placed(10, (TABLET, 4)), Withheld(20, TABLET, NORMAL, (3, 4))) == Trace(
        ID,
        [
            Event(10, 0, "accepted"),
            Event(10, TABLET, "queued:4"),
            Event(20, TABLET, "blocked"),
            Event(20, TABLET, "deleted"),
        ],
        {TABLET: MessageState.SENT},
    )


def routes(*notes: Note, message_id: str = ID) -> list[tuple[int, str]]:
    words = ("online", "queued")
    events = life(*notes, message_id=message_id).events
    return [(event.device, event.what) for event in events if event.what.partition(":")[0] in words]


def test_a_device_that_is_connected_when_a_message_is_filed_is_told_as_online() -> None:
    came, went = ConnectionChanged(5, TABLET, True), ConnectionChanged(11, TABLET, False)
    assert routes(came, placed(10, (TABLET, 4), (WATCH, 7)), went) == [(TABLET, "online:4"), (WATCH, "queued:7")]
    assert routes(came, went, placed(10, (TABLET, 4))) == [(TABLET, "queued:4")]
    assert routes(placed(10, (TABLET, 4)), came) == [(TABLET, "queued:4")]


def test_nobody_is_connected_when_a_server_begins() -> None:
    came, began = ConnectionChanged(5, TABLET, True), ConnectionChanged(8, SERVER, False)
    assert routes(came, began, placed(10, (TABLET, 4))) == [(TABLET, "queued:4")]
    assert routes(began, came, placed(10, (TABLET, 4))) == [(TABLET, "online:4")]


def test_a_message_and_its_reseal_may_have_gone_different_ways() -> None:
    first, again = placed(10, (TABLET, 4)), placed(20, (TABLET, 5), n=2, name=RESEAL, of=ID)
    assert routes(first, ConnectionChanged(15, TABLET, True), again) == [(TABLET, "queued:4"), (TABLET, "online:5")]


def test_how_a_message_was_routed_does_not_change_when_its_lines_come_twice() -> None:
    lines = (placed(10, (TABLET, 4)), ConnectionChanged(15, TABLET, True))
    assert routes(*lines, *lines) == [(TABLET, "queued:4")]


def test_a_full_mailbox_is_told_as_full_although_its_device_is_there() -> None:
    assert routes(ConnectionChanged(5, TABLET, True), placed(10, (TABLET, 0))) == []


def test_each_device_has_a_fate_of_its_own() -> None:
    found = life(placed(10, (TABLET, 4), (WATCH, 7)), Taken(20, WATCH, NORMAL, 7, 7, ()))
    assert found.states == {TABLET: MessageState.SENT, WATCH: MessageState.DELIVERED}


def test_ones_own_copies_are_part_of_it() -> None:
    found = life(placed(10, (TABLET, 1)), copied(11, (LAPTOP, 5)), Taken(20, LAPTOP, NORMAL, 5, 5, ()))
    assert found.events == [
        Event(10, 0, "accepted"),
        Event(10, TABLET, "queued:1"),
        Event(11, 0, "copied"),
        Event(11, LAPTOP, "queued:5"),
        Event(20, LAPTOP, "delivered"),
        Event(20, LAPTOP, "deleted"),
    ]
    assert found.states == {TABLET: MessageState.SENT, LAPTOP: MessageState.DELIVERED}


def test_a_blocked_message_was_accepted_for_its_sender_and_went_nowhere() -> None:
    blocked = Placed(10, PHONE, BOB, NORMAL, 1, ID, None, False, True, ())
    assert life(blocked) == Trace(ID, [Event(10, 0, "blocked")], {})


def test_an_expired_message_failed() -> None:
    found = life(placed(10, (TABLET, 4)), Dropped(50, TABLET, NORMAL, 4, Reason.EXPIRED))
    assert found.events[2:] == [Event(50, TABLET, "failed:expired"), Event(50, TABLET, "deleted")]
    assert found.states == {TABLET: MessageState.FAILED}


def test_a_device_that_was_removed_never_gets_it() -> None:
    found = life(placed(10, (TABLET, 4)), Dropped(50, TABLET, NORMAL, 4, Reason.DEVICE_REMOVED))
    assert found.events[2] == Event(50, TABLET, "failed:device_removed")


def test_a_full_mailbox_failed_at_once_and_alone() -> None:
    found = life(placed(10, (TABLET, 0), (WATCH, 1)))
    assert found.events == [
        Event(10, 0, "accepted"),
        Event(10, TABLET, "failed:mailbox_full"),
        Event(10, WATCH, "queued:1"),
    ]
    assert found.states == {TABLET: MessageState.FAILED, WATCH: MessageState.SENT}


def test_what_could_not_be_opened_is_failed_and_its_neighbours_are_not() -> None:
    taken = Taken(20, TABLET, NORMAL, 3, 5, (4,))
    found = life(placed(10, (TABLET, 4)), taken)
    assert found.events[2:] == [Event(20, TABLET, "failed:undecryptable"), Event(20, TABLET, "deleted")]
    assert found.states == {TABLET: MessageState.FAILED}
    assert life(placed(10, (TABLET, 5)), taken).states == {TABLET: MessageState.DELIVERED}


def test_a_reseal_is_part_of_the_life_of_what_it_seals_again() -> None:
    found = life(
        placed(10, (TABLET, 4)),
        Taken(20, TABLET, NORMAL, 4, 4, (4,)),
        placed(30, (TABLET, 5), n=2, name=RESEAL, of=ID),
        Taken(40, TABLET, NORMAL, 5, 5, ()),
    )
    assert [(event.at, event.what) for event in found.events] == [
        (10, "accepted"),
        (10, "queued:4"),
        (20, "failed:undecryptable"),
        (20, "deleted"),
        (30, "accepted"),
        (30, "queued:5"),
        (40, "delivered"),
        (40, "deleted"),
    ]


def test_a_reseal_that_arrives_makes_good_what_failed_before_it() -> None:
    unreadable, full = Taken(20, TABLET, NORMAL, 4, 4, (4,)), placed(10, (TABLET, 0))
    again = placed(30, (TABLET, 5), n=2, name=RESEAL, of=ID)
    arrived = Taken(40, TABLET, NORMAL, 5, 5, ())
    assert life(placed(10, (TABLET, 4)), unreadable, again).states == {TABLET: MessageState.SENT}
    assert life(placed(10, (TABLET, 4)), unreadable, again, arrived).states == {TABLET: MessageState.DELIVERED}
    assert life(full, again, arrived, Looked(50, TABLET, PHONE, NORMAL, 2, 2)).states == {TABLET: MessageState.READ}


def test_asked_for_the_reseal_itself_only_that_is_told() -> None:
    notes = placed(10, (TABLET, 4)), placed(30, (TABLET, 5), n=2, name=RESEAL, of=ID)
    assert life(*notes, message_id=RESEAL).events == [Event(30, 0, "accepted"), Event(30, TABLET, "queued:5")]


def test_what_happened_to_others_is_not_told() -> None:
    found = life(
        placed(10, (TABLET, 4)),
        placed(11, (TABLET, 5), n=3, name=OTHER),
        Taken(20, TABLET, HIGH, 1, 9, ()),  # another lane
        Taken(20, WATCH, NORMAL, 1, 9, ()),  # another device
        Taken(20, TABLET, NORMAL, 1, 3, ()),  # not as far as this
        Dropped(20, TABLET, NORMAL, 5, Reason.EXPIRED),  # another entry
        Looked(20, TABLET, LAPTOP, NORMAL, 1, 9),  # another author
        Looked(20, TABLET, PHONE, HIGH, 1, 9),  # another lane
        Looked(20, TABLET, PHONE, NORMAL, 2, 9),  # other numbers
    )
    assert found == Trace(ID, [Event(10, 0, "accepted"), Event(10, TABLET, "queued:4")], {TABLET: MessageState.SENT})


def test_being_read_is_not_undone_by_a_delivery_that_is_noted_later() -> None:
    found = life(placed(10, (TABLET, 4)), Looked(20, TABLET, PHONE, NORMAL, 1, 1), Taken(21, TABLET, NORMAL, 4, 4, ()))
    assert found.states == {TABLET: MessageState.READ}


def test_an_id_that_nobody_knows_has_no_life() -> None:
    assert life(placed(10, (TABLET, 4)), message_id=OTHER) == Trace(OTHER, [], {})
    assert life() == Trace(ID, [], {})


@pytest.mark.parametrize("text", ["", "hello", "1:2:3", f"{ID} ", ID.upper() + "!", "zz:1:1:a"])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a message id: want device:milliseconds:sequence:random"):
        author_of(text)


def test_the_author_is_in_the_id() -> None:
    assert author_of(ID) == PHONE


def test_a_message_in_a_groups_log_is_told_by_device_as_each_fetches_it() -> None:
    group, log = 0x1000, log_of(0x1000)
    in_log = Placed(10, PHONE, group, HIGH, 1, ID, None, False, False, ((log, 7),))
    assert life(
        in_log,
        Fetched(20, TABLET, group, (1, 3, 5, 8), ()),
        Fetched(30, WATCH, group, (7, 7), (7,)),
        Fetched(40, LAPTOP, group, (1, 6), ()),
        Fetched(50, LAPTOP, group + 2, (1, 9), ()),
        Dropped(60, log, NORMAL, 7, Reason.EXPIRED),
    ) == Trace(
        ID,
        [
            Event(10, 0, "accepted"),
            Event(10, log, "queued:7"),
            Event(20, TABLET, "delivered"),
            Event(30, WATCH, "failed:undecryptable"),
            Event(60, log, "failed:expired"),
            Event(60, log, "deleted"),
        ],
        {TABLET: MessageState.DELIVERED, WATCH: MessageState.FAILED, log: MessageState.FAILED},
        group,
    )


def test_what_was_read_between_two_people_says_nothing_of_a_message_to_a_group() -> None:
    in_group = Placed(10, PHONE, 0x1000, NORMAL, 1, ID, None, False, False, ((TABLET, 4),))
    found = life(in_group, Taken(20, TABLET, NORMAL, 1, 9, ()), Looked(30, TABLET, PHONE, NORMAL, 1, 3))
    assert found.states == {TABLET: MessageState.DELIVERED}
