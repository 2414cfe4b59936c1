"""Receiving: once, in order, durable before it is acknowledged."""

from __future__ import annotations

import pytest

from nightmail.client.events import Gap, QueueEmpty, ServerBehind, Unreadable
from nightmail.client.messages import Message, Tick
from nightmail.client.store.rows import Conversation, Cursors, ReadMark
from nightmail.e2ee.errors import Undecipherable
from nightmail.e2ee.note import Note
from nightmail.model.answers import Done
from nightmail.model.records import Acked, Read, ReceiptsAcked, Span
from nightmail.model.refusals import AckAboveHead, Unavailable
from nightmail.model.rows import Entry, PendingReceipt
from nightmail.model.words import Lane, Reason
from nightmail.wire.items import Drained, Gone, Receipts
from sim.world.opaque import Opaque
from tests.client.script import BOB, LAPTOP, PHONE, TABLET, Script, an_entry, entries


class Blind(Opaque):
    """Opens nothing but re-seals."""

    def open(self, entry: Entry) -> Note:
        if entry.of is None:
            raise Undecipherable
        return super().open(entry)


def connected(sealer: Blind | None = None) -> Script:
    script = Script(sealer=sealer)
    script.connect()
    return script


def test_the_inbox_row_the_cursor_and_the_mark_are_committed_together_before_the_ack() -> None:
    script = connected()
    script.say(entries(1, an_entry(1), an_entry(2)))
    script.store.crash()  # before anything was let out: nothing of it has happened
    assert script.store.cursors() == Cursors()
    assert script.store.history(BOB, 9) == []
    script = connected()
    script.store.put_conversation(Conversation(BOB, "bob"))  # so that nobody asks for bob's list to learn it
    script.store.commit()
    before = script.store.commits
    script.say(entries(1, an_entry(1), an_entry(2)))
    script.wait(5)
    assert script.bodies() == [Acked(Lane.NORMAL, 2)]
    assert script.store.commits == before + 1
    assert script.store.cursors() == Cursors(normal=2)
    assert len(script.store.history(BOB, 9)) == len(script.store.marked(ReadMark.UNREAD)) == 2


def test_acks_wait_5_ms_for_company_but_not_longer() -> None:
    script = connected()
    script.say(entries(1, an_entry(1)))
    script.wait(4)
    assert script.bodies() == []
    script.say(entries(2, an_entry(2)))
    script.wait(1)
    assert script.bodies() == [Acked(Lane.NORMAL, 2)]


def test_after_32_entries_the_ack_goes_at_once() -> None:
    script = connected()
    script.say(entries(1, *[an_entry(n) for n in range(1, 33)]))
    assert script.bodies() == [Acked(Lane.NORMAL, 32)]


def test_a_repeated_entry_is_dropped_silently_and_acknowledged_again() -> None:
    script = connected()
    script.say(entries(1, an_entry(1), an_entry(2)))
    script.wait(5)
    script.bodies()
    script.say(entries(1, an_entry(1)))
    script.wait(0)
    assert script.bodies() == [Acked(Lane.NORMAL, 2)]
    assert len(script.told(Message)) == 2


def test_of_entries_that_overlap_only_the_new_ones_are_taken() -> None:
    script = connected()
    script.say(entries(1, an_entry(1), an_entry(2)), entries(2, an_entry(2), an_entry(3)))
    assert [message.body for message in script.told(Message)] == [b"body 1", b"body 2", b"body 3"]


def test_an_entry_that_skips_a_number_ends_the_connection_and_what_came_before_it_counts() -> None:
    script = connected()
    script.say(entries(1, an_entry(1)), entries(3, an_entry(3)), entries(2, an_entry(2)))
    script.bodies()
    assert script.hang_up
    assert script.store.cursors() == Cursors(normal=1)


def test_a_frame_that_is_none_ends_the_connection() -> None:
    script = connected()
    script.machine.receive(b"\xc1", script.now)
    assert script.hang_up == "not a frame"


