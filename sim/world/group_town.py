"""A town whose people talk in groups: a bad day, a night to heal, and a verdict in the morning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol, TypeVar

from msgspec.structs import replace

from nightmail.core.groups.reading import (
    GroupSeen,
    chain_after,
    group_seen,
    needs_chain,
    needs_group,
    receipts_of,
)
from nightmail.core.state import ShardState
from nightmail.engine.ports import Mailboxes
from nightmail.model.answers import Said
from nightmail.model.limits import FoldLimits
from nightmail.model.records import AnyBody
from nightmail.model.rows import Need
from nightmail.model.words import Lane, MessageState
from sim.judges.group_checkers import check_all
from sim.judges.group_history import GroupHistory

from .front import Limits
from .group_device import GroupDevice
from .group_people import GroupPerson
from .town import draw_gateway_limits
from .world import Broken, World

T = TypeVar("T")
CHAIN_MAX = 10_000
NAMES = ("ada", "ben", "cleo", "dan", "eve", "fay")
HEALING_MS = 300_000
SOON_MS = 5_000
REST_MS = 12_000
FEW_ENTRIES = 25
MOST_DEVICES = 3


@dataclass
class GroupHabits:
    """What people do, by weight."""

    write_to_one: float = 10
    write: float = 52
    seal: float = 8
    change: float = 8
    change_back_and_forth: float = 2
    read: float = 6
    nap: float = 4
    link: float = 4
    unlink: float = 3
    log_out: float = 0.3
    block: float = 1
    register_again: float = 0.3
    close: float = 0.2
    logs: float = 0.5
    """How many worlds have groups with a log."""
    tells: float = 0.5
    """In how many worlds groups are told of all devices at once."""


ACTS = tuple(habit.name for habit in fields(GroupHabits) if habit.name not in ("logs", "tells"))


class GroupBackend(Protocol):
    """A machine, as people with groups use it: without connections."""

    def look(self, ask: Callable[[Mailboxes], None]) -> None: ...

    def ask(self, by: int, body: AnyBody, answer: Callable[[Said], None]) -> None: ...

    def read(
        self, account: int, wanted: Callable[[ShardState], Sequence[Need]], then: Callable[[ShardState], None]
    ) -> None: ...


class GroupTown:
    person_class = GroupPerson

    def __init__(
        self, world: World, people: int, off: frozenset[str] = frozenset(), habits: GroupHabits | None = None
    ) -> None:
        self.world, self._off, self.habits = world, off, habits or GroupHabits()
        chance = world.chance
        self.history = GroupHistory()
        self.has_logs = chance.random() < self.habits.logs and "logs" not in off
        self._has_little_room = chance.random() < 0.25 and "little room" not in off
        limits = FoldLimits(
            relistings=60 if chance.random() < self.habits.tells else 1, group_changes=10_000,
            chain_kept=chance.choice((2, 4_096)), ttl_ms=chance.choice((0, 3_600_000)),
        )  # fmt: skip
        if self.has_logs:
            most = chance.choice((2, 3))
            limits = replace(limits, group_write_members=most, group_read_members=most + 1)
        if chance.random() < 0.15 and "expiry" not in off:
            limits = replace(limits, ttl_ms=SOON_MS)
        if self._has_little_room:
            limits = replace(limits, mailbox_entries=FEW_ENTRIES)
        self.limits = Limits(self._limits_of(limits), draw_gateway_limits(world))
        self.people = [self.person_class(self, f"{name}{world.seed % 97}") for name in NAMES[:people]]
        self.people[-1].is_private = chance.random() < 0.5
        self.people[-1].may_read = not self.people[-1].is_private
        self.groups: list[int] = []
        self.pace_ms = chance.choice((20, 100))
        self.healing = False
        self.backend: GroupBackend

    def _limits_of(self, limits: FoldLimits) -> FoldLimits:
        """With those of what else people do here."""
        return limits

    @property
    def loses_notices(self) -> bool:
        """A device may miss the word that its account joined, or was removed, and so cannot bear witness to it."""
        return self._has_little_room or self.limits.fold.ttl_ms == SOON_MS

    @property
    def devices(self) -> list[GroupDevice]:
        return [device for person in self.people for device in person.devices]

    def open(self, backend: GroupBackend) -> None:
        self.backend = backend
        for person in self.people:
            person.register()
        self.world.later(200, self._act_now_and_then)

    # --- the day --------------------------------------------------------------------------------

    def _act_now_and_then(self) -> None:
        if self.healing:
            return
        person = self.world.chance.choice(self.people)
        if person.devices:
            self._act(person, self.world.chance.choice(person.devices))
        elif not person.is_busy and person.lives < 3:
            person.register_again()
        self.world.later(self.world.between(1, self.pace_ms), self._act_now_and_then)

    def _act(self, person: GroupPerson, device: GroupDevice) -> None:
        chance = self.world.chance
        if len(self.groups) < 2 and chance.random() < 0.1:
            self._make(person, device)
            return
        group = chance.choice(self.groups) if self.groups else 0
        habits = vars(self.habits)
        habit = chance.choices(ACTS, [habits[act] for act in ACTS])[0] if group else "write_to_one"
        match habit:
            case "write_to_one":
                device.write(chance.choice(self.people).account, chance.choice(list(Lane)))
            case "write":
                if group in device.groups:
                    device.write(group, chance.choice((Lane.NORMAL, Lane.NORMAL, Lane.HIGH)))
            case "seal":
                if group in device.groups:
                    person.seal(device, group)
            case "change":
                person.change(device, group)
            case "change_back_and_forth":
                person.change_back_and_forth(device, group)
            case "read":
                if person.may_read:
                    device.read(group)
            case "nap":
                device.nap()
            case _:
                if not person.is_busy and habit not in self._off:
                    self._change_account(person, habit)

    def _make(self, person: GroupPerson, device: GroupDevice) -> None:
        chance = self.world.chance
        self.groups.append(chance.randrange(1 << 40) << 1 | 1 << 45)
        others = [other for other in self.people if other is not person]
        person.make(device, self.groups[-1], chance.sample(others, chance.randint(0, len(others))))

    def _change_account(self, person: GroupPerson, habit: str) -> None:
        other, is_first = self.world.chance.choice(self.people), person is self.people[0]
        match habit:
            case "link" if len(person.devices) < MOST_DEVICES:
                person.link()
            case "unlink" if len(person.devices) > 1:
                person.unlink()
            case "log_out" if len(person.devices) == 1 and not is_first:
                self.world.hit("logged out")
                person.log_out()
            case "block" if other is not person:
                person.block(other, on=self.world.maybe(0.5))
            case "register_again" if not is_first:
                person.register_again()
            case "close" if not is_first:
                person.close()
            case _:
                pass

    # --- the night, and the verdict -------------------------------------------------------------

    def heal(self) -> None:
        self.healing = True

    def settle(self, left_over: Callable[[], str]) -> None:
        until = self.world.now + HEALING_MS
        while busy := self._busy() or left_over():
            if self.world.now > until:
                raise Broken("everything drains", f"still, long after healing: {busy}")
            self.backend.look(self._forget_strangers)
            self.world.run_until(self.world.now + 1_000)
        self.world.run_until(self.world.now + REST_MS)
        if busy := left_over():
            raise Broken("everything drains", f"again, after a rest: {busy}")

    def _forget_strangers(self, desk: Mailboxes) -> None:
        for person in self.people:
            desk.account(person.account, person.forget_strangers)

    def _busy(self) -> str:
        for person in self.people:
            if person.is_busy:
                return f"{person.handle} waits for an answer"
        for device in self.devices:
            if device.is_busy:
                return f"{device.number:x} has something to say"
            for group in device.groups if self.has_logs else ():
                if not device.has_fetched(group):
                    return f"{device.number:x} has not fetched everything of {group:x}"
        return ""

    def judge(self) -> None:
        check_all(self)

    # --- what members may ask, after everything has settled ---------------------------------------

    def receipts_of(self, group: int, author: int, seqs: Sequence[int]) -> dict[int, dict[int, MessageState]]:
        return self.read(
            group, lambda state: needs_group(state, group), lambda state: receipts_of(state, group, author, seqs)
        )

    def group_seen(self, group: int) -> GroupSeen | None:
        return self.read(group, lambda state: needs_group(state, group), lambda state: group_seen(state, group))

    def chain(self, group: int) -> list[tuple[int, bytes]]:
        return self.read(
            group,
            lambda state: needs_chain(state, group, 0, CHAIN_MAX),
            lambda state: chain_after(state, group, 0, CHAIN_MAX),
        )

    def read(self, group: int, wanted: Callable[[ShardState], Sequence[Need]], asked: Callable[[ShardState], T]) -> T:
        found: list[T] = []
        for _ in range(50):
            self.backend.read(group, wanted, lambda state: found.append(asked(state)))
            if found:
                return found[0]
            self.world.run_until(self.world.now + 200)
        raise Broken("questions are answered", f"nobody answers for {group:x}")
