"""The promises about messages for later, judged by what devices saw and what a webhook got.

Knows:   what was asked and answered, what was shown where, every call that arrived.
Asks:    the author's shard what it says of each schedule: that is an answer that people get, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightmail.core.state import missing_row
from nightmail.model.ids import account_of
from nightmail.model.letter_rows import LetterStatus
from nightmail.model.records import CallOutcome
from nightmail.model.rows import Kept, Need
from nightmail.model.schedule_rows import AccountSchedules, CallTarget, PairTarget, Schedule, ScheduleState
from sim.world.world import Broken

from .group_history import SCHEDULED, Stream

if TYPE_CHECKING:
    from nightmail.core.letters.seen import LetterSeen
    from nightmail.core.schedules.reading import ScheduleSeen
    from nightmail.core.state import ShardState
    from sim.world.group_device import GroupDevice
    from sim.world.group_people import GroupPerson
    from sim.world.schedule_device import Planned, Poisoned
    from sim.world.schedule_town import ScheduleTown

DELIVERED, CANCELLED, FAILED = ScheduleState.DELIVERED, ScheduleState.CANCELLED, ScheduleState.FAILED
RETRIES = 5
BASE_MS = 100
"""The first delay between two calls: a day here has seconds."""
SETTLED_MS = 2_000
"""What was answered so long ago is so everywhere."""


def check_schedules(town: ScheduleTown) -> None:
    rows: dict[str, ScheduleSeen] = {}
    for person in town.people:
        listed = town.listed(person.account, None)
        rows |= {seen.schedule.id: seen for seen in listed}
        _check_listing(town, person, listed)
        _check_kept(town, person, listed)
    for planned in {id(planned): planned for planned in town.planned.values()}.values():
        seen = rows.get(planned.id)
        if seen is None:
            if planned.serial and town.limits.fold.schedules_kept_ms:
                raise Broken("never zero times", f"nobody knows of {planned.id}")
            continue
        _check_cancelled(town, planned, seen.schedule)
        _check_one(town, planned)
        if isinstance(seen.schedule.target, CallTarget):
            _check_calls(town, planned, seen)
        else:
            _check_conversation(town, planned, seen.schedule)
        _check_news(town, seen)
    _check_letters(town)


# --- dead letters -----------------------------------------------------------------------------


def _check_letters(town: ScheduleTown) -> None:
    """What was replayed is shown, what was discarded has failed, and what waits is neither."""
    for person in town.people:
        for letter in town.all_letters(person.account):
            ident = town.letters_of.get((person.account, letter.offset), "")
            poisoned = town.poisoned.get(ident)
            if poisoned and poisoned.to == person.account:
                _check_letter(town, poisoned, letter)


def _check_letter(town: ScheduleTown, poisoned: Poisoned, letter: LetterSeen) -> None:
    if letter.status is not LetterStatus.REPLAYED and poisoned.shown:
        raise Broken("only a replay delivers", f"{poisoned.id} is {letter.status.name}, and shown")
    recipient, author = _person(town, poisoned.to), _person(town, account_of(poisoned.by))
    if recipient is None or author is None or author.lives > 1 or not author.devices or recipient.lives > 1:
        return
    stream = Stream(poisoned.by, poisoned.to, poisoned.lane)
    failed: set[int] = set()
    for number, seen in town.history.seen.items():
        if account_of(number) == author.account:
            failed |= seen.failed.get((stream, poisoned.n), {}).keys()
    if letter.status is LetterStatus.DISCARDED and recipient is not author and not failed and not poisoned.shown:
        raise Broken("what is discarded has failed", f"{poisoned.id}")
    if letter.status is not LetterStatus.REPLAYED:
        return
    for device in recipient.devices:
        was_there = device.on_list_since < letter.original.timestamp - SETTLED_MS or device.was_listed_first
        if was_there and device.number not in (poisoned.by, *poisoned.shown, *failed):
            raise Broken("a replay delivers", f"{poisoned.id} is not shown on {device.number:x}")


# --- what the server says ---------------------------------------------------------------------


def _check_listing(town: ScheduleTown, person: GroupPerson, listed: list[ScheduleSeen]) -> None:
    for wanted in ScheduleState:
        of_state = [seen.serial for seen in town.listed(person.account, wanted)]
        if of_state != [seen.serial for seen in listed if seen.schedule.state is wanted]:
            raise Broken("lists by state", f"{person.handle} has other schedules {wanted.name} than {of_state}")
    serials = [seen.serial for seen in listed]
    if serials != sorted(set(serials), reverse=True):
        raise Broken("lists by state", f"{person.handle} is shown {serials}")


def _check_kept(town: ScheduleTown, person: GroupPerson, listed: list[ScheduleSeen]) -> None:
    """Nothing is open, so nothing is counted; and what has ended has no content, but for a letter."""
    account = person.account

    def wanted(state: ShardState) -> list[Need]:
        missing: list[Need] = []
        missing_row(state.account_schedules, Kept.ACCOUNT_SCHEDULES, account, missing)
        return missing

    own = town.read(account, wanted, lambda state: state.account_schedules[account]) or AccountSchedules()
    if (own.open, own.calls, own.bytes) != (0, 0, 0):
        raise Broken("what has ended does not count", f"{person.handle} has {own}")
    for seen in listed:
        has_letter = seen.schedule.state is FAILED and seen.schedule.letter
        if (seen.schedule.content is not None) is not bool(has_letter):
            raise Broken("content goes when it is final", f"{seen.schedule.id} is {seen.schedule.state.name}")


def _check_news(town: ScheduleTown, seen: ScheduleSeen) -> None:
    person = _person(town, account_of_schedule(seen.schedule, town))
    for device in person.devices if person and person.lives == 1 else ():
        if device.on_list_since < seen.schedule.ended_at - SETTLED_MS and (
            seen.serial not in town.news.get(device.number, ())
        ):
            raise Broken("authors are told", f"{device.number:x} never heard of {seen.schedule.id}")


def account_of_schedule(schedule: Schedule, town: ScheduleTown) -> int:
    return town.planned[schedule.id].account


def _person(town: ScheduleTown, account: int) -> GroupPerson | None:
    return next((person for person in town.people if person.account == account), None)


def _check_one(town: ScheduleTown, planned: Planned) -> None:
    """Requests with the same idempotency key are one message, whichever ids they had."""
    called = [ident for ident, other in town.planned.items() if other is planned and ident in town.receiver.called]
    if len(called) > 1:
        raise Broken("one key, one message", f"{called} were called")


# --- cancelled --------------------------------------------------------------------------------


def _check_cancelled(town: ScheduleTown, planned: Planned, schedule: Schedule) -> None:
    if planned.cancelled and schedule.state is not CANCELLED:
        raise Broken("a cancel wins or loses", f"{planned.id} was cancelled, and is {schedule.state.name}")
    if schedule.state is CANCELLED:
        if planned.shown:
            raise Broken("never after a cancel", f"{planned.id} is shown on {planned.shown}")
        if planned.id in town.receiver.called:
            raise Broken("never after a cancel", f"{planned.id} was called")


# --- into conversations -----------------------------------------------------------------------


def _check_conversation(town: ScheduleTown, planned: Planned, schedule: Schedule) -> None:
    if schedule.state is not DELIVERED:
        if planned.shown:
            raise Broken("what failed was not delivered", f"{planned.id} is {schedule.state.name} and shown")
        _check_failure(town, planned, schedule)
        return
    gone_at = town.gone_at.get(schedule.by, 1 << 62)
    # When it was fired: a shard that is away takes it later, and stamps it then.
    if gone_at + SETTLED_MS < schedule.last_attempt:
        raise Broken("a revoked author does not fire", f"{planned.id} of {schedule.by:x}")
    if not isinstance(schedule.target, PairTarget):
        return
    recipient, author = _person(town, schedule.target.to), _person(town, planned.account)
    if recipient and author and author.devices and author.lives == 1 and recipient.lives == 1:
        for device in recipient.devices:
            _check_shown(town, planned, schedule, device)
        by_is_here = any(device.number == schedule.by for device in author.devices)
        if recipient is not author and by_is_here and not town.loses_notices:
            for device in author.devices:
                _check_shown(town, planned, schedule, device)


def _check_shown(town: ScheduleTown, planned: Planned, schedule: Schedule, device: GroupDevice) -> None:
    if (
        device.number == schedule.by
        or device.number in planned.shown
        or device.on_list_since > schedule.at - SETTLED_MS
    ):
        return
    assert isinstance(schedule.target, PairTarget)
    stream = Stream(schedule.by, schedule.target.to, SCHEDULED)
    for number, seen in town.history.seen.items():
        if account_of(number) == planned.account and device.number in seen.failed.get((stream, schedule.n), {}):
            return
    raise Broken("never zero times", f"{planned.id}, {schedule}, is not shown on {device.number:x}")


def _check_failure(town: ScheduleTown, planned: Planned, schedule: Schedule) -> None:
    author = _person(town, planned.account)
    if author is None or author.lives > 1 or not author.devices or schedule.state is not FAILED:
        return
    if schedule.error == "stale_devices" and town.reseals_in_time:
        raise Broken("sealed again in time", f"{planned.id} has failed, and its author was there: {schedule}")
    if schedule.error == "device_removed" and any(device.number == schedule.by for device in author.devices):
        raise Broken("only a revoked author does not fire", f"{planned.id} of {schedule.by:x}")


# --- to a webhook -----------------------------------------------------------------------------


def _check_calls(town: ScheduleTown, planned: Planned, seen: ScheduleSeen) -> None:
    schedule, slack = seen.schedule, town.world.clock_slack_ms
    called = town.receiver.called.get(planned.id)
    if called is None:
        if schedule.state is not CANCELLED:
            raise Broken("never zero times", f"{planned.id} is {schedule.state.name}, and was never called")
        return
    if early := [arrival for arrival in called.arrivals if arrival.at < planned.deliver_at - slack]:
        raise Broken("never before its time", f"{planned.id} was called at {early[0].at}, not {planned.deliver_at}")
    if len(called.contents) > 1:
        raise Broken("one message, one content", f"{planned.id} was called with {called.contents}")
    if schedule.state is DELIVERED and not called.succeeded:
        raise Broken("delivered means delivered", f"{planned.id} never had a 2xx")
    if schedule.state is FAILED and any(ended.outcome is CallOutcome.DELIVERED for ended in called.told):
        raise Broken("any success ends it", f"{planned.id} had a 2xx, and has failed")
    if schedule.retry_count > RETRIES:
        raise Broken("retries where they belong", f"{planned.id} was retried {schedule.retry_count} times")
    attempts = {arrival.attempt for arrival in called.arrivals}
    if len(attempts) < max(attempts):
        raise Broken("an outcome is of its attempt", f"of {planned.id} only the calls {sorted(attempts)} were made")
    if schedule.retry_count > schedule.attempt:
        raise Broken("a failure counts once", f"{planned.id} had {schedule.retry_count} in {schedule.attempt} calls")
    refused = schedule.error == "http_404"
    if schedule.state is FAILED and not refused and (schedule.retry_count < RETRIES or len(attempts) <= RETRIES):
        raise Broken("retries where they belong", f"{planned.id} has failed after the calls {sorted(attempts)}")
    if (planned.account, seen.serial) not in town.letters:
        _check_delays(town, planned)


def _check_delays(town: ScheduleTown, planned: Planned) -> None:
    slack = town.world.clock_slack_ms
    by_attempt: dict[int, list[int]] = {}
    called = town.receiver.called[planned.id]
    for arrival in called.arrivals:
        by_attempt.setdefault(arrival.attempt, []).append(arrival.at)
    for attempt, times in sorted(by_attempt.items()):
        said = [arrival.said for arrival in called.arrivals if arrival.attempt == attempt]
        following = by_attempt.get(attempt + 1)
        if not following:
            continue
        if all(ended.outcome is CallOutcome.REFUSED for ended in said):
            raise Broken("retries where they belong", f"{planned.id} was refused for good, and called again")
        asked_ms = min(ended.retry_after_ms for ended in said)
        waited = min(following) - min(times)
        if waited < max(BASE_MS << (attempt - 1), asked_ms) - slack:
            raise Broken("retries where they belong", f"call {attempt + 1} of {planned.id} came after {waited} ms")