def test_a_gap_moves_the_cursor_and_is_told() -> None:
    script = connected()
    script.say(Gone(Lane.HIGH, 1, 7, Reason.EXPIRED))
    script.wait(5)
    assert script.bodies() == [Acked(Lane.HIGH, 7)]
    assert script.told(Gap) == [Gap(Lane.HIGH, 1, 7, Reason.EXPIRED)]


def test_an_empty_queue_is_told() -> None:
    script = connected()
    script.say(Drained(0, 0, 0))
    assert script.told(QueueEmpty) == [QueueEmpty()]


def test_a_reseal_of_what_was_shown_is_not_shown_again() -> None:
    script = connected()
    first = an_entry(1)
    script.say(entries(1, first, an_entry(2, of=first.id)))
    assert [message.id for message in script.told(Message)] == [first.id]
    # Both numbers arrived, and both are read when it is read.
    assert [row.n for row in script.store.marked(ReadMark.UNREAD)] == [1, 2]


def test_what_cannot_be_opened_is_listed_in_every_ack_until_one_is_answered() -> None:
    script = connected(Blind())
    script.say(Drained(0, 0, 0), entries(1, an_entry(1)))
    script.wait(5)
    assert script.bodies() == [Acked(Lane.NORMAL, 1, (1,))]
    script.lose()
    assert script.connect() == [Acked(Lane.NORMAL, 1, (1,))]
    assert script.answer(Unavailable()) == []
    script.wait(1_200)
    assert script.bodies() == [Acked(Lane.NORMAL, 1, (1,))]
    script.answer(Done())
    script.say(Drained(1, 0, 0), entries(2, an_entry(2)))
    script.wait(5)
    assert script.bodies() == [Acked(Lane.NORMAL, 2, (2,))]
    assert [event.by for event in script.told(Unreadable)] == [TABLET, TABLET]


def test_more_unreadable_numbers_than_one_ack_may_list_are_told_in_turn() -> None:
    script = connected(Blind())
    script.say(entries(1, *[an_entry(n) for n in range(1, 401)]))
    (ack,) = script.bodies()
    assert isinstance(ack, Acked)
    assert (ack.upto, len(ack.unreadable)) == (256, 256)
    script.answer(Done())
    script.wait(0)
    (ack,) = script.bodies()
    assert isinstance(ack, Acked)
    assert (ack.upto, ack.unreadable[0], len(ack.unreadable)) == (400, 257, 144)


@pytest.mark.parametrize(
    "entry",
    [
        an_entry(1, of=f"{PHONE:x}:1:1:x"),
        an_entry(1, of="no id"),
        an_entry(1, to=BOB),
    ],
)
def test_an_entry_that_names_the_wrong_author_or_is_for_somebody_else_is_not_shown(entry: Entry) -> None:
    script = connected()
    script.say(entries(1, entry))
    script.wait(5)
    assert script.bodies() == [Acked(Lane.NORMAL, 1, (1,))]
    assert script.told(Message) == []


def test_on_every_connect_the_cursors_are_said_and_acknowledged_again() -> None:
    script = connected()
    script.say(
        entries(1, an_entry(1)),
        entries(1, an_entry(2), lane=Lane.HIGH),
        Receipts((PendingReceipt((PHONE, BOB, 0, TABLET, 2, 0), 9, 5, Reason.NONE, [1, 1]),)),
    )
    script.bodies()
    script.lose()
    assert script.connect() == [Acked(Lane.NORMAL, 1), Acked(Lane.HIGH, 1), ReceiptsAcked(9)]
    assert script.hello is not None
    assert (script.hello.normal, script.hello.high, script.hello.receipts) == (1, 1, 9)


def test_a_server_that_knows_less_than_we_do_is_reported_and_asked_again_later() -> None:
    script = connected()
    script.say(entries(1, an_entry(1)))
    script.bodies()
    script.lose()
    script.connect()
    assert script.answer(AckAboveHead(0)) == []
    assert script.told(ServerBehind) == [ServerBehind(Lane.NORMAL, 0, 1)]
    script.wait(1_200)
    assert script.bodies() == [Acked(Lane.NORMAL, 1)]


