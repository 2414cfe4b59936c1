"""A town whose people schedule messages: into conversations, into groups, and to a webhook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from msgspec.structs import replace

from nightmail.core.groups.reading import group_seen, needs_group
from nightmail.core.letters import pages as letter_pages
from nightmail.core.letters.seen import LetterSeen, letter_seen, needs_letter
from nightmail.core.schedules import reading
from nightmail.core.schedules.reading import ScheduleSeen
from nightmail.core.state import ShardState
from nightmail.model.answers import Said, ScheduleTaken
from nightmail.model.effects import Call
from nightmail.model.letter_rows import LetterStatus
from nightmail.model.limits import FoldLimits
from nightmail.model.records import AnyBody, CallScheduled, Discarded, LettersSettled, Replayed
from nightmail.model.refusals import IdReused, KeyReused, TimePast, UnknownAccount
from nightmail.model.rows import Entry, Need
from nightmail.model.schedule_rows import ScheduleState
from sim.judges.schedule_checkers import check_schedules

from .group_device import GroupDevice
from .group_people import GroupPerson
from .group_town import GroupBackend, GroupHabits, GroupTown
from .schedule_device import Errand, Planned, Poisoned, ScheduleDevice
from .webhook_receiver import WebhookReceiver
from .world import Broken, World

LONG_MS, SHORT_MS = 120_000, 2_000
AHEAD_MS = 6_000
LETTER_CLASS = "Poison in Sent"
URL = "https://receiver.example/hook"


class ScheduleBackend(GroupBackend, Protocol):
    on_call: Callable[[Call], None]

    def command(self, account: int, body: AnyBody) -> None: ...


class SchedulePerson(GroupPerson):
    device_class = ScheduleDevice

    def is_gone(self, device: GroupDevice) -> None:
        cast("ScheduleTown", self.town).gone_at[device.number] = self.world.now

    def block(self, other: GroupPerson, *, on: bool) -> None:
        """Nobody blocks here: a blocked author is told nothing, and so cannot judge."""


class ScheduleTown(GroupTown):
    person_class = SchedulePerson

    def __init__(
        self, world: World, people: int, off: frozenset[str] = frozenset(), habits: GroupHabits | None = None
    ) -> None:
        super().__init__(world, people, off, habits)
        self.planned: dict[str, Planned] = {}
        """Id → what somebody has asked for."""
        self.news: dict[int, set[int]] = {}
        """Device → the serials that it was told to look at."""
        self.receiver = WebhookReceiver(world)
        self.letters: set[tuple[int, int]] = set()
        """(Account, serial) whose letter somebody has tried to settle."""
        self.has_poison = world.maybe(0.5)
        self.poisoned: dict[str, Poisoned] = {}
        """Id → a message that becomes a dead letter."""
        self.stamps: dict[str, int] = {}
        self.letters_of: dict[tuple[int, int], str] = {}
        """(An account of the shard, offset) → the message that an operator saw in the letter."""
        self.gone_at: dict[int, int] = {}
        """Device → when its person was told that it is unlinked."""

    @property
    def reseals_in_time(self) -> bool:
        """A device that is there has the time to seal again, and learns that it must."""
        return self.reseal_ms == LONG_MS

    def _limits_of(self, limits: FoldLimits) -> FoldLimits:
        chance = self.world.chance
        self.reseal_ms = chance.choice((LONG_MS, LONG_MS, SHORT_MS))
        return replace(
            limits, reseal_ms=self.reseal_ms, schedules_kept_ms=chance.choice((0, 7 * 86_400_000)),
            call_patience_ms=1_500, slot_items=chance.choice((2, 1_000)), tick_items=chance.choice((1, 256)),
            retry_after_ms=3_000,
        )  # fmt: skip

    def open(self, backend: GroupBackend) -> None:
        machine = cast("ScheduleBackend", backend)
        machine.on_call = self.receiver.call
        self.receiver.backend = backend
        self.machine = machine
        super().open(backend)

    # --- the day ------------------------------------------------------------------------------

    def _act(self, person: GroupPerson, device: GroupDevice) -> None:
        chance, dice = self.world.chance, self.world.chance.random()
        assert isinstance(device, ScheduleDevice)
        if dice < 0.18:
            device.schedule(self._target(device), chance.randint(-200, AHEAD_MS))
        elif dice < 0.27:
            self._schedule_call(device, chance.randint(-200, AHEAD_MS))
        elif dice < 0.36:
            mine = [planned for planned in self.planned.values() if planned.account == person.account]
            if mine:
                device.cancel(chance.choice(mine[-6:]))
        elif dice < 0.38:
            self._settle_a_letter(person)
        elif dice < 0.44:
            self.look_at_letters(person.account, self._settle_some)
        else:
            super()._act(person, device)

    def _target(self, device: ScheduleDevice) -> int:
        groups = [group for group in self.groups if group in device.groups]
        if groups and self.world.maybe(0.3):
            return self.world.chance.choice(groups)
        return self.world.chance.choice(self.people).account

    def _schedule_call(self, device: ScheduleDevice, in_ms: int) -> None:
        """Over HTTP: with a key, every request has an id of its own."""
        first, account, has_key = device.next_id(), device.person.account, self.world.maybe(0.5)
        key = f"key of {first}" if has_key else ""
        planned = self.planned[first] = Planned(first, account, self.world.now + in_ms)
        asked: list[str] = []

        def body() -> AnyBody:
            ident = f"{first}{len(asked)}" if has_key and asked else first
            asked.append(ident)
            self.planned.setdefault(ident, planned)
            planned.asked = True
            return CallScheduled(
                account, ident, key, first.encode()[-16:].rjust(16), planned.deliver_at, URL, "text/plain",
                first.encode(),
            )  # fmt: skip

        def is_done(said: Said) -> bool:
            if isinstance(said, ScheduleTaken):
                planned.id = said.id
                self.taken(planned, said)
                return True
            return self.refused(planned, said)

        errand = Errand(body, is_done)
        device.errands.append(errand)

    def _settle_a_letter(self, person: GroupPerson) -> None:
        account = person.account

        def found(listing: list[ScheduleSeen]) -> None:
            for seen in listing:
                if seen.schedule.letter:
                    replay = self.world.maybe(0.6)
                    self.world.hit("letter replayed" if replay else "letter discarded")
                    self.letters.add((account, seen.serial))
                    kind = Replayed if replay else Discarded
                    for _ in range(self.world.between(1, 2)):
                        self.machine.command(account, kind(seen.schedule.letter))

        self.backend.read(
            account,
            lambda state: reading.needs_listing(state, account, ScheduleState.FAILED),
            lambda state: found(reading.listing(state, account, ScheduleState.FAILED).schedules),
        )

    def look_at_letters(self, account: int, then: Callable[[int, list[LetterSeen]], None]) -> None:
        """An operator looks at the newest letters about messages, on the shard of an account."""

        def listed(state: ShardState) -> list[int]:
            return letter_pages.listing(state, LETTER_CLASS).offsets

        def wanted(state: ShardState) -> list[Need]:
            missing = letter_pages.needs_listing(state, LETTER_CLASS, 0)
            return missing or [need for offset in listed(state) for need in needs_letter(state, offset)]

        def found(state: ShardState) -> None:
            seen = [letter for offset in listed(state) if (letter := letter_seen(state, offset))]
            for letter in seen:
                if letter.is_replayable:
                    self.letters_of[account, letter.offset] = letter.original.msg_id
            then(account, seen)

        self.backend.read(account, wanted, found)

    def all_letters(self, account: int) -> list[LetterSeen]:
        found: list[list[LetterSeen]] = []
        while not found:
            self.look_at_letters(account, lambda _, seen: found.append(seen))
            if not found:
                self.world.run_until(self.world.now + 200)
        return found[0]

    def _settle_some(self, account: int, letters: list[LetterSeen]) -> None:
        chance = self.world.chance
        if not letters:
            return
        letter = chance.choice(letters)
        if letter.status is LetterStatus.WAITING and not letter.is_replayable:
            self.world.hit("a letter that cannot be replayed")
        self.world.hit("message letter looked at")
        for _ in range(chance.randint(1, 2)):
            kind = chance.choice((Replayed, Replayed, Discarded))
            self.machine.command(account, kind(letter.offset))
        if self.world.maybe(0.2):
            offsets = tuple(letter.offset for letter in letters[:8])
            self.machine.command(account, LettersSettled(offsets, replay=True))

    # --- what people hear ---------------------------------------------------------------------

    def stamped(self, ident: str, at: int) -> None:
        first = self.stamps.setdefault(ident, at)
        if first != at:
            raise Broken("one message, one stamp", f"{ident} has the stamps {first} and {at}")

    def taken(self, planned: Planned, said: ScheduleTaken) -> None:
        self.world.hit("scheduled to a webhook" if not planned.to else "scheduled")
        if planned.serial not in (0, said.serial):
            raise Broken("every retry is answered alike", f"{planned.id} is schedule {planned.serial} and {said}")
        if said.deliver_at != planned.deliver_at:
            raise Broken("every retry is answered alike", f"{planned.id} is for {planned.deliver_at}, not {said}")
        planned.serial = said.serial

    def refused(self, planned: Planned, said: Said) -> bool:
        if isinstance(said, IdReused | KeyReused):
            raise Broken("every retry is answered alike", f"{planned.id} is {said}")
        final = isinstance(said, TimePast) or getattr(said, "word", "") in ("unknown_device", UnknownAccount.word)
        planned.given_up = planned.given_up or final
        return final

    def saw(self, planned: Planned, device: GroupDevice, entry: Entry) -> None:
        now = self.world.now
        if now < planned.deliver_at - self.world.clock_slack_ms:
            raise Broken("never before its time", f"{planned.id} is shown {planned.deliver_at - now} ms too early")
        if planned.cancelled:
            raise Broken("never after a cancel", f"{planned.id} is shown on {device.number:x}")
        first = planned.shown.setdefault(device.number, entry.n)
        if first != entry.n:
            raise Broken("exactly once", f"{planned.id} is shown on {device.number:x} as {first} and {entry.n}")

    def learn_group(self, device: ScheduleDevice, group: int) -> None:
        def learn(state: ShardState) -> None:
            if seen := group_seen(state, group):
                device.groups[group] = seen.epoch, seen.head

        self.backend.read(group, lambda state: needs_group(state, group), learn)

    # --- the night, and the verdict -----------------------------------------------------------

    def heal(self) -> None:
        super().heal()
        self.receiver.healing = True

    def _busy(self) -> str:
        if busy := super()._busy():
            return busy
        for person in self.people:
            for wanted in (ScheduleState.PENDING, ScheduleState.PROCESSING):
                if listed := self.listed(person.account, wanted):
                    return f"{listed[0].schedule.id} of {person.handle} is {wanted.name}"
        return ""

    def listed(self, account: int, wanted: ScheduleState | None) -> list[ScheduleSeen]:
        found: list[ScheduleSeen] = []
        before = 0
        while True:
            listing = self.read(
                account,
                lambda state, before=before: reading.needs_listing(state, account, wanted, before),
                lambda state, before=before: reading.listing(state, account, wanted, before),
            )
            found += listing.schedules
            if not (before := listing.before):
                return found

    def judge(self) -> None:
        super().judge()
        check_schedules(self)
