from __future__ import annotations

import pytest

from nightmail.core.retries import WEBHOOKS, delay_ms
from nightmail.model.answers import Done
from nightmail.model.effects import Call
from nightmail.model.ids import SERVER
from nightmail.model.letter_rows import LetterStatus
from nightmail.model.limits import DAY_MS
from nightmail.model.records import CallOutcome, ClockSetBack, Discarded, Record, Replayed, ScheduleCancelled
from nightmail.model.refusals import InProgress, LetterSettled
from nightmail.model.schedule_rows import ScheduleState
from tests.core.schedule_world import CALL_ID, URL, ScheduleWorld, call_id
from tests.core.world import Person

OK, AGAIN, NO = CallOutcome.DELIVERED, CallOutcome.FAILED, CallOutcome.REFUSED
PROCESSING, DELIVERED, FAILED = ScheduleState.PROCESSING, ScheduleState.DELIVERED, ScheduleState.FAILED


def first_call(world: ScheduleWorld) -> tuple[Person, Call]:
    ada = world.join("ada")
    world.schedule_call(ada, 1_000)
    world.wait(999)
    assert world.calls() == []
    world.wait(1)
    (call,) = world.calls()
    assert call == Call(ada.account, 1, 1, CALL_ID, URL, "application/json", b"{}")
    return ada, call


def fail_for_good(world: ScheduleWorld) -> tuple[Person, Call, int]:
    ada, call = first_call(world)
    world.end_call(call, NO, "http_404")
    row = world.row(ada)
    assert row is not None
    return ada, call, row.letter


def test_a_call_that_succeeds_is_delivered_and_its_content_is_gone(world: ScheduleWorld) -> None:
    ada, call = first_call(world)
    assert world.state(ada) is PROCESSING
    assert world.end_call(call, OK) == Done()
    assert (world.state(ada), world.kept_content(ada), world.news(ada[1])) == (DELIVERED, None, [1, 1])


def test_a_failed_call_is_made_six_times_with_growing_delays(world: ScheduleWorld) -> None:
    ada, call = first_call(world)
    delays: list[int] = []
    for attempt in range(1, 7):
        assert call.attempt == attempt
        world.end_call(call, AGAIN, "http_503")
        if attempt == 6:
            break
        delay = delay_ms(WEBHOOKS, CALL_ID, attempt)
        assert delay is not None
        delays.append(delay)
        world.wait(delay - 50)
        assert world.calls() == []
        world.wait(100)
        (call,) = world.calls()
    assert all(1_000 << n <= delay <= 1_100 << n for n, delay in enumerate(delays))
    row = world.row(ada)
    assert row is not None
    assert (row.state, row.retry_count, row.error) == (FAILED, 5, "http_503")
    letter = world.letter(ada, row.letter)
    assert letter is not None
    assert (letter.errors, letter.retry_count, letter.original.recipient) == (("webhook http_503",), 5, URL)
    assert letter.first_attempt < letter.last_attempt < letter.at + 1


def test_a_webhook_may_ask_for_a_longer_delay_within_bounds(world: ScheduleWorld) -> None:
    _, call = first_call(world)
    world.end_call(call, AGAIN, "http_429", retry_after_ms=20_000)
    world.wait(19_950)
    assert world.calls() == []
    world.wait(50)
    (call,) = world.calls()
    world.end_call(call, AGAIN, "http_429", retry_after_ms=DAY_MS)
    world.wait(3_600_000)
    assert len(world.calls()) == 1


def test_a_refusal_is_final_at_once(world: ScheduleWorld) -> None:
    ada, _, letter = fail_for_good(world)
    assert world.state(ada) is FAILED
    seen = world.letter(ada, letter)
    assert seen is not None
    assert (seen.status, seen.is_replayable, seen.original.content) == (LetterStatus.WAITING, True, (b"{}",))


def test_a_failure_counts_for_the_present_attempt_and_once(world: ScheduleWorld) -> None:
    ada, call = first_call(world)
    world.end_call(call, AGAIN, "timeout")
    world.end_call(call, AGAIN, "timeout")
    world.end_call(call, NO, "http_400")
    world.wait(1_200)
    assert [again.attempt for again in world.calls()] == [2]
    world.end_call(call, NO, "http_400")
    row = world.row(ada)
    assert row is not None
    assert (row.state, row.retry_count) == (PROCESSING, 1)


