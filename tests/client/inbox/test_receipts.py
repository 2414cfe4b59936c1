"""Ticks: per device, never backward, and what must be sealed again is."""

from __future__ import annotations

from functools import partial

from nightmail.client.events import DeliveryReceipt, MessageFailed, ReadReceipt
from nightmail.client.messages import Message, Tick, conversation_id
from nightmail.model.records import Sent, Voided
from nightmail.model.refusals import StaleDevices
from nightmail.model.rows import PendingReceipt
from nightmail.model.words import Lane, MessageState, Reason
from nightmail.wire.items import Receipts
from tests.client.script import ALICE, BOB, LAPTOP, PHONE, TABLET, Script, an_entry, entries

OTHER = TABLET + 1


def change(
    seq: int,
    device: int,
    state: MessageState,
    *spans: int,
    why: Reason = Reason.NONE,
    by: int = PHONE,
    shared: bool = False,
) -> Receipts:
    n = -why if shared else spans[0] if state is MessageState.FAILED else 0
    return Receipts((PendingReceipt((by, BOB, Lane.NORMAL, device, state, n), seq, 50 + seq, why, list(spans)),))


def sent_messages(count: int) -> tuple[Script, list[Message]]:
    """That many messages, accepted for two devices of Bob's."""
    script = Script()
    script.lists[BOB] = (1, {TABLET: 7, OTHER: 7})
    script.lists[ALICE] = (1, {PHONE: 7, LAPTOP: 7})
    script.connect()
    messages = [script.write() for _ in range(count)]
    script.bodies()
    script.accept()
    return script, messages


def ticks_told(script: Script) -> list[DeliveryReceipt | ReadReceipt]:
    script.turn()
    return [event for event in script.events if isinstance(event, DeliveryReceipt | ReadReceipt)]


def test_delivered_when_the_first_device_has_it_and_read_when_the_first_has_read_it() -> None:
    script, (message,) = sent_messages(1)
    script.say(change(1, OTHER, MessageState.DELIVERED, 1, 1))
    assert script.state(message) == ("delivered", "")
    script.say(change(2, OTHER, MessageState.READ, 1, 1))
    script.say(change(3, TABLET, MessageState.DELIVERED, 1, 1))
    assert script.state(message) == ("read", "")
    where = conversation_id(ALICE, BOB)
    assert script.told(DeliveryReceipt) == [
        DeliveryReceipt(message.id, where, 51, OTHER, Tick.DELIVERED),
        DeliveryReceipt(message.id, where, 53, TABLET, Tick.DELIVERED),
    ]
    assert script.told(ReadReceipt) == [ReadReceipt(where, message.id, 52, OTHER, (message.id,))]


def test_failed_only_if_no_device_got_it() -> None:
    script, (message,) = sent_messages(1)
    script.say(change(1, OTHER, MessageState.FAILED, 1, 1, why=Reason.EXPIRED))
    assert script.state(message) == ("sent", "")
    script.say(change(2, TABLET, MessageState.FAILED, 1, 1, why=Reason.MAILBOX_FULL))
    assert script.state(message)[0] == "failed"
    assert [event.message_id for event in script.told(MessageFailed)] == [message.id]


def test_failures_that_share_an_interval_are_told_each_with_its_reason() -> None:
    script, messages = sent_messages(4)
    script.say(change(1, OTHER, MessageState.FAILED, 1, 2, 4, 4, why=Reason.EXPIRED, shared=True))
    script.say(change(2, TABLET, MessageState.FAILED, 1, 2, why=Reason.MAILBOX_FULL, shared=True))
    assert [script.state(message)[0] for message in messages] == ["failed", "failed", "sent", "sent"]
    assert [(event.message_id, event.device, event.reason) for event in script.told(DeliveryReceipt)] == [
        *((messages[n - 1].id, OTHER, "expired") for n in (1, 2, 4)),
        *((messages[n - 1].id, TABLET, "mailbox_full") for n in (1, 2)),
    ]


def test_an_interval_of_failures_that_comes_again_with_more_is_mended_once_for_each() -> None:
    script, messages = sent_messages(4)
    shared = partial(change, why=Reason.UNDECRYPTABLE, shared=True)

    def resealed() -> list[str | None]:
        return [body.of for body in script.bodies() if isinstance(body, Sent)]

    script.say(shared(1, TABLET, MessageState.FAILED, 1, 2))
    assert resealed() == [messages[0].id, messages[1].id]
    script.say(shared(2, TABLET, MessageState.FAILED, 1, 3))
    assert resealed() == [messages[2].id]
    script.say(shared(3, TABLET, MessageState.FAILED, 4, 4))  # the server has heard that the others were heard
    assert resealed() == [messages[3].id]
    (early,) = script.store.early(PHONE, BOB, Lane.NORMAL)
    assert early.numbers == [4, 4]


