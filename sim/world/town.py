"""People, a server, a bad day, a night to heal, and a verdict in the morning."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from nightmail.client.limits import ClientLimits
from nightmail.gateway.limits import GatewayLimits
from nightmail.model.limits import DAY_MS, FoldLimits
from nightmail.model.words import Lane
from sim.faults.lying_client import Liar
from sim.judges.checkers import check_all
from sim.judges.client_schedules import ScheduleStory
from sim.judges.group_story import GroupStory
from sim.judges.history import History

from .device import Device
from .front import Backend, Limits
from .group_life import GroupLife
from .people import Habits, Person
from .schedule_life import ScheduleLife
from .world import Broken, World

HEALING_MS = 600_000
CALM_ROUNDS = 3
LAST_CHECKPOINT_MS = 12_000
"""Longer than two checkpoints may be apart."""

FEW_BYTES = 200
"""A mailbox has room for some twenty messages of this story's people."""
SOME_ENTRIES, FEW_OF_STRANGERS = 20, 3
SEALED_TIMES = 100
"""How much longer they are once they are sealed."""


class Town:
    def __init__(
        self, world: World, mode: str, people: int, off: frozenset[str] = frozenset(), *, sealed: bool = False,
        groups: bool = False, schedules: bool = False,
    ) -> None:  # fmt: skip
        self.world, self.mode, self.sealed = world, mode, sealed
        self.history = History(world)
        self.story = GroupStory()
        self.later = ScheduleStory()
        self.timer_chance = Random(f"timers {world.seed}")
        """Apart from the world's, so that timers leave the rest of a seed's story as it is."""
        chance = world.chance
        self.habits = Habits.draw(world, off, sealed=sealed)
        self.limits = Limits(draw_fold_limits(world), draw_gateway_limits(world))
        self.client_limits = draw_client_limits(world)
        self.most_devices = 3
        if sealed:
            self.limits = self.limits._replace(fold=few_keys(world, self.limits.fold))
            self.client_limits = seals_little(world, self.client_limits)
            if self.habits.link or groups or schedules:
                self._make_room()
        self.group_life = GroupLife(self, off) if groups else None
        self.schedule_life = ScheduleLife(self) if schedules else None
        self.link_delay = chance.choice(((0, 2), (5, 60), (100, 400)))
        self.socket_room = chance.choice((0, 2_000, 1 << 20))
        """Bytes that the kernels on both sides take without anybody reading."""
        self.most_waiting = chance.choice((10, 40))
        self.pace_ms = chance.choice((30, 200))
        self.offline_ms = chance.choice((5_000, 60_000))
        self.healing = False
        self.people = [Person(self, f"{name}{world.seed % 97}") for name in NAMES[:people]]
        self.liar = Liar(self, f"mal{world.seed % 97}")
        self.backend: Backend

    def _make_room(self) -> None:
        """A new device acknowledges nothing before it was told whose it is: that word must find room behind
        what others have sent it by then. With the limits of a real server it does."""
        fold, gateway, _ = self.limits
        self.habits.high_lane = min(self.habits.high_lane, 0.1)
        self.limits = Limits(
            replace(
                fold,
                mailbox_entries=10_000,
                mailbox_bytes=FoldLimits().mailbox_bytes,
                stranger_entries=FoldLimits().stranger_entries,
            ),
            replace(gateway, credit_entries=256, credit_bytes=1_048_576),
        )

    @property
    def has_few_bytes(self) -> bool:
        """A mailbox that is full here is so by its bytes."""
        return self.limits.fold.mailbox_bytes < FoldLimits().mailbox_bytes

    @property
    def has_small_shares(self) -> bool:
        """A stranger is soon refused here, and what it may send beyond that fails on single devices."""
        return self.limits.fold.stranger_entries == FEW_OF_STRANGERS

    @property
    def has_little_room(self) -> bool:
        """A mailbox may well be full here, and a message fail because of it."""
        return self.has_few_bytes or self.limits.fold.mailbox_entries < FoldLimits().mailbox_entries

    def open(self, backend: Backend) -> None:
        self.backend = backend
        for person in self.people:
            person.register()
        if self.habits.lie:
            self.liar.register()

    def live(self, device: Device) -> None:
        """Let a device act, for as long as there is somebody to act."""
        device.dial()

        def act() -> None:
            if device.removed or self.healing:
                return
            if len(self.people) > 1:
                device.person.act(device)
            if self.sealed and not device.person.hesitates():
                device.accept()
            self.world.later(self.world.between(1, self.pace_ms), act)

        self.world.later(self.world.between(1, self.pace_ms), act)

    @property
    def devices(self) -> list[Device]:
        return [device for person in self.people for device in person.devices]

    def heal(self) -> None:
        """No more faults, no more deeds; everybody is online."""
        self.healing = True
        for person in self.people:
            person.lift_blocks()
            for device in person.devices:
                if not device.wants_online:
                    person.come_back(device)
        self.liar.heal()

    def settle(self, left_over: Callable[[], str], rest_ms: int = LAST_CHECKPOINT_MS) -> None:
        """Wait until nothing is left to deliver; a mailbox that never drains is a broken promise."""
        until = self.world.now + HEALING_MS
        while busy := self._busy() or left_over():
            if self.world.now > until:
                raise Broken("everything drains", f"still, long after healing: {busy}")
            self.world.run_until(self.world.now + 1_000)
            for device in self.devices if self.sealed else ():
                device.accept()
        self.world.run_until(self.world.now + rest_ms)

    def calm(self, left_over: Callable[[], str]) -> None:
        """The morning after: everybody writes to everybody. The third time, everything opens at once."""
        restart_ms = self.client_limits.restart_ms
        if not self.sealed or (self.history.set_back and restart_ms > HEALING_MS):
            return  # Nobody waits for the hour that healing may take.
        for round_ in range(CALM_ROUNDS):
            self.history.calm = round_ == CALM_ROUNDS - 1
            for device in self.devices:
                for person in self.people:
                    if person is not device.person:
                        device.write(person.account, Lane.NORMAL, 0)
                if self.group_life is not None:
                    self.group_life.write_to_all(device)
            self.settle(left_over, restart_ms if self.history.set_back else 0)
        self.settle(left_over)

    def _busy(self) -> str:
        return ", ".join(device.name for device in self.devices if not device.settled)

    def judge(self, is_seated: Callable[[int], bool]) -> None:
        check_all(self, is_seated)


