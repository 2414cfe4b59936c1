"""Every store notes for the next backup what changes, and hands out what a backup holds."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.messages import Tick
from nightmail.client.store.changes_port import Change, Saved
from nightmail.client.store.group_rows import GroupRow, GroupStanding
from nightmail.client.store.rows import Contact, Conversation, MessageNumber, ReadMark, Trusted
from nightmail.model.words import Lane
from tests.conformance.store_rig import ALICE, BOB, TABLET, Kept, a_message, kept_store

__all__ = ["kept_store"]


def test_nothing_is_noted_until_it_is_asked_for(kept: Kept) -> None:
    store = kept.store
    store.put_contact(Contact(BOB, "bob"))
    assert store.changes() == (0, [])
    store.note_changes()
    assert store.changes() == (1, [])


def test_every_row_of_a_backup_that_changes_is_noted_once_and_survives(kept: Kept) -> None:
    store = kept.store
    store.note_changes()
    message = a_message(1)
    for _ in range(2):
        store.put_message(message)
        store.put_contact(Contact(BOB, "bob"))
    store.drop_contact(BOB)
    store.put_conversation(Conversation(BOB, "bob"))
    store.put_trusted(Trusted(BOB, b"signed"))
    store.put_group(GroupRow(group=2, standing=GroupStanding.JOINED))
    store.put_errand("anything", b"")
    store.put_peer(TABLET, b"session")
    store.commit()
    noted = [
        Change(Saved.CONTACT, str(BOB)), Change(Saved.GROUP, "2"), Change(Saved.MESSAGE, message.id),
        Change(Saved.CONVERSATION, str(BOB)), Change(Saved.TRUSTED, str(BOB)),
    ]  # fmt: skip
    assert store.changes()[1] == noted
    assert kept.crash().changes()[1] == noted


def test_what_changed_again_since_is_not_dropped(kept: Kept) -> None:
    store = kept.store
    store.note_changes()
    store.put_message(a_message(1))
    store.put_contact(Contact(BOB, "bob"))
    upto, _ = store.changes()
    store.put_contact(Contact(BOB, "bob", "Robert"))
    store.drop_changes(upto)
    store.commit()
    assert store.changes()[1] == [Change(Saved.CONTACT, str(BOB))]
    store = kept.crash()
    store.drop_changes(store.changes()[0])
    store.commit()
    store = kept.crash()
    assert (store.changes()[1], store.changes()[0] > 0) == ([], True)
    store.put_contact(Contact(BOB, "bob"))
    assert store.changes()[1] == [Change(Saved.CONTACT, str(BOB))]


def test_what_was_rolled_back_is_not_noted(kept: Kept) -> None:
    store = kept.store
    store.note_changes()
    store.commit()
    store.put_contact(Contact(BOB, "bob"))
    store.rollback()
    assert store.changes() == (1, [])


def test_a_message_that_disappears_leaves_no_note(kept: Kept) -> None:
    store = kept.store
    store.note_changes()
    timed = replace(a_message(1), life_ms=30_000, deadline=5)
    store.put_message(timed)
    assert store.changes()[1] == []
    store.put_numbered(MessageNumber(TABLET, ALICE, Lane.NORMAL, 1, timed.id, ReadMark.UNREAD))
    store.drop_message(timed.id)
    assert store.changes()[1] == []


def test_all_messages_come_by_id_a_page_at_a_time(kept: Kept) -> None:
    store = kept.store
    messages = [a_message(n) for n in range(5)]
    for message in reversed(messages):
        store.put_message(message)
    wanted = sorted(messages, key=lambda message: message.id)
    assert store.messages_after("", 3) == wanted[:3]
    assert store.messages_after(wanted[2].id, 3) == wanted[3:]
    assert store.messages_after(wanted[4].id, 3) == []


def test_only_what_is_past_and_stays_is_counted_for_a_backup(kept: Kept) -> None:
    store = kept.store
    for n, (at, state, life_ms) in enumerate(
        [(1, Tick.SENT, 0), (0, Tick.FAILED, 0), (0, Tick.PENDING, 0), (1, Tick.SENT, 30_000)]
    ):
        store.put_message(replace(a_message(n), at=at, state=state, life_ms=life_ms))
    assert store.past_messages() == 2
