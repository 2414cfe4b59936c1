"""Time that never goes back, also not with a restart."""

from __future__ import annotations

import msgspec

from nightmail.client.timers.life_clock import ERRAND, SAVE_MS
from tests.client.timers.talk import texts, timed_talk, writes

DAY = 86_400_000


def test_time_goes_on_from_what_was_saved_if_the_clock_is_behind_and_follows_it_if_it_is_not() -> None:
    town, (alice, bob) = timed_talk()
    writes(alice, bob, "secret")
    town.settle()
    bob.read(alice)
    saved = town.now
    for clock, passed, expected in (
        (saved - DAY, 700, saved + 700),
        (saved - DAY, 0, saved),
        (saved + 5, 700, saved + 705),
    ):
        bob.crash()
        bob.machine.tick(clock)
        bob.machine.tick(clock + passed)
        assert bob.machine.parts.context.life_clock.time() == expected


def test_time_is_saved_once_a_minute_while_nothing_else_is_written() -> None:
    town, (alice, bob) = timed_talk(life_ms=10 * SAVE_MS)
    writes(alice, bob, "secret")
    town.settle()
    bob.read(alice)
    bob.cut()
    for _ in range(5):
        town.wait(SAVE_MS)
    saved = town.now
    bob.crash()
    bob.machine.tick(saved - DAY)
    assert saved - bob.machine.parts.context.life_clock.time() < SAVE_MS
    bob.machine.tick(saved - DAY + 5 * SAVE_MS)
    assert texts(bob, alice) == []


def test_a_clock_that_was_far_ahead_once_does_not_keep_what_a_client_counts_that_runs_now_and_then() -> None:
    town, (alice, bob) = timed_talk()
    right = town.now
    bob.cut()
    bob.machine.tick(right + 3_650 * DAY)
    bob.machine.parts.context.life_clock.save()
    bob.store.commit()
    bob.crash()
    bob.machine.tick(right)
    bob.connect()
    writes(alice, bob, "secret")
    town.settle()
    bob.read(alice)
    read_at = town.now
    for run in range(1, 7):
        bob.crash()
        bob.machine.tick(read_at + run * 10_000)
        bob.machine.turn()
        assert (run, texts(bob, alice)) == (run, ["secret"] if run < 6 else [])
        bob.machine.parts.context.life_clock.save()
        bob.store.commit()


def test_a_time_that_was_saved_without_the_clock_still_counts() -> None:
    town, (_, bob) = timed_talk()
    saved = town.now + DAY
    bob.store.put_errand(ERRAND, msgspec.msgpack.encode(saved))
    bob.store.commit()
    bob.crash()
    bob.machine.tick(town.now)
    assert bob.machine.parts.context.life_clock.time() == saved
