"""A machine's clock that is wrong for long: while it runs, when it boots; and an operator who puts the time right.

Knows:   when the clock was wrong, when it may be believed, and when it must be.
Touches: the world's list of leaps that were believed: what was sent before one may end too early, by as much.
"""

from __future__ import annotations

from collections.abc import Callable

from nightmail.engine.clock import ClockLimits
from nightmail.engine.loop import Loop
from nightmail.model.clock import ClockSeen, ClockState
from nightmail.model.records import AnyBody, ClockSetBack
from sim.world.world import BelievedLeap, Broken, World

SUSPICIOUS = ClockLimits(leap_ms=2_000, start_ahead_ms=3_000, lasting_ms=1_500)
"""Small ones, so that a short world has many doubts."""
LATE_MS = 1_500
"""After this, a doubt that has lasted long enough has ended."""


class WrongClock:
    def __init__(self, world: World, limits: ClockLimits) -> None:
        self._world, self._limits = world, limits
        self.ahead_ms = 0
        self._wrong_ms = 0
        """By how much it is wrong, or was when it was believed."""
        self._doubted_at: int | None = None
        """When the loop that runs now began to doubt."""
        self._unready_at = 0
        """When it was last seen to load or to rebuild: meanwhile it writes nothing down."""
        self._on = True
        self._periods: list[tuple[int, int, int]] = []
        """When the clock went wrong, when it was right again, and when the operator saw that the time is right."""
        self._wrong_at = 0
        world.clock_slack_ms = limits.start_ahead_ms

    def begin(self, loop: Callable[[], Loop | None], say: Callable[[AnyBody], None]) -> None:
        self._loop, self._say = loop, say
        self._world.later(self._world.between(500, 5_000), self._go_wrong)

    def _go_wrong(self) -> None:
        world = self._world
        if not self._on:
            return
        if self._loop() is None and world.maybe(0.5):
            world.later(10, self._go_wrong)
            return
        world.hit("clock went wrong" if self._loop() else "booted with a wrong clock")
        self.ahead_ms = self._wrong_ms = world.chance.choice((4_000, 8_000, 15_000))
        self._wrong_at = world.now
        world.later(world.between(200, 6_000), self._put_right)

    def _put_right(self) -> None:
        self.ahead_ms, self._doubted_at = 0, None
        self._periods.append((self._wrong_at, self._world.now, 1 << 62))
        self._world.later(self._world.between(100, 2_000), self._look)

    def _look(self) -> None:
        """The operator, until the time is right."""
        loop = self._loop()
        if loop is None or not loop.ready or not self._on_time(loop):
            if loop and loop.ready:
                self._world.hit("time set back")
                seen = loop.clock_seen
                self._say(ClockSetBack(seen.wall_ms, seen.time_ms))
            self._world.later(self._world.between(100, 1_000), self._look)
        else:
            wrong, right, _ = self._periods.pop()
            self._periods.append((wrong, right, self._world.now))
            for leap in self._world.believed_leaps:
                leap.until = min(leap.until, self._world.now)
            if self._on:
                self._world.later(self._world.between(500, 15_000), self._go_wrong)

    def _on_time(self, loop: Loop) -> bool:
        return loop.clock_seen.state is not ClockState.BEHIND

    def late_ms(self, since: int, has_timer: bool) -> int:
        """How much too late something may end that was filed at `since`.

        Timers wait while time stands still. What has none counts from when the time was set back, if it was filed
        while the clock was wrong.
        """
        now, periods = self._world.now, self._periods
        return sum(
            max(0, min(now, end) - max(since, right if has_timer else wrong)) for wrong, right, end in periods
        )  # fmt: skip

    def heal(self) -> None:
        self._on, self.ahead_ms, self._doubted_at = False, 0, None

    # --- judging ------------------------------------------------------------------------------------

    def on_clock(self, seen: ClockSeen) -> None:
        if seen.state is ClockState.AHEAD:
            self._doubted_at = self._world.now
        elif self.ahead_ms:
            since, self._doubted_at = self._doubted_at, None
            if since is None or self._world.now - since < self._limits.lasting_ms:
                raise Broken(
                    "a leap is not believed", f"the clock is {self.ahead_ms} ms ahead, and is believed at once"
                )
            self._world.hit("wrong clock believed")
            self._world.believed_leaps.append(BelievedLeap(since, self._world.now, self._wrong_ms))

    def judge(self, loop: Loop, writes_fail: bool) -> None:
        """While writes may fail, nobody can say when the record that ends a doubt is in the log."""
        now, since = self._world.now, self._doubted_at
        if loop.state.now > now + self._wrong_ms + self._limits.start_ahead_ms:
            raise Broken("a leap is not believed", f"time is {loop.state.now - now} ms ahead")
        if not loop.ready:
            self._unready_at = now
        if since is not None and loop.clock_seen.state is not ClockState.AHEAD:
            self._doubted_at = None
        elif since is None or writes_fail:
            return
        elif now - max(since + self._limits.lasting_ms, self._unready_at) > LATE_MS:
            raise Broken("doubt ends", f"the clock has been doubted for {now - since} ms")