def draw_fold_limits(world: World) -> FoldLimits:
    chance, roomy = world.chance, FoldLimits()
    entries, size = chance.choice(
        ((5, roomy.mailbox_bytes), (SOME_ENTRIES, roomy.mailbox_bytes), (roomy.mailbox_entries, roomy.mailbox_bytes),
         (roomy.mailbox_entries, FEW_BYTES))
    )  # fmt: skip
    return FoldLimits(
        mailbox_entries=entries,
        share_parts=2,
        # In some worlds strangers are soon at their limit, and friends must get through all the same.
        stranger_entries=chance.choice((FEW_OF_STRANGERS, roomy.stranger_entries)) if entries == SOME_ENTRIES else 100,
        mailbox_bytes=size,
        failures_alone=chance.choice((1, 3, 1_000)),
        ring_acks=chance.choice((4, 16, 256)),
        ttl_ms=chance.choice((0, 4_000, 20_000, 300_000)),
        tick_items=chance.choice((1, 3, 256)),
        slot_items=chance.choice((1, 2, 1_000)),
        pin_tries=chance.choice((2, 10)),
        pin_lock_ms=chance.choice((1_000, 10_000)),
    )


def few_keys(world: World, limits: FoldLimits) -> FoldLimits:
    chance = world.chance
    return replace(
        limits,
        mailbox_bytes=limits.mailbox_bytes * SEALED_TIMES
        if limits.mailbox_bytes == FEW_BYTES
        else limits.mailbox_bytes,
        stock_one_time=chance.choice((6, 200)),
        stock_kem=chance.choice((3, 40)),
        low_one_time=chance.choice((1, 3)),
        low_kem=chance.choice((1, 3)),
        claims_per_minute=chance.choice((10, 200)),
    )


def seals_little(world: World, limits: ClientLimits) -> ClientLimits:
    """Few keys, because making them is most of what a sealed world costs; and healing within the day it has."""
    chance = world.chance
    return replace(
        limits,
        stock_one_time=chance.choice((2, 6)),
        stock_kem=chance.choice((1, 3)),
        stuck_ms=chance.choice((1_000, 5_000)),
        restart_ms=chance.choice((2_000, 20_000)),
    )


def draw_gateway_limits(world: World) -> GatewayLimits:
    """Small ones, mostly: what happens at a limit is what may go wrong."""
    chance = world.chance
    heartbeat_ms = chance.choice((1_000, 1_000, 3_000, 30_000))
    sends, connects = chance.choice(((20, 40), (50, 500))), chance.choice(((3, 4), (1_000, 2_000)))
    return GatewayLimits(
        hello_ms=chance.choice((1_500, 10_000)),
        heartbeat_ms=heartbeat_ms,
        silence_ms=3 * heartbeat_ms,
        credit_entries=chance.choice((3, 24, 256)),
        credit_bytes=chance.choice((2_000, 1_048_576)),
        batch_entries=chance.choice((2, 10, 100)),
        sends_per_s=sends[0],
        sends_burst=sends[1],
        items_burst=chance.choice((500, 5_000)),
        connects_per_s=connects[0],
        connects_burst=connects[1],
        retry_ms=chance.choice((200, 2_000)),
        strangers=chance.choice((4, 4_096)),
        drains_at_once=chance.choice((1, 16)),
        paced_per_s=chance.choice((2, 100)),
        unsent_bytes=chance.choice((500, 262_144)),
        stop_ms=chance.choice((200, 2_000)),
    )


def draw_client_limits(world: World) -> ClientLimits:
    chance = world.chance
    return ClientLimits(
        answer_ms=chance.choice((400, 2_000)),
        retry_ms_min=chance.choice((20, 300)),
        retry_ms_max=chance.choice((500, 5_000)),
        timer_ms_min=1,
        lifetime_ms=29 * DAY_MS if chance.random() < 0.9 else 3_000,
        parked_entries=chance.choice((2, 128)),
        parked_ms=chance.choice((100, 2_000)),
        ack_entries=chance.choice((1, 32)),
        ack_ms=chance.choice((0, 5, 300)),
        receipts_ack_entries=chance.choice((1, 32)),
        receipts_ack_ms=chance.choice((20, 200)),
        welcome_ms=chance.choice((1_500, 10_000)),
        connect_ms=2_000,
        backoff_ms_min=chance.choice((20, 200)),
        backoff_ms_max=chance.choice((300, 2_000)),
        settled_ms=chance.choice((1_000, 10_000)),
    )


NAMES = ("ada", "bob", "cleo", "dan", "eve", "finn")