def test_a_call_that_nobody_tells_of_is_made_again_under_its_attempt(world: ScheduleWorld) -> None:
    _, call = first_call(world)
    world.wait(29_900)
    assert world.calls() == []
    world.wait(150)
    assert world.calls() == [call]
    world.wait(30_050)
    assert world.calls() == [call]


@pytest.mark.parametrize("attempt", [1, 2])
def test_any_success_ends_it(world: ScheduleWorld, attempt: int) -> None:
    ada, call = first_call(world)
    world.end_call(call, AGAIN, "timeout")
    world.wait(1_200)
    world.end_call(call, OK, attempt=attempt)
    assert world.state(ada) is DELIVERED
    world.wait(60_000)
    assert world.calls() == []


def test_a_late_success_settles_the_letter(world: ScheduleWorld) -> None:
    ada, call, letter = fail_for_good(world)
    world.end_call(call, OK)
    assert (world.state(ada), world.kept_content(ada)) == (DELIVERED, None)
    seen = world.letter(ada, letter)
    assert seen is not None
    assert seen.status is LetterStatus.DELIVERED
    assert world.of(ada.account).state.shard.dead == 0
    assert world.command(ada, Replayed(letter)) == LetterSettled(letter)


def test_a_replayed_call_is_made_with_all_its_retries(world: ScheduleWorld) -> None:
    ada, call, letter = fail_for_good(world)
    assert world.command(ada, Replayed(letter)) == Done()
    (again,) = world.calls()
    assert again.attempt == 2
    assert world.state(ada) is PROCESSING
    assert world.command(ada, Replayed(letter)) == LetterSettled(letter)
    world.end_call(call, AGAIN, "timeout")
    row = world.row(ada)
    assert row is not None
    assert row.retry_count == 0
    world.end_call(again, NO, "http_410")
    row = world.row(ada)
    assert row is not None
    assert row.letter not in (0, letter)


def test_a_discarded_call_loses_its_content_and_is_forgotten(world: ScheduleWorld) -> None:
    ada, _, letter = fail_for_good(world)
    world.wait(10 * DAY_MS)
    assert world.row(ada) is not None
    assert world.command(ada, Discarded(letter)) == Done()
    assert (world.kept_content(ada), world.state(ada)) == (None, FAILED)
    world.wait(7 * DAY_MS)
    assert world.row(ada) is None


def test_a_call_whose_letter_waits_stays_when_others_of_its_page_are_forgotten(world: ScheduleWorld) -> None:
    ada, _, letter = fail_for_good(world)
    world.schedule_call(ada, 1_000, name=call_id("later"))
    world.wait(1_000)
    (call,) = world.calls()
    world.end_call(call, OK)
    world.wait(9 * DAY_MS)
    assert world.row(ada, 2) is None
    assert world.row(ada) is not None
    assert world.command(ada, Replayed(letter)) == Done()


def test_a_letter_that_nobody_settles_ends_with_its_content(world: ScheduleWorld) -> None:
    ada, _, letter = fail_for_good(world)
    world.wait(30 * DAY_MS)
    seen = world.letter(ada, letter)
    assert seen is not None
    assert (seen.status, world.kept_content(ada)) == (LetterStatus.EXPIRED, None)
    world.wait(30 * DAY_MS)
    assert (world.letter(ada, letter), world.row(ada)) == (None, None)


def test_a_call_in_progress_cannot_be_cancelled(world: ScheduleWorld) -> None:
    ada, call = first_call(world)
    cancel = ScheduleCancelled(ada.account, CALL_ID)
    assert world.do(SERVER, cancel) == InProgress(CALL_ID)
    world.end_call(call, AGAIN, "timeout")
    assert world.do(SERVER, cancel) == InProgress(CALL_ID)


def test_a_call_that_a_wrong_clock_has_made_is_made_again_in_time(world: ScheduleWorld) -> None:
    ada = world.join("ada")
    world.schedule_call(ada, 1_000)
    world.wait(300 * DAY_MS)
    assert len(world.calls()) == 1
    world.now -= 300 * DAY_MS
    for node in list(world.nodes.values()):
        world.fold(node, Record(SERVER, 7, ClockSetBack(world.now, world.now + 300 * DAY_MS)))
    world.wait(29_000)
    assert world.calls() == []
    world.wait(1_000)
    assert len(world.calls()) == 1
