"""From when a life is counted, and what its end leaves."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.events import Disappeared, MessageFailed
from nightmail.client.messages import Message, Tick, conversation_id
from nightmail.client.store.rows import ReadMark
from nightmail.client.timers.deadlines import GONE
from nightmail.model.records import Sent
from nightmail.wire.items import FromServer, Receipts
from tests.client.sealed_town import a_town, said_by
from tests.client.timers.talk import MINUTE, finds, sets, texts, timed_talk, waits, waits_until, writes
from tests.client.town import Device, Town

DAY = 86_400_000


def test_a_reader_counts_from_reading_and_the_author_from_sent() -> None:
    town, (alice, bob) = timed_talk()
    message = writes(alice, bob, "secret")
    alice.exchange()
    sent_at = town.now
    assert alice.state(message) == "sent"
    town.settle()
    waits_until(town, sent_at + MINUTE - 1)
    assert texts(alice, bob) == ["secret"]
    bob.read(alice)
    waits_until(town, sent_at + MINUTE)
    assert (texts(alice, bob), texts(bob, alice)) == ([], ["secret"])
    waits_until(town, sent_at + 2 * MINUTE - 2)
    assert texts(bob, alice) == ["secret"]
    waits_until(town, sent_at + 2 * MINUTE - 1)
    assert texts(bob, alice) == []


def test_what_is_not_read_does_not_disappear() -> None:
    town, (alice, bob) = timed_talk()
    writes(alice, bob, "secret")
    town.settle()
    waits(town, 30 * DAY)
    assert texts(bob, alice) == ["secret"]


def test_the_end_reaches_the_search_and_is_told_once() -> None:
    town, (alice, bob) = timed_talk()
    message = writes(alice, bob, "a secret rendezvous")
    kept = writes(alice, bob, "no rendezvous", 0)
    town.settle()
    bob.read(alice)
    town.settle()
    assert sorted(finds(bob, "rendezvous")) == ["a secret rendezvous", "no rendezvous"]
    waits(town, MINUTE)
    assert [finds(each, "rendezvous") for each in (alice, bob)] == [["no rendezvous"]] * 2
    told = Disappeared(conversation_id(alice.me.account, bob.me.account), (message.id,))
    assert (alice.told(Disappeared), bob.told(Disappeared)) == ([told], [told])
    assert bob.store.message(kept.id) is not None


def test_what_ended_while_nothing_ran_is_gone_with_the_first_tick() -> None:
    town, (alice, bob) = timed_talk()
    writes(alice, bob, "secret")
    town.settle()
    bob.read(alice)
    bob.crash()
    town.now += MINUTE
    bob.machine.tick(town.now)
    assert texts(bob, alice) == []


def test_a_deadline_survives_a_crash_to_the_millisecond() -> None:
    town, (alice, bob) = timed_talk()
    writes(alice, bob, "secret")
    town.settle()
    bob.read(alice)
    ends = town.now + MINUTE
    bob.crash()
    bob.machine.tick(ends - 1)
    assert texts(bob, alice) == ["secret"]
    bob.machine.tick(ends)
    assert texts(bob, alice) == []


def test_a_clock_that_was_set_back_while_nothing_ran_does_not_lengthen_a_life() -> None:
    town, (alice, bob) = timed_talk()
    writes(alice, bob, "secret")
    town.settle()
    bob.read(alice)
    bob.machine.tick(town.now + MINUTE // 2)
    alice.says(bob, "something else is committed then")
    town.settle()
    bob.crash()
    back = town.now - 10 * DAY
    bob.machine.tick(back)
    assert texts(bob, alice)[0] == "secret"
    bob.machine.tick(back + MINUTE)
    assert "secret" not in texts(bob, alice)


def test_a_clock_that_was_set_back_and_put_right_ends_nothing_early() -> None:
    town, (alice, bob) = timed_talk()
    writes(alice, bob, "secret")
    town.settle()
    bob.read(alice)
    ends = town.now + MINUTE
    bob.crash()
    bob.machine.tick(town.now - DAY)
    bob.look()
    bob.crash()
    bob.machine.tick(ends - 1)
    assert texts(bob, alice) == ["secret"]
    bob.machine.tick(ends)
    assert texts(bob, alice) == []


def test_own_devices_count_from_the_sync_of_reading_and_from_their_copy() -> None:
    town, (alice, bob) = timed_talk()
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    writes(alice, bob, "for both")
    town.settle()
    writes(bob, alice, "by one")
    copied_at = town.now
    town.settle()
    waits(town, MINUTE // 2)
    assert texts(laptop, alice) == ["for both", "by one"]
    bob.read(alice)
    town.settle()
    read_at = town.now
    waits(town, copied_at + MINUTE + 2_000 - town.now)
    assert texts(laptop, alice) == ["for both"]
    waits_until(town, read_at + MINUTE)
    assert texts(laptop, alice) == []


def test_what_nobody_received_in_time_has_failed_and_its_author_keeps_that_alone() -> None:
    town, (alice, bob) = timed_talk()
    bob.cut()
    message = writes(alice, bob, "secret")
    town.settle()
    waits(town, MINUTE + 2_000)
    assert [(event.message_id, event.reason) for event in alice.told(MessageFailed)] == [(message.id, "expired")]
    (left,) = [each for each in alice.store.history(bob.me.account, 9) if each.id == message.id]
    assert (left.state, left.reason, left.text, left.is_erased) == (Tick.FAILED, "expired", "", True)
    alice.crash()
    assert alice.store.message(message.id) == left
    bob.connect()
    town.settle()
    assert bob.heard() == []


def test_what_arrived_after_its_author_lost_sight_of_it_leaves_nothing() -> None:
    town, (alice, bob) = timed_talk()
    message = writes(alice, bob, "secret")
    town.settle(alice)
    alice.cut()
    town.settle(bob)
    waits(town, MINUTE)
    left = alice.store.message(message.id)
    assert left is not None
    assert left.is_erased
    alice.connect()
    town.settle()
    assert alice.store.message(message.id) is None
    assert alice.told(MessageFailed) == []


def test_a_message_that_failed_before_it_was_sent_is_counted_from_then() -> None:
    town, (alice, bob) = timed_talk()
    alice.cut()
    message = writes(alice, bob, "secret")
    assert alice.machine.give_up(message.id, town.now)
    alice.connect()
    while alice.state(message) == "pending":
        alice.exchange()
    failed_at = town.now
    assert alice.state(message) == "failed"
    waits_until(town, failed_at + MINUTE - 1)
    assert texts(alice, bob) == ["secret"]
    waits_until(town, failed_at + MINUTE)
    assert texts(alice, bob) == [""]


def loses(town: Town, device: Device) -> None:
    """The sessions of a device are lost: it can open nothing that is on its way."""
    for peer in device.store.peers():
        device.store.drop_peer(peer)
    device.store.commit()
    device.crash()
    device.connect()
    town.settle()


def test_a_reseal_carries_what_is_left_and_its_reader_has_the_whole_life() -> None:
    town, (alice, bob) = timed_talk()
    bob.cut()
    message = writes(alice, bob, "secret")
    town.settle()
    waits(town, MINUTE // 3)
    loses(town, bob)
    sent = [(body.of, body.life_ms) for body in said_by(alice, Sent) if message.id in (body.id, body.of)]
    assert [of for of, _ in sent] == [None, message.id]
    assert sent[0][1] == MINUTE
    assert 0 < sent[1][1] <= MINUTE - MINUTE // 3
    assert texts(bob, alice) == ["secret"]
    bob.read(alice)
    read_at = town.now
    waits_until(town, read_at + MINUTE - 1)
    assert texts(bob, alice) == ["secret"]
    waits_until(town, read_at + MINUTE)
    assert texts(bob, alice) == []


def test_nothing_is_sealed_again_whose_life_is_over() -> None:
    town, (alice, bob) = timed_talk()
    held: list[FromServer] = []

    def hold(device: int, item: FromServer) -> FromServer | None:
        if device == alice.me.device and isinstance(item, Receipts):
            held.append(item)
            return None
        return item

    town.meddle = hold
    bob.cut()
    message = writes(alice, bob, "secret")
    town.settle()
    loses(town, bob)
    assert held
    alice.cut()
    town.meddle = lambda device, item: item
    waits(town, MINUTE)
    alice.connect()
    town.settle()
    assert [body.of for body in said_by(alice, Sent)] == []
    left = alice.store.message(message.id)
    assert left is not None
    assert (left.state, left.reason) == (Tick.FAILED, "expired")


def test_a_copy_that_comes_after_the_end_is_not_shown_again() -> None:
    town, (alice, bob) = timed_talk()
    message = writes(alice, bob, "secret")
    town.settle()
    bob.read(alice)
    town.settle()
    waits(town, MINUTE)
    assert bob.store.errands(GONE) == [f"{GONE}{message.id}"]
    again = Message(id=message.id, peer=bob.me.account, by=message.by, own=True, at=message.at, body=message.body)
    alice.store.put_message(again)
    alice.machine.parts.outbox.reseal(again, bob.me.device)
    alice.look()
    town.settle()
    assert bob.heard() == ["secret"]
    assert bob.store.marked(ReadMark.UNREAD) == []
    for _ in range(33):
        waits(town, DAY)
    assert bob.store.errands(GONE) == []


def test_an_account_moves_with_its_deadlines() -> None:
    town, (alice, bob) = timed_talk()
    writes(bob, alice, "read before")
    town.settle()
    alice.read(bob)
    town.settle()
    ends = town.now + MINUTE
    new = town.pair(alice, hand_over=True)
    new.connect()
    while town.now < ends - 3_000:
        town.wait(1_000)
        town.settle()
    assert texts(new, bob) == ["read before"]
    waits(town, ends - town.now)
    assert texts(new, bob) == []
    assert new.machine.timer(bob.me.account) == MINUTE


def test_a_deadline_of_another_devices_clock_is_never_later_than_a_whole_life() -> None:
    town, (alice, bob) = timed_talk()
    message = writes(bob, alice, "read before")
    town.settle()
    alice.read(bob)
    stored = alice.store.message(message.id)
    assert stored is not None
    alice.store.put_message(replace(stored, deadline=1 << 60))
    alice.store.commit()
    new = town.pair(alice, hand_over=True)
    new.connect()
    town.settle()
    moved = new.store.message(message.id)
    assert moved is not None
    assert 0 < moved.deadline <= town.now + MINUTE


def test_what_a_device_that_counts_no_lives_hands_over_is_counted_on_the_new_one() -> None:
    town, (alice, bob) = timed_talk()
    read = writes(bob, alice, "read before")
    sent = writes(alice, bob, "sent before")
    town.settle()
    alice.read(bob)
    unread = writes(bob, alice, "not read yet")
    town.settle()
    for message in (read, sent):
        stored = alice.store.message(message.id)
        assert stored is not None
        alice.store.put_message(replace(stored, deadline=0))
    alice.store.commit()
    new = town.pair(alice, hand_over=True)
    new.connect()
    town.settle()
    moved = [new.store.message(message.id) for message in (read, sent, unread)]
    assert [message is not None and message.deadline > 0 for message in moved] == [True, True, False]
    waits(town, MINUTE)
    assert texts(new, bob) == ["not read yet"]


def test_without_a_timer_nothing_is_counted() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    sets(alice, bob, 0)
    writes(alice, bob, "stays")
    town.settle()
    bob.read(alice)
    waits(town, 8 * DAY)
    assert (texts(alice, bob), texts(bob, alice)) == (["stays"], ["stays"])
    assert bob.store.next_deadline() is None