def test_receipts_are_acknowledged_lazily() -> None:
    script = connected()
    script.say(Receipts((PendingReceipt((PHONE, BOB, 0, TABLET, 2, 0), 3, 5, Reason.NONE, [1, 1]),)))
    script.wait(199)
    assert script.bodies() == []
    script.wait(1)
    assert script.bodies() == [ReceiptsAcked(3)]


def test_a_copy_of_an_own_message_is_shown_as_ones_own() -> None:
    script = connected()
    script.say(entries(1, an_entry(1, by=LAPTOP, to=BOB)))
    (message,) = script.told(Message)
    assert (message.own, message.peer, message.state) == (True, BOB, Tick.SENT)
    assert script.store.marked(ReadMark.UNREAD) == []


def test_what_was_read_is_told_exactly_and_until_it_is_confirmed() -> None:
    script = connected()
    script.say(entries(1, an_entry(1), an_entry(2), an_entry(4)), entries(1, an_entry(3), lane=Lane.HIGH))
    script.wait(5)
    script.bodies()
    assert script.machine.mark_read(BOB, script.now) == 4
    spans = (Span(TABLET, Lane.NORMAL, 1, 2), Span(TABLET, Lane.NORMAL, 4, 4), Span(TABLET, Lane.HIGH, 3, 3))
    assert script.bodies() == [Read(BOB, spans)]
    script.lose()
    read = [body for body in script.connect() if isinstance(body, Read)]
    assert read == [Read(BOB, spans)]
    script.asked = script.asked[-1:]
    script.answer(Unavailable())
    script.wait(1_200)
    assert script.bodies() == [Read(BOB, spans)]
    script.answer(Done())
    assert script.store.marked(ReadMark.READING) == []
    assert script.machine.mark_read(BOB, script.now) == 0


def test_messages_of_more_devices_than_one_read_mark_may_name_are_told_in_turn() -> None:
    script = connected()
    authors = [TABLET + number for number in range(70)]
    script.say(entries(1, *(an_entry(1, by=author) for author in authors)))
    script.wait(5)
    script.bodies()
    script.machine.mark_read(BOB, script.now)
    (read,) = script.bodies()
    assert isinstance(read, Read)
    assert [span.by for span in read.spans] == authors[:64]
    (read,) = script.answer(Done())
    assert isinstance(read, Read)
    assert [span.by for span in read.spans] == authors[64:]
    assert script.answer(Done()) == []
    assert script.store.marked(ReadMark.READING) == []


def test_single_messages_can_be_marked_and_what_is_read_meanwhile_is_told_next() -> None:
    script = connected()
    script.say(entries(1, an_entry(1), an_entry(2)))
    script.wait(5)
    script.bodies()
    script.machine.mark_read(BOB, script.now, [an_entry(2).id])
    assert script.bodies() == [Read(BOB, (Span(TABLET, Lane.NORMAL, 2, 2),))]
    script.machine.mark_read(BOB, script.now)
    assert script.asks() == []
    assert script.answer(Done()) == [Read(BOB, (Span(TABLET, Lane.NORMAL, 1, 1),))]


def test_a_message_is_displayed_by_stamp_whatever_lane_it_came_in() -> None:
    script = connected()
    script.say(entries(1, an_entry(2), lane=Lane.HIGH), entries(1, an_entry(1)))
    script.bodies()
    assert [message.body for message in script.store.history(BOB, 9)] == [b"body 1", b"body 2"]
    assert script.store.conversation(BOB).seen == an_entry(2).at


def test_the_body_of_a_message_is_in_no_repr() -> None:
    script = connected()
    script.say(entries(1, an_entry(1, body=b"secret")))
    assert "secret" not in repr(script.told(Message))
