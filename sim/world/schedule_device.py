"""A device of a person who schedules messages: it asks until it is answered, and seals again what has become stale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, cast

from nightmail.core.schedules import reading
from nightmail.core.schedules.reading import ScheduleSeen
from nightmail.model.answers import Accepted, Done, Said, ScheduleTaken
from nightmail.model.group_chain import NO_HEAD
from nightmail.model.records import AnyBody, Envelope, Resealed, ScheduleCancelled, Scheduled
from nightmail.model.refusals import AlreadyEnded, AlreadySent, InProgress, UnknownSchedule
from nightmail.model.rows import Account, Entry, PendingReceipt
from nightmail.model.schedule_rows import GroupContent, GroupTarget, PairContent, PairTarget
from nightmail.model.spans import numbers
from nightmail.model.words import Kind, Lane
from sim.judges.group_history import Stream

from .group_device import GroupDevice, Outgoing
from .poison import POISON

if TYPE_CHECKING:
    from .schedule_town import ScheduleTown

RETRY_MS = 400
LOOKED_AT_ONCE = 64


@dataclass
class Planned:
    """One scheduled message, as its people know it."""

    id: str
    account: int
    deliver_at: int
    to: int = 0
    """An account or a group; 0: a webhook."""
    serial: int = 0
    """Once it is taken."""
    asked: bool = False
    """It may have been taken since."""
    given_up: bool = False
    """It was refused for good, or its device is gone."""
    cancelled: bool = False
    """Somebody was told so."""
    sealed_for: frozenset[int] = frozenset()
    """Devices, of whichever version may have fired."""
    shown: dict[int, int] = field(default_factory=dict[int, int])
    """Device → when it was first shown there."""


@dataclass
class Poisoned:
    """A message that the fold cannot take."""

    id: str
    by: int
    to: int
    lane: int
    n: int
    shown: set[int] = field(default_factory=set[int])
    stamp: int = 0


@dataclass
class Errand:
    """Something that is asked until it is answered."""

    body: Callable[[], AnyBody | None]
    """None: not yet."""
    is_done: Callable[[Said], bool]
    asked_at: int = -RETRY_MS


class ScheduleDevice(GroupDevice):
    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.errands: list[Errand] = []
        self._to_look_at: set[int] = set()
        self._resealing: set[str] = set()
        self._fresh: dict[int, tuple[int, Account]] = {}
        self._planned = 0

    @property
    def schedules(self) -> ScheduleTown:
        return cast("ScheduleTown", self.town)

    @property
    def is_busy(self) -> bool:
        return super().is_busy or bool(self.errands or self._to_look_at)

    def write(self, to: int, lane: Lane, **sealed: object) -> None:
        """Some of it cannot be taken by the fold."""
        super().write(to, lane, **sealed)
        outgoing = self._outbox[Stream(self.number, to, lane)][-1]
        if to & 1 and self.schedules.has_poison and self.world.maybe(0.15):
            outgoing.id += POISON
            self.schedules.poisoned[outgoing.id] = Poisoned(outgoing.id, self.number, to, lane, outgoing.n)

    def _answered(self, stream: Stream, outgoing: Outgoing, was_accepted: bool, said: Said) -> None:
        super()._answered(stream, outgoing, was_accepted, said)
        if isinstance(said, Accepted) and said.tag:
            self.schedules.stamped(outgoing.id, said.at)

    # --- wishes -------------------------------------------------------------------------------

    def next_id(self) -> str:
        """No two have the same sequence, whatever they are for."""
        self._planned += 1
        return f"{self.number:x}:{self.world.now}:{self._planned}:s"

    def schedule(self, to: int, in_ms: int) -> None:
        ident = self.next_id()
        planned = Planned(ident, self.person.account, self.world.now + in_ms, to)
        self.schedules.planned[ident] = planned

        def body() -> AnyBody | None:
            content = self._seal(planned, stale=False)
            if content is None:
                return None
            planned.asked = True
            target = PairTarget(to) if to & 1 else GroupTarget(to)
            return Scheduled(ident, self._tag(planned), Kind.TEXT, 0, planned.deliver_at, target, content)

        def is_done(said: Said) -> bool:
            if isinstance(said, ScheduleTaken):
                self.schedules.taken(planned, said)
                return True
            return self.schedules.refused(planned, said)

        self.errands.append(Errand(body, is_done))

    def cancel(self, planned: Planned) -> None:
        def is_done(said: Said) -> bool:
            if said == Done():
                self.world.hit("cancelled")
                planned.cancelled = True
                return True
            if isinstance(said, AlreadySent | InProgress | AlreadyEnded | UnknownSchedule):
                self.world.hit(f"not cancelled: {said.word}")
                return True
            return False

        body = ScheduleCancelled(self.person.account, planned.id)
        self.errands.append(Errand(lambda: body, is_done))

    @staticmethod
    def _tag(planned: Planned) -> bytes:
        return planned.id.encode()[-16:].rjust(16, b".")

    def _seal(self, planned: Planned, *, stale: bool) -> PairContent | GroupContent | None:
        """With what is known of the recipient; None: that must be asked for first."""
        if not planned.to & 1:
            epoch, head = self.groups.get(planned.to, (0, NO_HEAD))
            return GroupContent(epoch, head, planned.id.encode())
        theirs, mine = self._known(planned.to, stale=stale), self._known(self.person.account, stale=stale)
        if theirs is None or mine is None:
            return None
        envelopes = self._envelopes(theirs, planned)
        own = self._envelopes(mine, planned) if planned.to != self.person.account else ()
        planned.sealed_for |= {envelope.device for envelope in (*envelopes, *own)}
        return PairContent(theirs.list_version, envelopes, own)

    def _envelopes(self, account: Account, planned: Planned) -> tuple[Envelope, ...]:
        text = planned.id.encode()
        return tuple(Envelope(device, reg, text) for device, reg in account.listed.items() if device != self.number)

    def _known(self, number: int, *, stale: bool) -> Account | None:
        """An account's list, at most a little old; the newest if it was `stale`."""
        since, account = self._fresh.get(number, (0, None))
        if account is None or (stale and self.world.now - since > RETRY_MS):
            self.town.backend.look(lambda desk: desk.account(number, lambda row: self._keep(number, row)))
            return None
        return account

    def _keep(self, number: int, row: Account | None) -> None:
        if row is not None:
            copy = Account(row.handle, listed=dict(row.listed), list_version=row.list_version)
            self._fresh[number] = self.world.now, copy

    # --- what comes ---------------------------------------------------------------------------

    def _show(self, place: int, seq: int, entry: Entry) -> None:
        super()._show(place, seq, entry)
        if entry.by and not entry.epoch:
            self.schedules.stamped(entry.id, entry.at)
            if poisoned := self.schedules.poisoned.get(entry.id):
                poisoned.shown.add(self.number)
        if planned := self.schedules.planned.get(entry.id):
            self.schedules.saw(planned, self, entry)

    def _hear(self, receipts: Sequence[PendingReceipt]) -> None:
        for receipt in receipts:
            if receipt.seq > self._receipts and not receipt.key[0] and receipt.key[1] == self.person.account:
                self._to_look_at.update(numbers(receipt.numbers))
                self.schedules.news.setdefault(self.number, set()).update(numbers(receipt.numbers))
        super()._hear(receipts)

    def _say(self) -> None:
        super()._say()
        for errand in list(self.errands):
            if self.world.now - errand.asked_at >= RETRY_MS and (body := errand.body()) is not None:
                errand.asked_at = self.world.now
                self._ask(body, partial(self._errand_answered, errand))
        if self._to_look_at:
            self._look()

    def _errand_answered(self, errand: Errand, said: Said) -> None:
        if errand in self.errands and errand.is_done(said):
            self.errands.remove(errand)

    def _look(self) -> None:
        account, serials = self.person.account, sorted(self._to_look_at)[:LOOKED_AT_ONCE]
        self.town.backend.read(
            account,
            lambda state: reading.needs_some(state, account, serials),
            lambda state: self._looked(serials, reading.some(state, account, serials)),
        )

    def _looked(self, serials: list[int], found: list[ScheduleSeen]) -> None:
        if self.removed:
            return
        # An owner that lags does not know yet what the news are about: then it is looked at again.
        lagging = {seen.serial for seen in found if seen.schedule.state.is_open and not seen.schedule.is_stale}
        self._to_look_at.difference_update(set(serials) - lagging)
        for seen in found:
            if seen.schedule.is_stale and seen.schedule.id not in self._resealing:
                self._reseal(seen.schedule.id)

    def _reseal(self, ident: str) -> None:
        planned = self.schedules.planned[ident]
        self._resealing.add(ident)
        self._fresh.pop(planned.to, None)
        self._fresh.pop(self.person.account, None)

        def body() -> AnyBody | None:
            if not planned.to & 1:
                self.schedules.learn_group(self, planned.to)
            content = self._seal(planned, stale=True)
            return None if content is None else Resealed(ident, content)

        def is_done(said: Said) -> bool:
            final = isinstance(said, ScheduleTaken | AlreadySent | InProgress | AlreadyEnded | UnknownSchedule)
            if final:
                self.world.hit("sealed again" if isinstance(said, ScheduleTaken) else "sealed again too late")
                self._resealing.discard(ident)
            return final

        self.errands.append(Errand(body, is_done))