def test_what_was_delivered_does_not_fail_because_its_answer_was_lost() -> None:
    script = Script()
    script.connect()
    message = script.write()
    script.bodies()
    script.say(change(1, TABLET, MessageState.DELIVERED, 1, 1))
    script.lose()
    script.wait(script.limits.lifetime_ms + 2)
    assert script.state(message) == ("delivered", "")
    assert script.told(MessageFailed) == []


def test_one_receipt_for_many_messages_moves_them_all_once() -> None:
    script, messages = sent_messages(5)
    script.say(change(1, TABLET, MessageState.READ, 1, 3, 5, 5))
    script.say(change(2, TABLET, MessageState.READ, 1, 5))
    first, second = script.told(ReadReceipt)
    assert first.messages == (messages[0].id, messages[1].id, messages[2].id, messages[4].id)
    assert (first.read_up_to, second.messages) == (messages[4].id, (messages[3].id,))


def test_a_receipt_that_is_repeated_or_late_changes_nothing() -> None:
    script, (message,) = sent_messages(1)
    script.say(change(5, TABLET, MessageState.READ, 1, 1))
    script.say(change(5, TABLET, MessageState.READ, 1, 1))
    script.say(change(6, TABLET, MessageState.DELIVERED, 1, 1))
    script.say(change(7, TABLET, MessageState.FAILED, 1, 1, why=Reason.EXPIRED))
    assert script.state(message) == ("read", "")
    where = conversation_id(ALICE, BOB)
    assert script.told(DeliveryReceipt) == [DeliveryReceipt(message.id, where, 55, TABLET, Tick.DELIVERED)]
    assert script.told(ReadReceipt) == [ReadReceipt(where, message.id, 55, TABLET, (message.id,))]


def test_delivered_is_told_before_read_although_read_comes_first() -> None:
    script, (message,) = sent_messages(1)
    script.say(change(1, TABLET, MessageState.READ, 1, 1))
    script.say(change(2, TABLET, MessageState.DELIVERED, 1, 1))
    where = conversation_id(ALICE, BOB)
    assert ticks_told(script) == [
        DeliveryReceipt(message.id, where, 51, TABLET, Tick.DELIVERED),
        ReadReceipt(where, message.id, 51, TABLET, (message.id,)),
    ]


def test_receipts_that_came_before_their_message_are_told_in_the_order_of_their_states() -> None:
    script = Script()
    script.connect()
    script.say(change(1, TABLET, MessageState.READ, 1, 1, by=LAPTOP))
    script.say(change(2, TABLET, MessageState.DELIVERED, 1, 1, by=LAPTOP))
    script.say(entries(1, an_entry(1, by=LAPTOP, to=BOB)))
    script.bodies()
    ident, where = an_entry(1, by=LAPTOP).id, conversation_id(ALICE, BOB)
    assert ticks_told(script) == [
        DeliveryReceipt(ident, where, 52, TABLET, Tick.DELIVERED),
        ReadReceipt(where, ident, 51, TABLET, (ident,)),
    ]


def test_early_receipts_are_merged_so_that_each_message_gets_all_of_its_own() -> None:
    script = Script()
    script.connect()
    script.say(change(1, TABLET, MessageState.DELIVERED, 1, 1, by=LAPTOP))
    script.say(change(2, TABLET, MessageState.DELIVERED, 3, 3, by=LAPTOP))  # the server has heard that 1 was heard
    script.say(change(3, TABLET, MessageState.READ, 3, 3, by=LAPTOP))
    (delivered, read) = script.store.early(LAPTOP, BOB, Lane.NORMAL)
    assert (delivered.state, delivered.numbers) == (Tick.DELIVERED, [1, 1, 3, 3])
    assert (read.state, read.numbers) == (Tick.READ, [3, 3])
    script.say(entries(1, *(an_entry(n, by=LAPTOP, to=BOB) for n in (1, 2, 3))))
    script.bodies()
    assert [message.state for message in script.store.history(BOB, 9)] == [Tick.DELIVERED, Tick.SENT, Tick.READ]


def test_a_message_that_is_here_before_its_copy_gets_the_ticks_that_came_before_the_copy() -> None:
    script = Script()
    script.connect()
    entry = an_entry(1, by=LAPTOP, to=BOB)
    # A new device is told of a timer by another own device, before it receives the message that set it.
    script.store.put_message(
        Message(id=entry.id, peer=BOB, by=LAPTOP, own=True, at=entry.at, body=b"", state=Tick.SENT)
    )
    script.say(change(1, TABLET, MessageState.DELIVERED, 1, 1, by=LAPTOP))
    script.say(entries(1, entry))
    script.bodies()
    where = conversation_id(ALICE, BOB)
    assert ticks_told(script) == [DeliveryReceipt(entry.id, where, 51, TABLET, Tick.DELIVERED)]


