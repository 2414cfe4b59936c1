# pyright: reportPrivateUsage=false
"""Bugs in messages for later, in calls to webhooks, and in dead letters."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.core import due, late_filing, retries
from nightmail.core.letters import endings
from nightmail.core.schedules import firing, forgetting, keeping, looking, settling, taking

from .tools import Bug, Plant, edit

FOLD_OF_SCHEDULES = ("tests/core/schedules", "tests/core/letters/test_endings.py")
TESTS = ("tests of schedules",)
"""A page is swept once an hour: no world lives so long."""
NODE, CLUSTER = ("schedules node", "schedules cluster"), ("schedules cluster", "schedules node")


def _bug(name: str, plant: Plant, suites: tuple[str, ...] = NODE) -> Bug:
    return Bug(name, plant, suites, FOLD_OF_SCHEDULES, seconds=12 if suites is NODE else 6)


BUGS = (
    _bug("a scheduled message fires early", edit(
        taking._take, "schedule.next_at = schedule.deliver_at", "schedule.next_at = schedule.deliver_at - 2_000",
    )),
    _bug("a message is cancelled while it is on its way", edit(
        taking._check_open, "return InProgress(schedule.id)", "return None",
    ), CLUSTER),
    _bug("a cancel is answered and not done", edit(
        taking.step_cancelled, "end(state, account, serial, schedule, ScheduleState.CANCELLED)", "pass",
    )),
    _bug("a due item is lost when its slot is full", edit(
        due.schedule, "slot += NEXT_SLOT", "return",
    )),
    _bug("the outcome of an older attempt counts", edit(
        settling._counts, "and ended.attempt == schedule.attempt", "",
    )),
    _bug("the outcome of an attempt counts twice", edit(
        settling._counts, "and schedule.is_calling", "",
    )),
    _bug("a revoked author fires", edit(
        looking._fire, "or schedule.by not in row.devices", "",
    )),
    _bug("a message that is on its way is sealed again", edit(
        taking.step_resealed, "said = _check_open(schedule) or _replace", "said = _replace",
    ), CLUSTER),
    _bug("a late success is not believed", edit(
        settling._delivered, "(PROCESSING, FAILED)", "(PROCESSING,)",
    )),
    _bug("a call that nobody tells of is not made again", edit(
        looking.call, "s.next_at = state.now + state.shard.limits.call_patience_ms", "s.next_at = 0",
    )),
    _bug("a stale message waits for ever", edit(
        settling._wait_for_reseal, "schedule.next_at = schedule.deliver_at + state.shard.limits.reseal_ms",
        "schedule.next_at = 0",
    )),
    _bug("nobody is asked to seal again", edit(
        settling._wait_for_reseal, "tell_news(state, account, serial)", "pass",
    )),
    _bug("what was sealed again still counts as stale", edit(
        taking._replace, "schedule.is_stale, schedule.next_at = False, schedule.deliver_at", "pass",
    )),
    _bug("the content of a final schedule stays", edit(
        keeping.end, "schedule.ended_at, schedule.error, schedule.content = state.now, error, None",
        "schedule.ended_at, schedule.error = state.now, error",
    )),
    _bug("a schedule is forgotten before its request is too late", edit(
        keeping.forgotten_at, "max(state.now + kept_ms, schedule.deliver_at + PAST_MS + 1)", "state.now + kept_ms",
    ), CLUSTER),
    _bug("a repeated request schedules once more", edit(
        taking._taken_before, "if name is None:", "if name is None or name.name == schedule.id:",
    )),
    _bug("an id is new whatever the device has scheduled before", edit(
        taking._is_new, "return sequence > own.sequences.get(index, -1)", "return True",
    )),
    _bug("the highest sequence of a device is not kept", edit(
        taking._take, "own.sequences[index] = max(sequence, own.sequences.get(index, 0))", "pass",
    )),
    _bug("an item for a slot that is full is lost", edit(
        due.schedule, "due is not None and len(due.items) < most:\n            due.items.append(item)",
        "due is not None and len(due.items) < most + 1:\n            due.items[most - 1 :] = [item]",
    )),
    _bug("a page is swept before its time", edit(
        forgetting._is_over, "0 < schedule.next_at <= state.now", "0 < schedule.next_at",
    ), TESTS),
    _bug("a schedule is forgotten while its dead letter waits", edit(
        forgetting._is_over, "0 < schedule.next_at <= state.now", "schedule.next_at <= state.now",
    ), TESTS),
    _bug("a page is swept once", edit(
        forgetting.step_swept, "state.derived.append(SchedulesSwept(account, swept.page, page.sweep_at))", "pass",
    ), TESTS),
    _bug("a page is not swept at all", edit(
        keeping.forget_later, "state.derived.append(SchedulesSwept(account, number, at))", "pass",
    )),
    _bug("an idempotency key is not looked at", edit(
        taking._take, "if key else None", "if False else None",
    ), CLUSTER),
    _bug("what has ended still counts", edit(
        keeping._count, "own.open += sign", "own.open += sign > 0",
    )),
    _bug("a page lists another state", edit(
        keeping.change_state, "schedule.state = page.states[serial % PAGE_STATES] = new", "schedule.state = new",
    )),
    _bug("an author is not told that its schedule has ended", edit(
        keeping.end, "tell_news(state, account, serial)", "pass",
    )),
    _bug("a webhook is called again too soon", edit(
        retries.delay_ms, "policy.base_ms << (tries - 1)", "policy.base_ms",
    )),
    _bug("what a webhook asks for is not honoured", edit(
        settling._failed, "max(delay, asked_ms)", "delay",
    )),
    _bug("a call is given up one retry too early", edit(
        retries.delay_ms, "if tries > policy.retries:", "if tries >= policy.retries:",
    )),
    _bug("a call that was refused for good is made again", edit(
        settling._delay_ms, "if ended.outcome is CallOutcome.REFUSED:", "if False:",
    )),
    _bug("a fired message takes no number", edit(
        firing.step_fired, "stream.scheduled += 1", "pass",
    )),
    _bug("a fired message is filed by a stale list", edit(
        firing.step_fired, "if refusal := _check(state, account, by, sent):",
        "if (refusal := _check(state, account, by, sent)) and not isinstance(refusal, StaleDevices):",
    )),
    _bug("own copies of a fired message are forgotten", edit(
        late_filing.file_late, "if sent.own_envelopes:", "if False:",
    )),
    _bug("a device that was linked since is not missed", edit(
        settling._miss_copies, "if not content.own_envelopes and", "if content.own_envelopes and",
    )),
    _bug("a letter is replayed twice", edit(
        endings._check, "return None if letter.status is WAITING else LetterSettled(offset)", "return None",
    )),
    _bug("a replayed letter waits on", edit(
        endings.step_replayed, "settle(state, offset, LetterStatus.REPLAYED)", "pass",
    )),
    _bug("a replayed message has a new stamp", edit(
        endings.step_replayed, "letter.stamp, state.accounts", "state.now, state.accounts",
    )),
    _bug("a discarded message does not fail", edit(
        endings._give_up, "elif letter.stamp:", "elif False:",
    )),
    _bug("a replayed message is filed for an unlinked device", edit(
        late_filing._cannot, "if account is None or account.listed.get(device) != envelope.registration:", "if False:",
    )),
)  # fmt: skip
