"""Sleeping devices are woken: tokens that come and go, a provider that fails, and its judgement of every push.

Knows:   which tokens devices have, which of them the provider still takes, and every push that arrived, and when.
Touches: the machine, by records of devices; devices, by letting them sleep.
Never:   asks the fold whether a push was right: connections are those of the gateways, mail is what devices lack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from nightmail.core.state import ShardState
from nightmail.model.answers import Done, Said
from nightmail.model.ids import account_of
from nightmail.model.limits import FoldLimits
from nightmail.model.push_rows import PushSeen
from nightmail.model.records import PushOutcome, PushRemoved, PushSet
from nightmail.model.rows import Kept, Need, RowKey
from nightmail.model.words import Lane, PushPlatform
from nightmail.outlets.push.ports import PushResult

from .front import WAKER_LIMITS
from .world import Broken

if TYPE_CHECKING:
    from .device import Device
    from .plan import Machine
    from .town import Town

Found = TypeVar("Found")

PATIENCE_MS = 1_500
AGAIN_MS = 10_000, 20_000, 40_000
"""A day here has seconds."""
SECOND_MS = 1_000
LATE_MS = 8_000
"""What stands for a minute: grace, patience, a retry, and a seat that nobody renews."""
LOOK_MS = 100
ASK_MS = 300
BASE_MS = 1_500
"""The first delay before a push that failed is repeated."""
ANSWER_MS = 40
HANGS_MS = 1_200
LEFT_MS = WAKER_LIMITS.grace_ms + WAKER_LIMITS.again_ms + SECOND_MS
"""A device that has left is pushed to within this time because of that."""
LEARNS_MS = 3_000


def with_wakes(limits: FoldLimits) -> FoldLimits:
    """The limits of the fold in a world with pushes."""
    first, second, third = AGAIN_MS
    return replace(
        limits, ttl_ms=0, wake_patience_ms=PATIENCE_MS, wake_again_ms=first, wake_second_ms=second,
        wake_third_ms=third,
    )  # fmt: skip


@dataclass
class Arrival:
    at: int
    seen: PushSeen
    result: PushResult


@dataclass
class Sleeper:
    """What is known of one device."""

    token: str = ""
    """That the server has confirmed, and nobody has replaced since."""
    token_at: int = 0
    asked: str | None = None
    """A token that it has asked for; empty: to have none."""
    made: int = 0
    dead: set[str] = field(default_factory=set[str])
    """Tokens that the provider answers with 410."""
    arrivals: list[Arrival] = field(default_factory=list[Arrival])


class PushLife:
    """The pusher of every node in this world."""

    def __init__(self, town: Town, machine: Machine) -> None:
        self.town, self.machine, self.world = town, machine, town.world
        self.sleepers: dict[int, Sleeper] = {}
        self.healthy = False
        """The outlets lose nothing, and tokens stay as they are."""
        self.calm = False
        """And the provider takes every push."""
        chance = self.world.chance
        self._fails = chance.choice((0.0, 0.1, 0.5))
        self._loses = chance.choice((0.0, 0.1))
        self._replaces = chance.choice((0.0, 0.01, 0.03))
        self._asleep: dict[int, int] = {}
        """Device → since when it is made to sleep."""
        self.world.later(LOOK_MS, self._look)

    # --- devices and their tokens -------------------------------------------------------------------

    def _look(self) -> None:
        for device in self.town.devices:
            sleeper = self.sleepers.setdefault(device.me.device, Sleeper())
            if sleeper.asked is None and not device.removed and not self.healthy:
                if not sleeper.token or self.world.maybe(self._replaces):
                    self._set_token(device, sleeper)
                elif self.world.maybe(self._replaces / 4):
                    self._remove_token(device, sleeper)
        self.world.later(LOOK_MS, self._look)

    def _set_token(self, device: Device, sleeper: Sleeper) -> None:
        sleeper.made += 1
        before, new = sleeper.token, f"https://push.test/{device.me.device:x}/{sleeper.made}"
        if before:
            self.world.hit("token replaced")
            if self.world.maybe(0.7):
                sleeper.dead.add(before)
        self._ask(device, sleeper, new)

    def _remove_token(self, device: Device, sleeper: Sleeper) -> None:
        self.world.hit("token removed by its device")
        self._ask(device, sleeper, "")

    def _ask(self, device: Device, sleeper: Sleeper, token: str) -> None:
        """Until it is so."""
        sleeper.asked, sleeper.token = token, ""
        body = PushSet(PushPlatform.UNIFIEDPUSH, token) if token else PushRemoved()

        def answered(said: Said) -> None:
            if said == Done() and sleeper.asked == token:
                sleeper.asked, sleeper.token, sleeper.token_at = None, token, self.world.now

        def again() -> None:
            if sleeper.asked == token and not device.removed:
                self.machine.ask(device.me.device, body, answered)
                self.world.later(ASK_MS, again)

        # An app learns of its new token some time after the provider has given up the old one.
        self.world.later(self.world.between(0, LEARNS_MS) if token else 0, again)

    # --- the provider -------------------------------------------------------------------------------

    def push(self, seen: PushSeen, done: Callable[[PushResult], None]) -> None:
        world, sleeper = self.world, self.sleepers.setdefault(seen.device, Sleeper())
        if not self.healthy and world.maybe(self._loses):
            world.hit("outlet lost a push")
            world.later(HANGS_MS, partial(done, PushResult(PushOutcome.FAILED, "timeout")))
            return
        self._judge(seen, sleeper)
        result = self._answer(seen, sleeper)
        sleeper.arrivals.append(Arrival(world.now, seen, result))
        world.tell("provider", f"{result.outcome.name} push to {seen.device:x}, {seen.depth} wait")
        world.hit(f"push {result.outcome.name.lower()}")
        # While the provider takes its time to say that a token is gone, the device may have a new one.
        hangs = world.maybe({PushOutcome.FAILED: 0.3, PushOutcome.GONE: 0.5}.get(result.outcome, 0.0))
        world.later(HANGS_MS if hangs else world.between(0, ANSWER_MS), partial(done, result))

    def _answer(self, seen: PushSeen, sleeper: Sleeper) -> PushResult:
        if seen.token in sleeper.dead:
            return PushResult(PushOutcome.GONE, "http_410")
        if self.calm or not self.world.maybe(self._fails):
            return PushResult(PushOutcome.DELIVERED)
        match self.world.between(0, 9):
            case 0:
                return PushResult(PushOutcome.REFUSED, "http_400")
            case 1 | 2:
                return PushResult(PushOutcome.FAILED, "http_429", self.world.chance.choice((0, 700)))
            case _:
                return PushResult(PushOutcome.FAILED, "http_503")

    def _judge(self, seen: PushSeen, sleeper: Sleeper) -> None:
        device, now = seen.device, self.world.now
        if now - self.machine.opened_at < WAKER_LIMITS.grace_ms:
            raise Broken("nobody in the grace time", f"{device:x} {now - self.machine.opened_at} ms after a start")
        if self.machine.holds(device) and now - self._held_at(device) > self.machine.race_ms:
            raise Broken("never for a connected device", f"{device:x} is connected, and pushed to")
        if sleeper.arrivals and now - sleeper.arrivals[-1].at < SECOND_MS:
            raise Broken("never twice in a second", f"{device:x} after {now - sleeper.arrivals[-1].at} ms")
        if not seen.depth:
            raise Broken("never in vain", f"{device:x} has nothing that waits")
        owned = seen.token.startswith(f"https://push.test/{device:x}/")
        if not owned:
            raise Broken("a token is its device's", f"{device:x} is pushed by {seen.token}")
        if sleeper.asked is None and sleeper.token != seen.token and now - sleeper.token_at > LATE_MS:
            raise Broken("the newest token counts", f"{device:x} has {sleeper.token}, and is pushed by {seen.token}")
        self._judge_retry(seen, sleeper)

    def _judge_retry(self, seen: PushSeen, sleeper: Sleeper) -> None:
        """What has failed is repeated after its delay, unless the device was connected since."""
        before = sleeper.arrivals[-1] if sleeper.arrivals else None
        if before is None or before.seen.woke_at != seen.woke_at or before.seen.since != seen.since:
            return
        if self._held_at(seen.device) + LEFT_MS >= self.world.now or before.seen.attempt >= seen.attempt:
            return
        waited, asked_ms = self.world.now - before.at, before.result.retry_after_ms
        least = AGAIN_MS[0] // 4 if before.result.outcome in (PushOutcome.DELIVERED, PushOutcome.REFUSED) else BASE_MS
        if waited < max(least, asked_ms) - self.world.clock_slack_ms:
            raise Broken("retries where they belong", f"{seen.device:x} is pushed to again after {waited} ms")

    # --- the night ----------------------------------------------------------------------------------

    def sleep(self) -> None:
        """Nothing fails any more. Half of the devices sleep, and somebody writes to each of them; then they are judged
        by the pushes that came."""
        world, town = self.world, self.town
        self.healthy = town.healing = True
        devices = [device for device in town.devices if not device.removed]
        if world.maybe(0.5):
            self._come_back(devices)  # What waited is fetched: the next wake begins in good weather.
        sleeping = [device for device in devices if world.maybe(0.5)] or devices[:1]
        for device in sleeping:
            device.wants_online = False
            device.leave(silently=world.maybe(0.3))
        world.run_until(world.now + LATE_MS)
        awake = [device for device in devices if device not in sleeping]
        self._come_back(awake)
        wrote_at = world.now
        self.calm = world.maybe(0.5)
        for device in awake:
            for person in town.people:
                if person is not device.person and self.world.maybe(0.7):
                    device.write(person.account, Lane.NORMAL, 0)
        world.run_until(wrote_at + 2 * LATE_MS)
        for device in sleeping:
            self._judge_woken(device)
        self.calm = True
        world.run_until(wrote_at + AGAIN_MS[-1] + 2 * LATE_MS)
        for device in sleeping:
            self._judge_repeats(device, wrote_at)

    def _come_back(self, devices: list[Device]) -> None:
        for device in devices:
            if not device.wants_online:
                device.person.come_back(device)
        self.world.run_until(self.world.now + LATE_MS)

    def _judge_woken(self, device: Device) -> None:
        """A device that sleeps with mail was pushed to since it sleeps."""
        number = device.me.device
        sleeper = self.sleepers.get(number)
        if sleeper is None or not self._sleeps(device, sleeper, 2 * LATE_MS):
            return
        waits = self._waiting(number)
        if not waits:
            return
        self.world.hit("slept with mail")
        asleep_since = max(self._held_at(number), sleeper.token_at)
        if not any(arrival.at >= asleep_since for arrival in sleeper.arrivals):
            raise Broken("woken within a minute", f"{device.name} sleeps since {asleep_since}, {waits} wait, no push")

    def _judge_repeats(self, device: Device, wrote_at: int) -> None:
        """Of a wake that began in good weather, every push is known: the first, and three repeats."""
        number = device.me.device
        sleeper = self.sleepers.get(number)
        if sleeper is None or not self._sleeps(device, sleeper, AGAIN_MS[-1] + 2 * LATE_MS):
            return
        if not self._waiting(number):
            return
        wake = [arrival for arrival in sleeper.arrivals if arrival.seen.woke_at == sleeper.arrivals[-1].seen.woke_at]
        if not wake or wake[0].at < wrote_at or wake[0].seen.attempt:
            return
        if any(arrival.result.outcome is not PushOutcome.DELIVERED for arrival in wake):
            return
        self.world.hit("repeats judged")
        first = wake[0].at
        expected = [first, *(first + again for again in AGAIN_MS)]
        slack = SECOND_MS + self.world.clock_slack_ms
        for arrival, at in zip(wake, expected, strict=False):
            if not at - self.world.clock_slack_ms - LOOK_MS <= arrival.at <= at + slack:
                raise Broken("repeated when due", f"{device.name} is pushed to {arrival.at - at} ms off")
        due = sum(at + slack < self.world.now for at in expected)
        if not due <= len(wake) <= len(expected):
            raise Broken("repeated when due", f"{device.name} was pushed to {len(wake)} times, not {due}")

    def _held_at(self, number: int) -> int:
        """When a device last came or left."""
        return self.machine.connections.changed_at.get(number, 0)

    def _sleeps(self, device: Device, sleeper: Sleeper, since_ms: int) -> bool:
        """Whether it has slept for so long, with one token that the provider takes."""
        if device.removed or device.wants_online or sleeper.asked is not None or not sleeper.token:
            return False
        before = self.world.now - since_ms
        return (
            sleeper.token not in sleeper.dead and sleeper.token_at < before and self._held_at(device.me.device) < before
        )

    # --- the verdict --------------------------------------------------------------------------------

    def judge(self) -> None:
        """A token that was set and never refused is there still, and no other."""
        for number, sleeper in self.sleepers.items():
            removed = not any(device.me.device == number for device in self.town.devices)
            if sleeper.asked is None and sleeper.token not in sleeper.dead:
                wanted = "" if removed else sleeper.token
                if (kept := self._kept_token(number)) != wanted:
                    raise Broken("a token is kept", f"{number:x} has {kept!r} instead of {wanted!r}")

    def _kept_token(self, number: int) -> str:
        def wanted(state: ShardState) -> list[Need]:
            return [] if number in state.pushes else [RowKey(Kept.PUSH, number)]

        def found(state: ShardState) -> str:
            target = state.pushes[number]
            return target.token if target else ""

        return self._read(number, wanted, found)

    def _waiting(self, number: int) -> int:
        """How many messages wait for a device that may wake it."""

        def wanted(state: ShardState) -> list[Need]:
            return [] if number in state.mailboxes else [RowKey(Kept.MAILBOX, number)]

        def found(state: ShardState) -> int:
            mailbox = state.mailboxes[number]
            return mailbox.waking if mailbox else 0

        return self._read(number, wanted, found)

    def _read(
        self, number: int, wanted: Callable[[ShardState], list[Need]], found: Callable[[ShardState], Found]
    ) -> Found:
        seen: list[Found] = []
        while not seen:
            self.machine.read(account_of(number), wanted, lambda state: seen.append(found(state)))
            if not seen:
                self.world.run_until(self.world.now + LOOK_MS)
        return seen[0]
