"""Disappearing messages on one device: none ends early, none is forgotten, none comes back.

Knows:   when each life began there, by what its store was told, and how long it is, by what its author said.
Touches: nothing. It is shown each change of the store when it is made, and told whether that became durable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nightmail.client.messages import Message, Tick
from sim.world.world import Broken

if TYPE_CHECKING:
    from sim.world.device import Device

PROMISE = "timers are kept"


@dataclass(frozen=True)
class Began:
    at: int
    life_ms: int
    uncounted_ms: int
    """What had not been counted on the device by then."""


class TimerJudge:
    def __init__(self, device: Device) -> None:
        self._device, self._world = device, device.world
        self._open: list[tuple[Message | str, int]] = []
        """What is not durable yet: a message as it was stored, or the id of one that was deleted, and when."""
        self._began: dict[str, Began] = {}
        self.ended: set[str] = set()
        self.uncounted_ms = 0
        self._committed_at = device.world.now

    # --- what the store is told -----------------------------------------------------------------

    def put(self, message: Message) -> None:
        if self._life_ms(message) or message.id in self.ended:
            self._open.append((message, self._world.now))

    def drop(self, message_id: str) -> None:
        self._open.append((message_id, self._world.now))

    def rolled_back(self) -> None:
        self._open.clear()

    def committed(self) -> None:
        # The machine saves the time of what happened last, and that was a while before its commit.
        self._committed_at = self._world.now - self._device.late_ms
        made, self._open = self._open, []
        for what, at in made:
            if isinstance(what, str) or what.is_erased:
                self._end(what if isinstance(what, str) else what.id, at)
            elif what.id in self.ended:
                raise self._broke(f"shows {what.id} again, whose life is over")
            elif (what.at or what.state is Tick.FAILED) if what.own else what.state is Tick.READ:
                self._began.setdefault(what.id, Began(at, self._life_ms(what), self.uncounted_ms))

    def _life_ms(self, message: Message) -> int:
        """What its author said. Where nothing is sealed, a re-seal says only what is left."""
        written = self._device.history.messages.get(message.id)
        return written.life_ms if written and self._device.person.town.sealed else message.life_ms

    def _end(self, message_id: str, at: int) -> None:
        if message_id in self.ended:
            return
        self.ended.add(message_id)
        began = self._began.pop(message_id, None)
        if began is None:
            raise self._broke(f"deletes {message_id}, which was neither read nor sent")
        if at - began.at < began.life_ms:
            raise self._broke(f"deletes {message_id} after {at - began.at} of {began.life_ms} ms")
        self._world.hit("message disappeared")
        if message_id in self._device.store.searchable:
            raise self._broke(f"still finds {message_id}, whose life is over")

    def left_ms(self, message_id: str) -> int | None:
        """The most that may be left of a life; None: it has not begun here."""
        if (began := self._began.get(message_id)) is None:
            return None
        return began.life_ms - (self._world.now - began.at) + (self.uncounted_ms - began.uncounted_ms)

    # --- time -----------------------------------------------------------------------------------

    def restarted(self) -> None:
        """The device starts again with a clock that is behind: what passed since its last commit is not counted."""
        self.uncounted_ms += self._world.now - self._committed_at

    def check_none_forgotten(self) -> None:
        """A turn is over."""
        for message_id in self._began:
            left = self.left_ms(message_id)
            if left is not None and left < -self._device.late_ms:
                raise self._broke(f"still has {message_id}, {-left} ms after its end")

    def _broke(self, what: str) -> Broken:
        return self._device.history.broke(PROMISE, f"{self._device.name} {what}")
