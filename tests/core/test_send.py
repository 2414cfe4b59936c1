from __future__ import annotations

import pytest

from nightmail.core.numbering import answer_from_memory
from nightmail.model.answers import Accepted, Done
from nightmail.model.effects import Grew
from nightmail.model.ids import account_id, device_id
from nightmail.model.notes import Placed
from nightmail.model.records import Acked, Blocked, Closed, Unlinked, Voided
from nightmail.model.refusals import (
    IdReused,
    MailboxFull,
    NumberVoided,
    OutOfOrder,
    StaleDevices,
    UnknownRecipient,
)
from nightmail.model.rows import Entry, PendingReceipt
from nightmail.model.words import Kind, Lane, MessageState, Reason
from tests.core.world import START, Person, World, name_of, sealed, stamp, tag

NORMAL, HIGH = Lane


def voided(by: int, to: Person, n: int, floor: int = 1) -> Voided:
    return Voided(to.account, NORMAL, n, floor, name_of(by, n))


def placed(at: int, by: int, to: Person, n: int, *places: tuple[int, int]) -> Placed:
    return Placed(at, by, to.account, NORMAL, n, name_of(by, n), None, False, False, places)


# --- accepted once ----------------------------------------------------------------------------


def test_an_accepted_message_is_filed_for_every_device_it_addresses(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob", devices=2)
    assert world.send(alice[1], bob, text="hi") == Accepted(name_of(alice[1], 1), tag("hi"), START, 2)
    assert world.effects == [Grew(bob[1], NORMAL), Grew(bob[2], NORMAL)]
    for device in (bob[1], bob[2]):
        assert world.offer(device) == [
            (
                1,
                Entry(
                    by=alice[1],
                    to=bob.account,
                    n=1,
                    id=name_of(alice[1], 1),
                    tag=tag("hi"),
                    kind=Kind.TEXT,
                    of=None,
                    at=START,
                    life_ms=0,
                    ciphertext=f"{device}|hi".encode(),
                ),
            )
        ]


def test_where_a_message_went_is_noted_without_its_content(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob", devices=2)
    world.send(alice[1], bob, 1)
    world.send(alice[1], bob, 2)
    assert world.notes(bob) == [
        placed(START, alice[1], bob, 1, (bob[1], 1), (bob[2], 1)),
        placed(START + 1, alice[1], bob, 2, (bob[1], 2), (bob[2], 2)),
    ]


def test_a_retry_is_answered_word_for_word_and_filed_once(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    first = world.send(alice[1], bob)
    world.now += 60_000
    assert world.send(alice[1], bob) == first == Accepted(name_of(alice[1], 1), tag("hello"), START, 1)
    assert world.effects == []
    assert world.texts(bob[1]) == ["hello"]


def test_a_retry_may_be_sealed_anew(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    first = world.send(alice[1], bob)
    assert world.send(alice[1], bob, envelopes=(sealed(bob[1], "other bytes"),)) == first
    assert world.texts(bob[1]) == ["hello"]


def test_a_retry_with_a_device_list_that_is_stale_by_now_is_still_answered(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    body = world.sent(alice[1], bob)
    first = world.do(alice[1], body)
    world.link(bob)
    assert world.do(alice[1], body) == first


def test_a_retry_to_an_account_that_closed_meanwhile_is_still_answered(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    body = world.sent(alice[1], bob)
    first = world.do(alice[1], body)
    world.do(bob[1], Closed(bob.account))
    assert world.do(alice[1], body) == first


def test_the_same_id_with_another_content_tag_is_refused_and_nothing_is_stored(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.send(alice[1], bob, text="yes")
    assert world.send(alice[1], bob, text="no") == IdReused(name_of(alice[1], 1))
    assert world.texts(bob[1]) == ["yes"]
    assert world.effects == []


def test_the_same_number_with_another_id_is_refused_and_nothing_is_stored(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.send(alice[1], bob)
    assert world.send(alice[1], bob, name=name_of(alice[1], 99)) == IdReused(name_of(alice[1], 99))
    assert world.texts(bob[1]) == ["hello"]


def test_a_number_is_one_streams_own(world: World) -> None:
    alice, bob, carol = world.join("alice", devices=2), world.join("bob"), world.join("carol")
    for by, to in ((alice[1], bob), (alice[2], bob), (carol[1], bob), (alice[1], carol)):
        assert isinstance(world.send(by, to, 1, own_envelopes=()), Accepted)


def test_an_answer_from_memory_is_the_answer_of_the_fold() -> None:
    world = World()
    alice, bob = world.join("alice"), world.join("bob")
    body, state = world.sent(alice[1], bob), world.of(bob.account).state
    assert answer_from_memory(state, alice[1], body) is None
    first = world.do(alice[1], body)
    assert answer_from_memory(state, alice[1], body) == first
    assert answer_from_memory(state, alice[1], world.sent(alice[1], bob, text="no")) == IdReused(name_of(alice[1], 1))
    assert answer_from_memory(state, alice[1], world.sent(alice[1], bob, 2)) is None


# --- in order ---------------------------------------------------------------------------------


def test_a_skipped_number_is_out_of_order_and_nothing_is_stored(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    assert world.send(alice[1], bob, 2) == OutOfOrder(1)
    world.send(alice[1], bob, 1)
    assert world.send(alice[1], bob, 3) == OutOfOrder(2)
    assert world.texts(bob[1]) == ["hello"]
    assert isinstance(world.send(alice[1], bob, 2), Accepted)


def test_lanes_are_numbered_separately(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.send(alice[1], bob, 1)
    assert world.send(alice[1], bob, 2, lane=HIGH) == OutOfOrder(1)
    assert isinstance(world.send(alice[1], bob, 1, lane=HIGH), Accepted)
    assert isinstance(world.send(alice[1], bob, 2), Accepted)


def test_a_void_consumes_its_number_without_filing_anything(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    assert world.do(alice[1], voided(alice[1], bob, 1)) == Accepted(name_of(alice[1], 1), b"", START, 0)
    assert world.effects == []
    assert isinstance(world.send(alice[1], bob, 2, text="second"), Accepted)
    assert world.texts(bob[1]) == ["second"]


def test_a_late_send_of_a_voided_number_is_told_so(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.do(alice[1], voided(alice[1], bob, 1))
    assert world.send(alice[1], bob, 1) == NumberVoided(name_of(alice[1], 1))
    assert world.texts(bob[1]) == []


def test_a_late_send_of_a_voided_number_is_told_so_even_without_a_content_tag(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.do(alice[1], voided(alice[1], bob, 1))
    assert world.send(alice[1], bob, 1, tag=b"") == NumberVoided(name_of(alice[1], 1))


def test_a_void_is_answered_again_word_for_word(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    first = world.do(alice[1], voided(alice[1], bob, 1))
    world.now += 5_000
    assert world.do(alice[1], voided(alice[1], bob, 1)) == first


def test_a_void_of_an_accepted_number_is_answered_with_its_ack(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    first = world.send(alice[1], bob, 1)
    assert (
        world.do(alice[1], voided(alice[1], bob, 1)) == first == Accepted(name_of(alice[1], 1), tag("hello"), START, 1)
    )
    assert world.texts(bob[1]) == ["hello"]


def test_a_void_keeps_the_order_too(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    assert world.do(alice[1], voided(alice[1], bob, 2)) == OutOfOrder(1)


def test_a_void_to_an_account_that_never_was_is_refused(world: World) -> None:
    alice = world.join("alice")
    nobody = Person("nobody", account_id("nobody"))
    assert world.do(alice[1], voided(alice[1], nobody, 1)) == UnknownRecipient(nobody.account)


# --- whom it is sealed for --------------------------------------------------------------------


def test_an_unknown_recipient_is_refused(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    body = world.sent(alice[1], bob)
    world.do(bob[1], Closed(bob.account))
    assert world.do(alice[1], body) == UnknownRecipient(bob.account)
    assert world.stream(alice[1], bob) is None


@pytest.mark.parametrize(
    ("sealed_for", "version", "missing", "extra", "rekeyed"),
    [
        ([1], 2, [2], [], []),
        ([1, 2, 3], 2, [], [3], []),
        ([2, 3], 2, [1], [3], []),
        ([1, (2, 7)], 2, [], [], [2]),
        ([1, 2], 1, [], [], []),
        ([], 2, [1, 2], [], []),
    ],
    ids=["missing", "extra", "missing and extra", "rekeyed", "version only", "nobody"],
)
def test_a_stale_list_is_answered_with_what_differs_and_nothing_is_stored(
    world: World,
    sealed_for: list[int | tuple[int, int]],
    version: int,
    missing: list[int],
    extra: list[int],
    rekeyed: list[int],
) -> None:
    alice, bob = world.join("alice"), world.join("bob", devices=2)
    envelopes = tuple(
        sealed(device_id(bob.account, each)) if isinstance(each, int) else sealed(bob[each[0]], registration=each[1])
        for each in sealed_for
    )

    def ids(indices: list[int]) -> tuple[int, ...]:
        return tuple(device_id(bob.account, index) for index in indices)

    stale = StaleDevices(2, ids(missing), ids(extra), ids(rekeyed))
    assert world.send(alice[1], bob, envelopes=envelopes, list_version=version) == stale
    assert world.effects == []
    assert world.stream(alice[1], bob) is None
    assert isinstance(world.send(alice[1], bob), Accepted)


def test_a_device_of_somebody_else_is_an_extra_one(world: World) -> None:
    alice, bob, carol = world.join("alice"), world.join("bob"), world.join("carol")
    envelopes = (sealed(bob[1]), sealed(carol[1]))
    assert world.send(alice[1], bob, envelopes=envelopes) == StaleDevices(1, (), (carol[1],), ())


def test_a_device_that_is_linked_but_not_listed_is_an_extra_one(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.link(bob, listed=False)
    assert isinstance(world.send(alice[1], bob, 1), Accepted)
    envelopes = (sealed(bob[1]), sealed(bob[2]))
    assert world.send(alice[1], bob, 2, envelopes=envelopes) == StaleDevices(1, (), (bob[2],), ())


def test_a_device_that_is_named_twice_does_not_stand_in_for_another(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob", devices=2)
    envelopes = (sealed(bob[1]), sealed(bob[1]))
    assert world.send(alice[1], bob, envelopes=envelopes) == StaleDevices(2, (bob[2],), (), ())
    assert world.send(alice[1], bob, of="original", envelopes=envelopes) == StaleDevices(2, (), (), ())
    assert world.texts(bob[1]) == []


def test_a_repaired_send_is_taken_under_the_same_id(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    stale = world.sent(alice[1], bob)
    world.link(bob)
    assert world.do(alice[1], stale) == StaleDevices(2, (bob[2],), (), ())
    assert world.send(alice[1], bob) == Accepted(stale.id, stale.tag, START, 2)
    assert [world.texts(bob[1]), world.texts(bob[2])] == [["hello"], ["hello"]]


def test_a_message_can_be_sealed_again_for_one_device(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob", devices=2)
    original = world.sent(alice[1], bob)
    world.do(alice[1], original)
    again = world.sent(alice[1], bob, 2, of=original.id, envelopes=(sealed(bob[2], "again"),), own_envelopes=())
    assert world.do(alice[1], again) == Accepted(again.id, again.tag, START + 1, 2)
    assert [world.texts(bob[1]), world.texts(bob[2])] == [["hello"], ["hello", "again"]]
    assert [item[1].of for item in world.offer(bob[2]) if isinstance(item, tuple)] == [None, original.id]


def test_a_message_sealed_again_for_a_device_that_is_gone_is_stale(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob", devices=2)
    world.do(bob[1], Unlinked(bob[2]))
    again = world.sent(alice[1], bob, of="original", envelopes=(sealed(bob[2]),))
    assert world.do(alice[1], again) == StaleDevices(2, (), (bob[2],), ())


# --- an id under two numbers -------------------------------------------------------------------


@pytest.mark.parametrize("lane", list(Lane))
def test_an_id_that_is_reused_with_other_content_is_refused_whatever_its_number_and_lane(
    world: World, lane: Lane
) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    name = name_of(alice[1], 1)
    world.send(alice[1], bob, 1, text="first")
    world.send(alice[1], bob, 1, lane=HIGH, text="another", name=name_of(alice[1], 9))
    before = world.stream(alice[1], bob)
    assert world.send(alice[1], bob, 2, lane=lane, text="other content", name=name) == IdReused(name)
    assert world.stream(alice[1], bob) == before
    assert world.texts(bob[1]) == ["first"]


def test_an_id_is_taken_under_a_new_number_with_the_same_content_or_once_its_answer_is_forgotten(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    name = name_of(alice[1], 1)
    world.send(alice[1], bob, 1, text="first")
    assert isinstance(world.send(alice[1], bob, 2, text="first", name=name), Accepted)
    assert isinstance(world.send(alice[1], bob, 3, floor=3, text="third"), Accepted)
    assert isinstance(world.send(alice[1], bob, 4, text="other content", name=name), Accepted)


def test_the_id_of_a_number_that_was_given_up_may_be_used(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.do(alice[1], voided(alice[1], bob, 1))
    assert isinstance(world.send(alice[1], bob, 2, text="after all", name=name_of(alice[1], 1)), Accepted)


# --- full mailboxes ---------------------------------------------------------------------------


def test_one_full_device_does_not_block_the_others(world: World) -> None:
    world.limit(mailbox_entries=2)
    alice, bob = world.join("alice"), world.join("bob", devices=2)
    for n in (1, 2):
        world.send(alice[1], bob, n)
    world.do(bob[1], Acked(NORMAL, 2))
    world.do(alice[1], Acked(NORMAL, 0))
    assert isinstance(world.send(alice[1], bob, 3, text="third"), Accepted)
    assert world.texts(bob[1]) == ["third"]
    assert world.texts(bob[2]) == ["hello", "hello"]
    key = (alice[1], bob.account, NORMAL, bob[2], MessageState.FAILED, 3)
    assert world.receipts(alice[1])[-1] == PendingReceipt(key, 2, START, Reason.MAILBOX_FULL, [3, 3])
    assert world.notes(bob)[-1] == placed(START + 2, alice[1], bob, 3, (bob[1], 3), (bob[2], 0))


def test_when_all_devices_are_full_the_send_is_refused_and_its_number_is_not_consumed(world: World) -> None:
    world.limit(mailbox_entries=1)
    alice, bob = world.join("alice"), world.join("bob", devices=2)
    world.send(alice[1], bob, 1)
    before = world.stream(alice[1], bob)
    assert world.send(alice[1], bob, 2) == MailboxFull(1)
    assert world.effects == []
    assert world.stream(alice[1], bob) == before
    assert world.send(alice[1], bob, 3) == OutOfOrder(2)
    world.do(bob[2], Acked(NORMAL, 1))
    assert isinstance(world.send(alice[1], bob, 2, text="room"), Accepted)
    assert world.texts(bob[2]) == ["room"]


def test_a_device_is_full_by_bytes_as_it_is_by_entries(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob", devices=2)
    world.limit(mailbox_bytes=len(sealed(bob[1], "a long one").ciphertext))
    assert isinstance(world.send(alice[1], bob, 1, text="a long one"), Accepted)
    assert world.send(alice[1], bob, 2) == MailboxFull(10_000)
    world.do(bob[1], Acked(NORMAL, 1))
    assert isinstance(world.send(alice[1], bob, 2, text="room"), Accepted)
    assert (world.texts(bob[1]), world.texts(bob[2])) == (["room"], ["a long one"])
    key = (alice[1], bob.account, NORMAL, bob[2], MessageState.FAILED, 2)
    assert world.receipts(alice[1])[-1] == PendingReceipt(key, 2, START, Reason.MAILBOX_FULL, [2, 2])
    assert world.texts(bob[1], HIGH) == []
    assert isinstance(world.send(alice[1], bob, 1, text="high", lane=HIGH), Accepted)
    assert (world.texts(bob[1], HIGH), world.texts(bob[2], HIGH)) == (["high"], [])


def test_a_copy_for_an_own_device_that_is_full_by_bytes_is_told_to_its_sender(world: World) -> None:
    alice, bob = world.join("alice", devices=2), world.join("bob")
    world.limit(mailbox_bytes=5)
    assert isinstance(world.send(alice[1], bob, 1, text="hello"), Accepted)
    world.do(bob[1], Acked(NORMAL, 1))
    world.send(alice[1], bob, 2, text="again")
    assert world.texts(alice[2]) == ["hello"]
    assert [(c.reason, c.numbers) for c in world.receipts(alice[1]) if c.key[3] == alice[2]] == [
        (Reason.MAILBOX_FULL, [2, 2])
    ]


def test_both_lanes_share_one_limit(world: World) -> None:
    world.limit(mailbox_entries=2)
    alice, bob = world.join("alice"), world.join("bob")
    world.send(alice[1], bob, 1)
    world.send(alice[1], bob, 1, lane=HIGH)
    assert world.send(alice[1], bob, 2, lane=HIGH) == MailboxFull(2)


def test_receipts_take_no_room_from_messages(world: World) -> None:
    world.limit(mailbox_entries=1)
    alice, bob = world.join("alice"), world.join("bob")
    for n in (1, 2, 3):
        world.send(alice[1], bob, n)
        world.do(bob[1], Acked(NORMAL, n))
    assert isinstance(world.send(bob[1], alice, 1), Accepted)


def test_an_account_without_a_device_takes_nothing_for_now(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.do(bob[1], Unlinked(bob[1]))
    assert world.send(alice[1], bob) == MailboxFull(10_000)
    assert world.stream(alice[1], bob) is None


# --- blocked ----------------------------------------------------------------------------------


def test_a_blocked_sender_is_told_sent_and_nothing_else(world: World) -> None:
    alice, bob = world.join("alice", devices=2), world.join("bob")
    assert world.do(bob[1], Blocked(bob.account, alice.account, True)) == Done()
    assert world.send(alice[1], bob, text="psst") == Accepted(name_of(alice[1], 1), tag("psst"), START, 1)
    assert world.effects == [Grew(alice[2], NORMAL)]
    assert world.texts(bob[1]) == []
    assert world.texts(alice[2]) == ["psst"]
    assert (world.receipts(alice[1]), world.receipts(alice[2])) == ([], [])


def test_the_operator_can_see_that_a_message_was_blocked(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.do(bob[1], Blocked(bob.account, alice.account, True))
    world.send(alice[1], bob)
    assert world.notes(bob) == [
        Placed(START, alice[1], bob.account, NORMAL, 1, name_of(alice[1], 1), None, False, True, ((bob[1], 0),))
    ]


def test_a_blocked_sender_is_refused_like_anybody_else(world: World) -> None:
    world.limit(mailbox_entries=1)
    alice, bob, carol = world.join("alice"), world.join("bob"), world.join("carol")
    world.do(bob[1], Blocked(bob.account, alice.account, True))
    assert world.send(alice[1], bob, list_version=9) == StaleDevices(1, (), (), ())
    assert world.send(alice[1], bob, 2) == OutOfOrder(1)
    world.send(carol[1], bob)
    assert world.send(alice[1], bob) == MailboxFull(1)


def test_a_sender_who_is_unblocked_is_heard_from_then_on(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.do(bob[1], Blocked(bob.account, alice.account, True))
    world.send(alice[1], bob, 1, text="unheard")
    world.do(bob[1], Blocked(bob.account, alice.account, False))
    world.send(alice[1], bob, 2, text="heard")
    assert world.texts(bob[1]) == ["heard"]


# --- stamps -----------------------------------------------------------------------------------


def test_stamps_strictly_grow_within_one_instant(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    assert [stamp(world.send(alice[1], bob, n)) for n in (1, 2, 3)] == [START, START + 1, START + 2]


def test_both_lanes_share_one_clock_of_stamps(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    said = [world.send(alice[1], bob, n, lane=lane) for n, lane in ((1, NORMAL), (1, HIGH), (2, NORMAL), (2, HIGH))]
    assert [stamp(each) for each in said] == [START, START + 1, START + 2, START + 3]


def test_stamps_never_go_back_when_the_clock_does(world: World) -> None:
    alice, bob, carol = world.join("alice"), world.join("bob"), world.join("carol")
    world.send(alice[1], bob, 1)
    world.now -= 3_600_000
    assert stamp(world.send(alice[1], bob, 2)) == START + 1
    assert stamp(world.send(carol[1], bob, 1)) == START


def test_an_answer_is_stamped_after_its_question(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    question = stamp(world.send(alice[1], bob))
    assert stamp(world.send(bob[1], alice, seen=question)) == question + 1


def test_a_stamp_follows_what_was_seen_by_at_most_two_seconds_ahead(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    assert stamp(world.send(alice[1], bob, 1, seen=START + 1_998)) == START + 1_999
    assert stamp(world.send(alice[1], bob, 2, seen=START + 1_999)) == START + 2_000
    world.now += 10_000
    assert stamp(world.send(alice[1], bob, 3, seen=START + 99_000)) == START + 12_000


def test_what_was_seen_long_ago_changes_nothing(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    assert stamp(world.send(alice[1], bob, seen=START - 1)) == START
