"""Every store keeps the words of `client/store.py`."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.messages import DeviceDelivery, Tick
from nightmail.client.store.group_rows import GroupRow, GroupStanding, HeadAt, Holder, LeftAt
from nightmail.client.store.rows import (
    Contact,
    Conversation,
    Cursors,
    DeviceList,
    Early,
    Identity,
    MessageNumber,
    Missed,
    Outgoing,
    OwnKeys,
    ReadMark,
    Trusted,
)
from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.model.group_rows import FanOut
from nightmail.model.records import Envelope
from nightmail.model.schedule_rows import GroupContent, PairContent
from nightmail.model.words import Kind, Lane
from tests.conformance.store_rig import ALICE, BOB, PHONE, TABLET, Kept, a_message, kept_store

__all__ = ["kept_store"]


def an_outgoing(n: int, lane: Lane = Lane.NORMAL) -> Outgoing:
    ident = f"{PHONE:x}:1:{n:05d}:a"
    return Outgoing(
        to=BOB, lane=lane, n=n, id=ident, original=ident, nonce=b"n", tag=b"t", composed_at=5, sealed={3: (TABLET,)}
    )


def test_what_is_committed_survives_a_crash_and_what_is_not_is_gone_as_a_whole(kept: Kept) -> None:
    store = kept.store
    store.put_cursors(Cursors(1, 2, 3))
    store.put_message(a_message(1))
    store.commit()
    store.put_cursors(Cursors(9, 9, 9))
    store.put_message(a_message(2))
    store.put_message(replace(a_message(1), state=Tick.FAILED))
    store = kept.crash()
    assert store.cursors() == Cursors(1, 2, 3)
    assert store.message(a_message(2).id) is None
    assert store.message(a_message(1).id) == a_message(1)


def test_a_read_sees_what_was_written_before_it_is_committed(kept: Kept) -> None:
    store = kept.store
    assert not store.dirty
    store.put_cursors(Cursors(4))
    assert store.cursors() == Cursors(4)
    assert store.dirty
    store.commit()
    assert not store.dirty


def test_a_rollback_leaves_everything_as_it_was_committed(kept: Kept) -> None:
    store = kept.store
    store.put_outgoing(an_outgoing(1))
    store.commit()
    store.drop_outgoing(BOB, Lane.NORMAL, 1)
    store.put_outgoing(an_outgoing(2))
    store.rollback()
    assert not store.dirty
    assert store.outgoing() == [an_outgoing(1)]


def test_a_commit_of_nothing_is_harmless(kept: Kept) -> None:
    kept.store.commit()
    assert kept.store.identity() is None
    assert kept.store.cursors() == Cursors()


def test_the_identity_is_kept_and_shows_its_token_to_nobody(kept: Kept) -> None:
    identity = Identity("alice", ALICE, PHONE, 7, b"secret token".ljust(32))
    kept.store.put_identity(identity)
    kept.store.commit()
    assert kept.crash().identity() == identity
    assert "secret" not in repr(identity)


def test_a_sequence_is_never_given_twice_once_it_was_committed(kept: Kept) -> None:
    given = [kept.store.next_sequence() for _ in range(3)]
    kept.store.commit()
    store = kept.crash()
    assert store.next_sequence() > max(given)


def test_what_waits_is_given_by_stream_and_number(kept: Kept) -> None:
    store = kept.store
    rows = [an_outgoing(2), an_outgoing(1, Lane.HIGH), an_outgoing(10), an_outgoing(1)]
    for row in rows:
        store.put_outgoing(row)
    assert store.outgoing() == [rows[3], rows[0], rows[2], rows[1]]
    store.put_outgoing(replace(rows[3], void="too_old"))
    store.drop_outgoing(BOB, Lane.NORMAL, 2)
    assert store.outgoing() == [replace(rows[3], void="too_old"), rows[2], rows[1]]


def test_the_last_number_of_a_stream_is_its_own(kept: Kept) -> None:
    kept.store.put_last_number(BOB, Lane.HIGH, 4)
    assert kept.store.last_number(BOB, Lane.HIGH) == 4
    assert kept.store.last_number(BOB, Lane.NORMAL) == kept.store.last_number(ALICE, Lane.HIGH) == 0


def test_a_message_comes_back_as_it_was_put(kept: Kept) -> None:
    message = replace(
        a_message(1, at=77), kind=Kind.CONTROL, life_ms=9, state=Tick.DELIVERED, reason="why",
        places={TABLET: DeviceDelivery(Tick.DELIVERED, 80, "", 2)},
    )  # fmt: skip
    kept.store.put_message(message)
    kept.store.commit()
    assert kept.crash().message(message.id) == message


def test_history_is_sorted_by_stamp_then_id_and_what_has_no_stamp_stands_last(kept: Kept) -> None:
    late, early, pending, same = a_message(1, at=50), a_message(9, at=20), a_message(2), a_message(3, at=50)
    for message in (pending, late, same, early, a_message(4, at=1, peer=ALICE)):
        kept.store.put_message(message)
    assert kept.store.history(BOB, 10) == [early, late, same, pending]
    assert kept.store.history(BOB, 2) == [same, pending]
    assert kept.store.history(BOB, 2, before=same.position) == [early, late]
    assert kept.store.history(BOB, 0) == []


def test_numbers_are_found_by_range_and_a_range_may_be_as_wide_as_it_likes(kept: Kept) -> None:
    rows = [MessageNumber(TABLET, ALICE, Lane.NORMAL, n, f"m{n}") for n in (1, 2, 5)]
    for row in rows:
        kept.store.put_numbered(row)
    kept.store.put_numbered(MessageNumber(TABLET, ALICE, Lane.HIGH, 2, "other lane"))
    assert kept.store.numbered(TABLET, ALICE, Lane.NORMAL, 2, 4) == [rows[1]]
    assert kept.store.numbered(TABLET, ALICE, Lane.NORMAL, 1, (1 << 53) - 1) == rows


def test_a_mark_moves_from_unread_to_reading_to_none(kept: Kept) -> None:
    store = kept.store
    row = MessageNumber(TABLET, ALICE, Lane.NORMAL, 1, "m", ReadMark.UNREAD)
    other = MessageNumber(PHONE, BOB, Lane.NORMAL, 1, "o", ReadMark.UNREAD)
    store.put_numbered(row)
    store.put_numbered(other)
    assert store.marked(ReadMark.UNREAD) == sorted([row, other], key=lambda row: row.by)
    assert store.marked(ReadMark.UNREAD, BOB) == [row]
    store.put_numbered(replace(row, mark=ReadMark.READING))
    assert store.marked(ReadMark.UNREAD, BOB) == []
    assert store.marked(ReadMark.READING) == [replace(row, mark=ReadMark.READING)]
    store.put_numbered(replace(row, mark=ReadMark.NONE))
    assert store.marked(ReadMark.READING) == []
    assert store.numbered(TABLET, ALICE, Lane.NORMAL, 1, 1) == [replace(row, mark=ReadMark.NONE)]


def test_a_mark_that_was_not_committed_comes_back_with_the_crash(kept: Kept) -> None:
    row = MessageNumber(TABLET, ALICE, Lane.NORMAL, 1, "m", ReadMark.READING)
    kept.store.put_numbered(row)
    kept.store.commit()
    kept.store.put_numbered(replace(row, mark=ReadMark.NONE))
    assert kept.crash().marked(ReadMark.READING) == [row]


def test_conversations_are_listed_newest_first(kept: Kept) -> None:
    kept.store.put_conversation(Conversation(BOB, "bob", 5))
    kept.store.put_conversation(Conversation(ALICE, "", 9))
    assert kept.store.conversations() == [Conversation(ALICE, "", 9), Conversation(BOB, "bob", 5)]
    assert kept.store.conversation(3) == Conversation(3)


def test_unopened_numbers_are_kept_per_lane_until_dropped(kept: Kept) -> None:
    for lane, seq in ((Lane.NORMAL, 9), (Lane.NORMAL, 3), (Lane.HIGH, 3), (Lane.NORMAL, 3)):
        kept.store.put_unopened(lane, seq)
    assert kept.store.unopened(Lane.NORMAL) == [3, 9]
    kept.store.drop_unopened(Lane.NORMAL, [3, 4])
    assert (kept.store.unopened(Lane.NORMAL), kept.store.unopened(Lane.HIGH)) == ([9], [3])


def test_early_receipts_are_one_row_per_device_state_and_reason(kept: Kept) -> None:
    early = Early(PHONE, BOB, Lane.NORMAL, TABLET, Tick.DELIVERED, "", 5, [1, 3])
    failed = Early(PHONE, BOB, Lane.NORMAL, TABLET, Tick.FAILED, "expired", 6, [9, 9])
    kept.store.put_early(early)
    kept.store.put_early(failed)
    kept.store.put_early(replace(early, at=8, numbers=[1, 7]))
    assert kept.store.early(PHONE, BOB, Lane.NORMAL) == [replace(early, at=8, numbers=[1, 7]), failed]
    assert list(kept.store.early(PHONE, BOB, Lane.HIGH)) == []


def test_a_device_list_is_replaced_as_a_whole(kept: Kept) -> None:
    assert kept.store.device_list(BOB) is None
    kept.store.put_device_list(DeviceList(BOB, 1, {TABLET: 7}))
    kept.store.put_device_list(DeviceList(BOB, 2, {TABLET + 1: 8}))
    assert kept.store.device_list(BOB) == DeviceList(BOB, 2, {TABLET + 1: 8})


# --- sealing ------------------------------------------------------------------------------------


def test_keys_sessions_and_believed_lists_are_kept_and_replaced(kept: Kept) -> None:
    store = kept.store
    assert (store.own_keys(), store.peer(TABLET), store.trusted(BOB)) == (None, None, None)
    keys, trusted = OwnKeys(b"state", 3, 9), Trusted(BOB, b"signed", verified=True, left={TABLET: 5})
    store.put_own_keys(OwnKeys(b"before"))
    store.put_own_keys(keys)
    for device, state in ((TABLET, b"old"), (TABLET, b"new"), (PHONE, b"other")):
        store.put_peer(device, state)
    store.put_trusted(Trusted(BOB, b"first"))
    store.put_trusted(trusted)
    store.put_trusted(Trusted(ALICE, b"own"))
    store.commit()
    store = kept.crash()
    assert (store.own_keys(), store.peer(TABLET), store.trusted(BOB)) == (keys, b"new", trusted)
    assert (store.peers(), store.peers(BOB)) == (sorted((PHONE, TABLET)), [TABLET])
    assert store.trusted_accounts() == sorted((ALICE, BOB))
    store.drop_peer(TABLET)
    assert (store.peer(TABLET), store.peers(BOB)) == (None, [])


def test_what_is_half_done_is_kept_until_it_is_dropped(kept: Kept) -> None:
    store = kept.store
    store.put_claim(TABLET, 1)
    store.put_claim(TABLET, 2)
    store.put_claim(PHONE, 3)
    store.put_orphan("b")
    store.put_orphan("a")
    store.put_orphan("a")
    for name in ("guest 2", "guest 1", "gues", "moving"):
        store.put_errand(name, name.encode())
    store.put_errand("moving", b"on")
    store.commit()
    store = kept.crash()
    assert (store.claims(), store.orphans()) == ({TABLET: 2, PHONE: 3}, ["a", "b"])
    assert (store.errands("guest "), store.errand("moving"), store.errand("else")) == (
        ["guest 1", "guest 2"],
        b"on",
        None,
    )
    store.drop_claim(TABLET)
    store.drop_orphan("a")
    store.drop_errand("guest 1")
    assert (store.claims(), store.orphans(), store.errands("guest ")) == ({PHONE: 3}, ["b"], ["guest 2"])


def test_what_could_not_be_opened_is_kept_and_marked_when_it_is_healed(kept: Kept) -> None:
    store = kept.store
    for row in (Missed("b", TABLET, 2), Missed("a", TABLET, 1)):
        store.put_missed(row)
    store.put_missed(Missed("b", TABLET, 2, healed=True))
    assert store.missed() == [Missed("a", TABLET, 1), Missed("b", TABLET, 2, healed=True)]
    assert (store.find_missed("a"), store.find_missed("c")) == (Missed("a", TABLET, 1), None)
    store.drop_missed(2)
    assert store.missed() == [Missed("b", TABLET, 2, healed=True)]


def test_envelopes_stay_in_the_row_they_were_sealed_for(kept: Kept) -> None:
    row = Outgoing(
        to=BOB, lane=Lane.HIGH, n=1, id="i", original="i", nonce=b"n", tag=b"t", composed_at=5,
        envelopes={TABLET: Envelope(TABLET, 7, b"sealed")}, content=b"control",
    )  # fmt: skip
    kept.store.put_outgoing(row)
    kept.store.commit()
    assert kept.crash().outgoing() == [row]


# --- contacts, timers ---------------------------------------------------------------------------


def test_contacts_are_kept_until_they_are_dropped(kept: Kept) -> None:
    rows = sorted((Contact(BOB, "bob", "Bobby"), Contact(ALICE, "alice", "", True)), key=lambda row: row.account)
    for row in rows:
        kept.store.put_contact(row)
    kept.store.commit()
    store = kept.crash()
    assert store.contacts() == rows
    assert (store.contact(BOB), store.contact(7)) == (Contact(BOB, "bob", "Bobby"), None)
    store.drop_contact(rows[0].account)
    assert store.contacts() == rows[1:]


def test_messages_are_given_by_their_deadline_until_they_are_dropped(kept: Kept) -> None:
    store = kept.store
    assert (store.next_deadline(), store.ended(1 << 60)) == (None, [])
    late, early, never = (replace(a_message(n), deadline=due) for n, due in ((1, 70), (2, 50), (3, 0)))
    for message in (late, early, never):
        store.put_message(message)
    store.commit()
    store = kept.crash()
    assert store.next_deadline() == 50
    assert [store.ended(49), store.ended(50), store.ended(70)] == [[], [early], [early, late]]
    store.drop_message(early.id)
    assert store.next_deadline() == 70
    store.put_message(replace(late, deadline=0))
    assert (store.next_deadline(), store.ended(1 << 60)) == (None, [])


def test_the_last_change_of_a_conversation_is_the_last_by_its_position_that_has_not_failed(kept: Kept) -> None:
    store = kept.store
    assert store.timer_change(BOB) is None
    first, last, elsewhere = (
        replace(a_message(n, at=at, peer=peer), kind=Kind.CONTROL)
        for n, at, peer in ((2, 5, BOB), (1, 7, BOB), (3, 9, 1))
    )
    waiting = replace(a_message(4), kind=Kind.CONTROL)
    for message in (last, first, elsewhere, a_message(5, at=99), waiting):
        store.put_message(message)
    assert store.timer_change(BOB) == waiting
    store.put_message(replace(waiting, state=Tick.FAILED))
    store.commit()
    store = kept.crash()
    assert store.timer_change(BOB) == last
    store.drop_message(last.id)
    assert store.timer_change(BOB) == first


# --- groups -------------------------------------------------------------------------------------

GROUP, OTHER = 4, 6


def a_group_row(group: int = GROUP) -> GroupRow:
    return GroupRow(
        group=group, standing=GroupStanding.JOINED, genesis=bytes(32), index=2, epoch=5, name="Friends",
        heads=(HeadAt(1, bytes(32), 3), HeadAt(2, b"h" * 32)), departures={ALICE: LeftAt(2, 9)},
        states={BOB: 2}, to_welcome=(BOB,), fan_out=FanOut.HYBRID, cursor=7, head_seq=9, unreadable=(8,),
    )  # fmt: skip


def test_groups_come_back_as_they_were_put(kept: Kept) -> None:
    store = kept.store
    for group in (OTHER, GROUP):
        store.put_group(a_group_row(group))
    store.put_group_members(GROUP, b"members")
    store.put_group(replace(a_group_row(), name="Old friends"))
    store.commit()
    store = kept.crash()
    assert store.groups() == [replace(a_group_row(), name="Old friends"), a_group_row(OTHER)]
    assert (store.group(GROUP), store.group(8)) == (replace(a_group_row(), name="Old friends"), None)
    assert (store.group_members(GROUP), store.group_members(OTHER)) == (b"members", None)


def test_a_group_goes_with_its_chains_and_leaves_the_others(kept: Kept) -> None:
    store = kept.store
    for group in (GROUP, OTHER):
        store.put_group(a_group_row(group))
        store.put_sender_chain(group, b"own")
        store.put_holder(group, Holder(TABLET, 7))
        store.put_receiving_chain(group, TABLET, b"k" * 8, b"theirs")
    store.drop_group(GROUP)
    store.commit()
    store = kept.crash()
    assert store.groups() == [a_group_row(OTHER)]
    assert (store.sender_chain(GROUP), store.holders(GROUP), store.receiving_chains(GROUP)) == (None, [], [])
    assert (store.sender_chain(OTHER), store.holders(OTHER)) == (b"own", [Holder(TABLET, 7)])
    assert store.receiving_chains(OTHER) == [b"theirs"]


def test_the_holders_of_a_chain_go_with_it(kept: Kept) -> None:
    store = kept.store
    store.put_sender_chain(GROUP, b"own")
    store.put_holder(GROUP, Holder(TABLET, 7))
    store.put_holder(GROUP, Holder(TABLET, 7, lacks=True, tries=2))
    store.put_holder(GROUP, Holder(PHONE, 8))
    assert store.holders(GROUP) == sorted(
        [Holder(TABLET, 7, lacks=True, tries=2), Holder(PHONE, 8)], key=lambda row: row.device
    )
    store.drop_sender_chain(GROUP)
    store.commit()
    store = kept.crash()
    assert (store.sender_chain(GROUP), store.holders(GROUP)) == (None, [])


def test_received_chains_are_found_by_device_and_key(kept: Kept) -> None:
    store = kept.store
    for device, key_id in ((TABLET, b"1" * 8), (TABLET, b"2" * 8), (PHONE, b"1" * 8)):
        store.put_receiving_chain(GROUP, device, key_id, key_id + bytes([device & 255]))
    store.drop_receiving_chain(GROUP, TABLET, b"2" * 8)
    store.commit()
    store = kept.crash()
    assert store.receiving_chain(GROUP, TABLET, b"1" * 8) == b"1" * 8 + bytes([TABLET & 255])
    assert store.receiving_chain(GROUP, TABLET, b"2" * 8) is None
    assert len(store.receiving_chains(GROUP)) == 2
    assert len(store.receiving_chains(GROUP, PHONE)) == 1


def test_messages_for_later_come_back_as_they_were_put_and_go(kept: Kept) -> None:
    store, content = kept.store, PairContent(3, (Envelope(PHONE, 5, b"sealed"),), ())
    late = ScheduledRow(
        id="b", to=BOB, kind=Kind.TEXT, body=b"later", life_ms=0, nonce=b"n" * 16, made_at=1, deliver_at=9, by=PHONE,
        content=content, sealed_for=(PHONE,), asked_at=4,
    )  # fmt: skip
    early = replace(late, id="a", deliver_at=3, serial=7, content=GroupContent(1, b"h" * 32, b"sealed"))
    ended = replace(late, id="c", deliver_at=1, serial=8, body=b"", content=None, ended_at=5)
    for row in (late, early, ended):
        store.put_schedule(row)
    store.commit()
    store = kept.crash()
    assert store.schedules() == [ended, early, late]
    assert (store.open_schedules(), store.open_schedules(1), store.open_schedules(8)) == ([early, late], [early], [])
    assert store.open_schedules(6, 7) == [early]
    assert (store.schedule("b"), store.schedule("d")) == (late, None)
    store.put_schedule(replace(late, serial=2))
    store.drop_schedule("a")
    assert store.open_schedules() == [replace(late, serial=2)]
    assert kept.crash().schedules() == [ended, early, late]
