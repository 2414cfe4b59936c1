from __future__ import annotations

import pytest
from msgspec.structs import replace

from nightmail.client.errors import TooLarge
from nightmail.client.group_errors import NotInGroup
from nightmail.client.messages import Tick
from nightmail.e2ee.content import Content
from nightmail.e2ee.state import decode_keys, encode_keys
from nightmail.model.answers import Answer, SchedulesFound, ScheduleTaken
from nightmail.model.ids import account_id
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Claimed, KeysAsked, Resealed, ScheduleCancelled, Scheduled
from nightmail.model.schedule_rows import SCHEDULED_FROM, ScheduleState
from nightmail.model.words import Kind, Lane
from nightmail.wire.items import Answered, FromServer
from tests.client.sealed_town import pass_time, said_by
from tests.client.town import Device, Town

from .town import SOON, a_town, cancels, history, own, refusals, schedules, shown, states, until


def keep_answers(town: Town, device: Device, *kinds: type[Answer]) -> list[FromServer]:
    """From now on no answer of these kinds reaches a device."""
    kept: list[FromServer] = []

    def meddle(to: int, item: FromServer) -> FromServer | None:
        if to == device.me.device and isinstance(item, Answered) and isinstance(item.said, kinds):
            kept.append(item)
            return None
        return item

    town.meddle = meddle
    return kept


def test_it_is_shown_at_its_time_and_has_ticks_like_any_other() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later")
    town.settle()
    assert (states(ada, row), bob.heard(), history(ada, bob)) == (["pending"], [], [])
    until(town, row, -1)
    assert bob.heard() == []
    until(town, row)
    assert bob.heard() == ["later"]
    assert history(ada, bob) == [("later", "delivered")]
    bob.read(ada)
    town.settle()
    assert history(ada, bob) == [("later", "read")]
    assert (states(ada, row), len(shown(ada, row)), len(shown(bob, row))) == (["pending", "delivered"], 1, 1)
    message = bob.store.message(row.id)
    assert message is not None
    assert message.at >= row.deliver_at
    assert own(ada, row).body == b""


def test_it_is_delivered_while_its_author_is_off_and_stands_in_the_history_afterwards() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later")
    town.settle()
    ada.cut()
    until(town, row, 20 * DAY_MS)
    assert bob.heard() == ["later"]
    ada.connect()
    town.settle()
    assert history(ada, bob) == [("later", "delivered")]
    assert states(ada, row) == ["pending", "delivered"]


def test_nobodys_one_time_key_is_taken_and_no_session_begins() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later")
    town.settle()
    until(town, row)
    assert (said_by(ada, Claimed), said_by(ada, KeysAsked)) == ([], [KeysAsked(bob.me.device)])
    for device, other in ((ada, bob), (bob, ada)):
        peer = device.machine.sealer.sessions.find(other.me.device)
        assert peer is None or not peer.ready
    bob.says(ada, "thanks")
    town.settle()
    assert ada.heard() == ["thanks"]


def test_it_stands_between_other_messages_by_its_stamp() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "second")
    ada.says(bob, "first")
    town.settle()
    until(town, row)
    ada.says(bob, "third")
    town.settle()
    for device, peer in ((ada, bob), (bob, ada)):
        assert [text for text, _ in history(device, peer)] == ["first", "second", "third"]


def test_all_own_devices_list_it_and_show_it_once() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    tablet = town.pair(ada)
    tablet.connect()
    town.settle()
    row = schedules(ada, bob, "later")
    town.settle()
    assert own(tablet, row).body == own(ada, row).body != b""
    until(town, row)
    assert history(tablet, bob) == history(ada, bob) == [("later", "delivered")]
    assert [len(shown(each, row)) for each in (ada, tablet, bob)] == [1, 1, 1]
    assert own(tablet, row).state is ScheduleState.DELIVERED


def test_an_own_device_that_was_linked_since_knows_it_and_shows_it() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later")
    town.settle()
    tablet = town.pair(ada)
    tablet.connect()
    town.settle()
    assert own(tablet, row).body == own(ada, row).body
    until(town, row)
    assert history(tablet, bob) == [("later", "delivered")]
    assert len(shown(tablet, row)) == 1


def test_a_note_to_oneself_comes_later_too() -> None:
    town, [ada] = a_town("ada")
    row = schedules(ada, ada, "remember")
    town.settle()
    until(town, row)
    assert [text for text, _ in history(ada, ada)] == ["remember"]


# --- retries, crashes, and being offline ------------------------------------------------------


def test_after_a_crash_it_is_scheduled_once() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    keep_answers(town, ada, ScheduleTaken)
    row = schedules(ada, bob, "later")
    for _ in range(3):
        town.settle()
        ada.crash()
        ada.connect()
    town.meddle = lambda device, item: item
    ada.cut()
    ada.connect()
    town.settle()
    until(town, row)
    assert (bob.heard(), len(shown(ada, row))) == (["later"], 1)
    assert town.loop.state.account_schedules[ada.me.account].last == 1  # pyright: ignore[reportOptionalMemberAccess]