def test_early_receipts_of_two_devices_stay_apart() -> None:
    script = Script()
    script.connect()
    script.say(change(1, TABLET, MessageState.FAILED, 1, 1, why=Reason.EXPIRED, by=LAPTOP))
    script.say(change(2, OTHER, MessageState.DELIVERED, 1, 1, by=LAPTOP))
    script.say(entries(1, an_entry(1, by=LAPTOP, to=BOB)))
    script.bodies()
    (message,) = script.store.history(BOB, 9)
    assert {device: (place.state, place.reason) for device, place in message.places.items()} == {
        TABLET: (Tick.FAILED, "expired"),
        OTHER: (Tick.DELIVERED, ""),
    }
    assert message.state is Tick.DELIVERED


def test_a_receipt_may_come_before_the_answer_to_the_send() -> None:
    script = Script()
    script.connect()
    message = script.write()
    script.bodies()
    script.say(change(1, TABLET, MessageState.DELIVERED, 1, 1))
    assert script.state(message) == ("delivered", "")
    script.accept()
    assert script.state(message) == ("delivered", "")


def test_what_a_device_could_not_open_is_sealed_again_for_it_alone_three_times_at_most() -> None:
    script, (message,) = sent_messages(1)
    script.say(change(1, TABLET, MessageState.FAILED, 1, 1, why=Reason.UNDECRYPTABLE))
    for n in (1, 2, 3):
        (sent,) = script.bodies()
        assert isinstance(sent, Sent)
        assert (sent.of, sent.lane, sent.n) == (message.id, Lane.HIGH, n)
        assert ([e.device for e in sent.envelopes], sent.own_envelopes) == ([TABLET], ())
        assert sent.id != message.id
        script.accept()
        key = (PHONE, BOB, Lane.HIGH, TABLET, MessageState.FAILED, n)
        script.say(Receipts((PendingReceipt(key, 1 + n, 60, Reason.UNDECRYPTABLE, [n, n]),)))
    assert script.bodies() == []
    script.say(change(9, OTHER, MessageState.FAILED, 1, 1, why=Reason.EXPIRED))
    assert script.state(message)[0] == "failed"


def test_a_reseal_that_arrives_delivers_the_message() -> None:
    script, (message,) = sent_messages(1)
    script.say(change(1, TABLET, MessageState.FAILED, 1, 1, why=Reason.UNDECRYPTABLE))
    script.bodies()
    script.accept()
    script.say(
        Receipts(
            (PendingReceipt((PHONE, BOB, Lane.HIGH, TABLET, MessageState.DELIVERED, 0), 2, 60, Reason.NONE, [1, 1]),)
        )
    )
    assert script.state(message) == ("delivered", "")


def test_a_reseal_for_a_device_that_is_gone_is_given_up_and_so_that_device_has_failed() -> None:
    script, (message,) = sent_messages(1)
    script.say(change(1, TABLET, MessageState.FAILED, 1, 1, why=Reason.UNDECRYPTABLE))
    script.bodies()
    script.lists[BOB] = (2, {OTHER: 7})
    (void,) = script.answer(StaleDevices(2, (), (TABLET,), ()))
    assert isinstance(void, Voided)
    script.accept()
    assert script.store.outgoing() == []
    found = script.store.message(message.id)
    assert found is not None
    assert found.places[TABLET].state is Tick.FAILED


def test_an_own_device_without_a_copy_gets_one() -> None:
    script, (message,) = sent_messages(1)
    script.say(change(1, LAPTOP, MessageState.FAILED, 1, 1, why=Reason.STALE_DEVICES))
    (sent,) = script.bodies()
    assert isinstance(sent, Sent)
    assert (sent.envelopes, [e.device for e in sent.own_envelopes], sent.of) == ((), [LAPTOP], message.id)
    assert script.state(message) == ("sent", "")


def test_own_copies_never_change_ticks() -> None:
    script, (message,) = sent_messages(1)
    script.say(change(1, LAPTOP, MessageState.FAILED, 1, 1, why=Reason.MAILBOX_FULL))
    script.say(change(2, LAPTOP, MessageState.DELIVERED, 1, 1))
    assert script.state(message) == ("sent", "")


def test_receipts_for_what_another_own_device_sent_are_kept_until_its_copy_arrives() -> None:
    script = Script()
    script.connect()
    script.say(change(1, TABLET, MessageState.DELIVERED, 1, 2, by=LAPTOP))
    script.say(change(2, TABLET, MessageState.READ, 1, 1, by=LAPTOP))
    script.say(entries(1, an_entry(1, by=LAPTOP, to=BOB), an_entry(2, by=LAPTOP, to=BOB)))
    script.bodies()
    states = [message.state for message in script.store.history(BOB, 9)]
    assert states == [Tick.READ, Tick.DELIVERED]


def test_a_receipt_for_somebody_elses_message_or_an_endless_interval_is_harmless() -> None:
    script, (message,) = sent_messages(1)
    script.say(change(1, TABLET, MessageState.READ, 1, 1, by=TABLET))
    script.say(change(2, TABLET, MessageState.DELIVERED, 1, (1 << 53) - 1))
    assert script.state(message) == ("delivered", "")
