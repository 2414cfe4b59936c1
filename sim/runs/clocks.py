"""One server whose clock goes wrong, is believed, and is set back, again and again: nothing ends before its time.

Knows:   the true time, and when each message was filed and for how long it may wait.
Touches: one loop in memory, which restarts; a recipient who never comes; an operator who sets the time back.

A message may end early only by as much as the server's own time is ahead of the true one at that moment. So what
waited while a wrong clock was believed and set back lives as long as if the clock had been right; and so does what is
filed while a clock is doubted that turns out to be right, after a server was off for long.

    python -m sim.runs.clocks --seeds 200
"""

from __future__ import annotations

from random import Random

from nightmail.core.gaps import gap_at
from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.clock import ClockLimits
from nightmail.engine.loop import Loop, LoopLimits
from nightmail.engine.memory import MemoryLog, MemoryRows
from nightmail.model.clock import ClockState
from nightmail.model.envelopes import Envelope
from nightmail.model.ids import SERVER, account_id, device_id
from nightmail.model.limits import FoldLimits
from nightmail.model.records import AnyBody, ClockSetBack, Record, Registered, Sent
from nightmail.model.words import Kind, Lane, Platform

from . import seeded_suite

ADA, BOB = account_id("ada"), account_id("bob")
PHONE, MAILBOX = device_id(ADA, 1), device_id(BOB, 1)
CLOCK = ClockLimits(leap_ms=500, start_ahead_ms=1_000, lasting_ms=1_500)
"""Small ones, so that a short story has many doubts."""
TTL_MS = 12_000
TIMERS_MS = 0, 0, 3_000, 8_000
AHEAD_MS = 4_000, 9_000, 30_000
"""By how much a clock is wrong, or a server off: more than is believed at once."""
STEP_MS = 100
STEPS = 600
EARLY_MS = 1_100
"""What a start believes at once, and a slot."""
LATE_MS = 120_000
"""When the clock is right again, everything has ended after this."""


class Broken(Exception):
    """A message has ended too early, or waits for ever."""


class Clock:
    """Of a machine. Only its error is random: the true time passes evenly."""

    def __init__(self) -> None:
        self.true_ms = 1_700_000_000_000
        self.ahead_ms = 0

    def wall(self) -> int:
        return self.true_ms + self.ahead_ms

    def pace(self) -> int:
        return self.true_ms


class Server:
    def __init__(self, seed: int) -> None:
        self._chance, self._clock = Random(seed), Clock()
        self._log, self._rows = MemoryLog(), MemoryRows()
        self._waiting: dict[int, tuple[int, int]] = {}
        """Number in the mailbox → when it was filed, by the true time, and how long it may wait."""
        self._sent = 0
        self._start()
        for handle, account in (("ada", ADA), ("bob", BOB)):
            self._do(Registered(account, handle, 7, bytes(32), "phone", Platform.CLI))

    def _start(self) -> None:
        clock, limits = self._clock, LoopLimits(clock=CLOCK)
        self._loop = Loop(self._log, self._rows, clock.wall, lambda _: None, pace=clock.pace, limits=limits)
        self._loop.recover()
        while not self._loop.adopt(NEWEST_FOLD, FoldLimits(ttl_ms=TTL_MS)):
            pass

    def _do(self, body: AnyBody, by: int = SERVER) -> None:
        self._loop.submit(Record(by, 1, body))
        self._loop.flush()

    def run(self) -> None:
        for _ in range(STEPS):
            self._live_on()
            draw = self._chance.random()
            if draw < 0.15:
                self._send()
            elif draw < 0.17:
                self._restart()
            elif draw < 0.19:
                self._clock.ahead_ms = self._chance.choice(AHEAD_MS)
            elif draw < 0.23:
                self._clock.ahead_ms = 0
            elif draw < 0.30:
                self._look_at_clock()
        self._clock.ahead_ms = 0
        for _ in range(LATE_MS // STEP_MS):
            self._live_on()
            self._look_at_clock()
        if self._waiting:
            raise Broken(f"{len(self._waiting)} messages wait for ever")

    def _live_on(self) -> None:
        self._clock.true_ms += STEP_MS
        self._loop.tick()
        self._judge()

    def _send(self) -> None:
        self._sent += 1
        n, life_ms, envelopes = self._sent, self._chance.choice(TIMERS_MS), (Envelope(MAILBOX, 7, b"sealed"),)
        sent = Sent(BOB, Lane.NORMAL, n, n, 0, f"{n:036}", bytes(16), Kind.TEXT, None, life_ms, 1, envelopes, ())
        self._do(sent, PHONE)
        self._waiting[n] = self._clock.true_ms, life_ms or TTL_MS

    def _restart(self) -> None:
        if self._chance.random() < 0.5:
            self._loop.save(at_once=True)
        if self._chance.random() < 0.4:
            self._clock.true_ms += self._chance.choice(AHEAD_MS)
        self._start()

    def _look_at_clock(self) -> None:
        """The operator, who sets the time back wherever it is ahead of the clock, whether that is right or not."""
        seen = self._loop.clock_seen
        if seen.state is ClockState.BEHIND:
            self._do(ClockSetBack(seen.wall_ms, seen.time_ms))

    def _judge(self) -> None:
        now, mailbox = self._clock.true_ms, self._loop.state.mailboxes.rows.get(MAILBOX)
        gaps = mailbox.lanes[Lane.NORMAL].gaps if mailbox else ()
        for n in [n for n in self._waiting if gap_at(gaps, n)]:
            filed, life_ms = self._waiting.pop(n)
            ahead_ms = max(0, self._loop.state.now - now)
            if (early := filed + life_ms - now - ahead_ms) > EARLY_MS:
                raise Broken(f"message {n} has ended {early} ms too early")


def run(seed: int) -> None:
    Server(seed).run()


if __name__ == "__main__":
    seeded_suite.main("clocks", __doc__, run)