def test_every_retry_sends_the_same_bytes() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    keep_answers(town, ada, ScheduleTaken)
    row = schedules(ada, bob, "later")
    heard: list[Scheduled] = []
    for _ in range(3):
        town.settle()
        heard += said_by(ada, Scheduled)
        ada.crash()
        ada.connect()
    assert {body.id for body in heard} == {row.id}
    assert (len(heard) > 2, len({repr(body) for body in heard})) == (True, 1)


def test_what_is_scheduled_offline_leaves_with_the_next_connection() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    ada.cut()
    row = schedules(ada, bob, "later", 60_000)
    assert own(ada, row).serial == 0
    ada.crash()
    ada.connect()
    town.settle()
    assert own(ada, row).serial == 1
    until(town, row)
    assert bob.heard() == ["later"]


def test_a_minute_after_its_time_it_is_still_taken_and_delivered_at_once() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    ada.cut()
    row = schedules(ada, bob, "later")
    town.wait(SOON + 50_000)
    ada.connect()
    town.settle()
    assert (bob.heard(), states(ada, row)) == (["later"], ["pending", "delivered"])


def test_if_its_time_passed_while_this_device_was_offline_it_has_failed_and_its_text_is_kept() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    ada.cut()
    row = schedules(ada, bob, "later")
    town.wait(SOON + 70_000)
    ada.connect()
    town.settle()
    assert (bob.heard(), states(ada, row)) == ([], ["failed (time_past)"])
    assert own(ada, row).body == row.body


def test_what_cannot_be_known_any_more_is_said_so() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    keep_answers(town, ada, ScheduleTaken)
    row = schedules(ada, bob, "later")
    town.settle()
    ada.cut()
    town.meddle = lambda device, item: item
    until(town, row)
    assert bob.heard() == ["later"]
    town.wait(40 * DAY_MS)
    ada.connect()
    town.settle()
    assert states(ada, row) == ["failed (outcome_unknown)"]


def test_news_that_come_before_the_answer_are_not_missed() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    keep_answers(town, ada, ScheduleTaken)
    row = schedules(ada, bob, "later")
    until(town, row)
    assert (bob.heard(), history(ada, bob)) == (["later"], [])
    town.meddle = lambda device, item: item
    ada.cut()
    ada.connect()
    town.settle()
    assert history(ada, bob) == [("later", "delivered")]


def test_to_nobody_it_fails() -> None:
    town, [ada, _] = a_town("ada", "bob")
    row = schedules(ada, account_id("nobody"), "later")
    town.settle()
    assert states(ada, row) == ["failed (unknown_recipient)"]


def test_what_is_too_large_or_for_a_group_of_others_is_not_queued() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    noise = town.chance.randbytes(70_000).hex()
    with pytest.raises(TooLarge):
        schedules(ada, bob, noise)
    with pytest.raises(NotInGroup):
        ada.machine.schedule(0x1234, Content(Kind.TEXT, "later"), town.now + SOON, town.now)
    assert ada.store.schedules() == []


# --- cancelling -------------------------------------------------------------------------------


def test_a_cancelled_one_is_never_delivered_and_its_content_is_gone_everywhere() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    tablet = town.pair(ada)
    tablet.connect()
    town.settle()
    row = schedules(ada, bob, "later")
    town.settle()
    cancels(tablet, row)
    town.settle()
    for device in (ada, tablet):
        assert (states(device, row)[-1], own(device, row).body) == ("cancelled", b"")
    assert town.loop.state.schedules.there((ada.me.account, 1)).content is None
    until(town, row, DAY_MS)
    assert bob.heard() == []


def test_what_never_left_is_cancelled_without_a_word_to_the_server() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    ada.cut()
    row = schedules(ada, bob, "later")
    cancels(ada, row)
    assert (states(ada, row), own(ada, row).body) == (["cancelled"], b"")
    ada.connect()
    town.settle()
    assert said_by(ada, Scheduled) == said_by(ada, ScheduleCancelled) == []


def test_a_cancelled_one_whose_request_may_be_under_way_is_not_delivered_by_a_late_copy() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later", 60_000)
    for _ in range(20):
        if ada.up and own(ada, row).asked_at:
            break
        ada.exchange()
        bob.exchange()
    late = list(ada.up)
    assert own(ada, row).asked_at
    session = ada.session
    assert session is not None
    ada.up.clear()
    ada.session = None
    ada.cut()
    cancels(ada, row)
    ada.connect()
    town.settle()
    assert states(ada, row)[-1] == "cancelled"
    for frame in late:
        session.take(frame)
    until(town, row, 2 * DAY_MS)
    assert bob.heard() == []


def test_a_delivered_one_cannot_be_cancelled() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later")
    town.settle()
    ada.cut()
    until(town, row)
    cancels(ada, row)
    ada.connect()
    town.settle()
    assert (refusals(ada, row), states(ada, row)[-1]) == (["already_sent"], "delivered")
    cancels(ada, row)
    assert refusals(ada, row) == ["already_sent", "already_sent"]
    assert history(ada, bob) == [("later", "delivered")]


def test_cancelling_twice_is_cancelling_once() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later")
    town.settle()
    cancels(ada, row)
    cancels(ada, row)
    town.settle()
    cancels(ada, row)
    assert states(ada, row) == ["pending", "cancelled", "cancelled"]


def test_cancelling_goes_on_after_a_crash() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later", 60_000)
    town.settle()
    ada.cut()
    cancels(ada, row)
    ada.crash()
    ada.connect()
    town.settle()
    assert states(ada, row)[-1] == "cancelled"
    until(town, row)
    assert bob.heard() == []


def test_what_no_device_knows_is_refused_by_the_server() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(bob, ada, "later")
    town.settle()
    cancels(ada, row)
    town.settle()
    assert refusals(ada, row) == ["unknown_schedule"]


# --- sealing again ----------------------------------------------------------------------------


@pytest.mark.parametrize("ms", [30_000, 120_000])
def test_a_stale_one_is_sealed_again_by_the_device_that_is_there_and_shown_on_the_new_one(ms: int) -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later", ms)
    town.settle()
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    until(town, row)
    assert bob.heard() == laptop.heard() == ["later"]
    assert states(ada, row) == ["pending", "stale", "delivered"]


def test_two_own_devices_that_seal_it_again_deliver_it_once() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    tablet = town.pair(ada)
    tablet.connect()
    town.settle()
    row = schedules(ada, bob, "later", 120_000)
    town.settle()
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    until(town, row)
    assert len(said_by(ada, Resealed)) + len(said_by(tablet, Resealed)) > 1
    assert [len(shown(each, row)) for each in (ada, tablet, bob, laptop)] == [1, 1, 1, 1]
    assert history(ada, bob) == history(tablet, bob) == [("later", "delivered")]


def test_another_own_device_seals_it_again_while_its_author_is_off() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    tablet = town.pair(ada)
    tablet.connect()
    town.settle()
    row = schedules(ada, bob, "later", 120_000)
    town.settle()
    ada.cut()
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    until(town, row)
    assert bob.heard() == laptop.heard() == ["later"]
    message = bob.store.message(row.id)
    assert message is not None
    assert message.by == tablet.me.device
    ada.connect()
    town.settle()
    assert history(ada, bob) == [("later", "delivered")]
    assert len(shown(ada, row)) == 1


def test_a_stale_one_that_nobody_seals_again_fails_and_can_be_cancelled_until_then() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    rows = [schedules(ada, bob, text, 120_000) for text in ("one", "two")]
    town.settle()
    ada.cut()
    laptop = town.pair(bob)
    laptop.connect()
    town.settle()
    until(town, rows[0])
    cancels(ada, rows[1])
    town.wait(DAY_MS)
    town.wait(1_000)
    ada.connect()
    town.settle()
    assert bob.heard() == laptop.heard() == []
    assert states(ada, rows[0])[-1] == "failed (stale_devices)"


# --- timers and receipts ----------------------------------------------------------------------


def test_a_timer_counts_from_its_delivery() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later", DAY_MS, life_ms=60_000)
    town.settle()
    until(town, row)
    assert bob.heard() == ["later"]
    bob.read(ada)
    town.settle()
    town.wait(59_000)
    assert ada.store.message(row.id) is not None
    assert bob.store.message(row.id) is not None
    town.wait(2_000)
    town.settle()
    assert ada.store.message(row.id) is None
    assert bob.store.message(row.id) is None


def test_receipts_that_come_before_the_number_count_once_it_is_known() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later")
    town.settle()
    kept = keep_answers(town, ada, SchedulesFound)
    until(town, row)
    assert (bob.heard(), history(ada, bob)) == (["later"], [])
    assert kept
    ada.crash()
    town.meddle = lambda device, item: item
    ada.connect()
    town.settle()
    assert history(ada, bob) == [("later", "delivered")]
    found = ada.store.numbered(ada.me.device, bob.me.account, Lane.NORMAL, SCHEDULED_FROM, SCHEDULED_FROM + 9)
    assert [(each.n, each.id) for each in found] == [(SCHEDULED_FROM + 1, row.id)]


def test_what_could_not_be_opened_is_sealed_again_for_that_device() -> None:
    town, [ada, bob] = a_town("ada", "bob")
    row = schedules(ada, bob, "later")
    town.settle()
    bob.cut()
    kept = bob.store.own_keys()
    assert kept is not None
    keys = decode_keys(kept.state)
    bob.store.put_own_keys(replace(kept, state=encode_keys(replace(keys, last_resort=()))))
    bob.store.commit()
    bob.crash()
    bob.connect()
    town.settle()
    until(town, row)
    pass_time(town, 3_000, 3_000)
    assert bob.heard() == ["later"]
    message = ada.store.message(row.id)
    assert message is not None
    assert message.state is Tick.DELIVERED
