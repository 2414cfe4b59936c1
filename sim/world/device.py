"""A simulated device: the real client machine on a store that can crash, driven by the world.

Knows:   the machine, its connection and its timers; what its person asks of it.
Never:   does anything for the machine that its driver in the client library would not do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from nightmail.client.errors import ClientError, StoreFailed
from nightmail.client.inbox.inbox import UNPROVISIONED
from nightmail.client.link.liveness import SILENT
from nightmail.client.link.route import ServerRoute
from nightmail.client.machine.context import Context
from nightmail.client.machine.machine import Machine
from nightmail.client.machine.parts import build_sealer
from nightmail.client.own_devices.device_linking import PendingLink
from nightmail.client.store.rows import Identity
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.sealer import Sealer
from nightmail.e2ee.content import Content
from nightmail.model.words import Kind, Lane
from nightmail.wire.closing import FINAL, CloseCode
from sim.faults.lying_server import Forger
from sim.judges.client_schedules import ScheduleTap
from sim.judges.drained import has_untold_reading
from sim.judges.group_tap import GroupTap
from sim.judges.tap import Tap
from sim.judges.timers import TimerJudge
from sim.judges.witness import Witness

from .device_store import WatchedSealer, WatchedStore
from .network import BROKEN, Wire
from .sealed_device import Code, SeededSecrets, WatchedSealed

if TYPE_CHECKING:
    from .people import Person

COMMIT_MS = 12
RESTART_MS = 1_500
FROZEN_MS = 5_000
"""Longer than an app hangs."""
BACK_MS = 60_000


class Device:
    def __init__(self, person: Person, me: Identity, code: Code | None = None) -> None:
        self.person, self.me, self.world, self.history = person, me, person.world, person.town.history
        self.name = f"{person.handle}.{me.device & 0xFFF}"
        self.seen = self.history.of(me.device)
        self.limits = person.town.client_limits
        self.witness = Witness(self)
        self.late_ms = COMMIT_MS
        """How long ago what it says now may have been made."""
        self.timers = TimerJudge(self)
        self.store = WatchedStore(self.witness.written, person.store_fails, lambda: self.world.maybe(0.5), self.timers)
        self._copy: dict[int, bytes] | None = None
        self.was_older = False
        """Its sessions were once those of an older copy: it may open what it opened before."""
        self.forger = Forger(self)
        if code is not None:
            code.keep(self.store)
        self.groups = GroupTap(self)
        self.later = ScheduleTap(self)
        self.tap = Tap(self)
        self.route = ServerRoute(person.town.backend.addresses, self.limits, self.world.chance)
        self.machine = self._new_machine()
        self.wants_online = True
        self.removed = False
        """No list names it any more."""
        self.dead = False
        self.wire: Wire | None = None
        self._is_open = False
        self._address = self.route.addresses[0].socket
        self._dialed_at = 0
        self._dialing = 0
        """Counts plans to connect: a later one makes an earlier one void."""
        self._frozen = False
        self._missed: deque[Callable[[], None]] = deque()
        """What happened while the app hung."""
        self._turning = False
        self._rings: int | None = None
        self._count = 0
        self._life = 0
        self._behind_ms = 0
        """How far its clock was set back."""

    def _new_machine(self) -> Machine:
        chance = self.world.chance
        return Machine(self.store, self.me, self.limits, chance, SeededSecrets(chance), self._make_sealer)

    def _make_sealer(self, context: Context, lists: DeviceLists) -> Sealer:
        if self.person.town.sealed:
            return build_sealer(context, lists, partial(WatchedSealed, self))
        return WatchedSealer(self)

    # --- connecting -------------------------------------------------------------------------------

    @property
    def online(self) -> bool:
        return self.machine.online

    def dial(self) -> None:
        if self.wire is not None or self.dead or not self.wants_online:
            return
        town = self.person.town
        self._dialed_at = self.world.now
        self.wire = Wire(self.world, self, town.link_delay, town.socket_room)
        self._is_open = False
        wire, address = self.wire, self._address
        wire.dial(lambda: town.backend.front(address))
        self.world.later(self.limits.connect_ms, lambda: self._not_opened(wire))

    def _not_opened(self, wire: Wire) -> None:
        if wire is not self.wire or self._is_open:
            return
        if self._frozen:
            self.world.later(self.limits.connect_ms, lambda: self._not_opened(wire))
        else:
            self.world.hit("nobody answered the door")
            self.leave(silently=True)
            self._redial(BROKEN, 0)

    def dial_later(self, in_ms: int) -> None:
        self._dialing = plan = self._dialing + 1
        self.world.later(in_ms, lambda: self.dial() if plan == self._dialing else None)

    def leave(self, *, silently: bool) -> None:
        """Let go of the connection. The machine learns of it, the server perhaps not."""
        wire, self.wire = self.wire, None
        if wire is None:
            return
        wire.leave(silently=silently)
        self._missed.clear()
        if self._is_open:
            self.machine.lost(self.now)
            self._turn()

    def opened(self, wire: Wire) -> None:
        self._when_awake(wire, partial(self._opened, wire))

    def _opened(self, _wire: Wire) -> None:
        self._is_open = True
        self.machine.connected(self.now)
        self._turn()

    def refused(self, wire: Wire, retry_ms: int) -> None:
        if wire is self.wire:
            self.wire = None
            self._redial(BROKEN, retry_ms)

    def heard(self, wire: Wire, frame: bytes) -> None:
        self._when_awake(wire, lambda: self._hear(frame))

    def _hear(self, frame: bytes) -> None:
        if self.machine.listens:
            self.tap.hear(frame)
            self.machine.receive(self.forger.pass_on(frame), self.now)
            self._turn_soon()

    def ended(self, wire: Wire, code: int) -> None:
        self._when_awake(wire, partial(self._ended, code))

    def _ended(self, code: int) -> None:
        self.wire = None
        if not self._is_open:
            self._redial(code, 0)
            return
        ending = self.machine.closed(code, self.now)
        self._turn()
        self._redial(ending.code, ending.retry_ms)

    def _redial(self, code: int, retry_ms: int) -> None:
        if code == CloseCode.DISPLACED:
            # A Hello of its own past was slower than the one that followed it; its person opens the app again.
            self.world.hit("displaced by its own past")
        elif code in FINAL:
            if not self.removed or code == CloseCode.UNSUPPORTED:
                raise self.history.broke("the server behaves", f"{self.name} was sent away for good: {code}")
            self.world.hit("a lost device was turned away")
            return
        address, in_ms = self.route.ended(code, retry_ms, self.world.now - self._dialed_at)
        self._address = address.socket
        self.dial_later(in_ms)

    # --- turns ------------------------------------------------------------------------------------

    def _when_awake(self, wire: Wire, do: Callable[[], None]) -> None:
        if self._frozen:
            self._missed.append(lambda: do() if wire is self.wire else None)
        elif wire is self.wire:
            do()

    def _turn_soon(self) -> None:
        """A commit takes a while; what happens meanwhile goes with it."""
        if not self._turning:
            self._turning, life = True, self._life
            self.world.later(self.world.between(0, COMMIT_MS), lambda: self._turn() if life == self._life else None)

    def _turn(self) -> None:
        """Commit what happened, then let out what follows from it."""
        self._turning = False
        if self._frozen:
            return
        dirty = self.store.dirty
        try:
            turn = self.machine.turn()
        except StoreFailed:
            self.world.hit("client's commit failed")
            self.crash()
            return
        if dirty and self.person.crashes_after_commit():
            self.world.hit("client crashed between commit and ack")
            self.crash()
            return
        for frame in turn.frames:
            self.tap.say(frame)
            if self.wire is not None:
                self.wire.say(frame)
        for event in turn.events:
            self.witness.told(event)
        self.witness.check_all_told()
        self.timers.check_none_forgotten()
        self.groups.check_waiting()
        if turn.hang_up is not None and self.wire is not None:
            self._hang_up(turn.hang_up)  # another turn follows from it
        else:
            self._arm(turn.deadline)

    def _hang_up(self, why: str) -> None:
        if why not in (SILENT, UNPROVISIONED):
            raise self.history.broke("the server behaves", f"{self.name} hangs up: {why}")
        self.world.hit("server given up as silent" if why == SILENT else "a new device looks again")
        self.leave(silently=False)
        self._redial(BROKEN, 0)

    def _arm(self, deadline: int | None) -> None:
        if deadline is not None:
            at = max(deadline + self._behind_ms, self.world.now + 1)
            if self._rings is None or at < self._rings:
                self._rings = at
                self.world.later(at - self.world.now, self._ring)

    def _ring(self) -> None:
        if self._rings is None or self.world.now < self._rings:
            return
        self._rings = None
        if not self._frozen:
            self.machine.tick(self.now)
            self._turn()

    # --- what befalls it --------------------------------------------------------------------------

    def crash(self, older: dict[int, bytes] | None = None) -> None:
        """The device dies. What was not committed is gone; the server may not notice. Its sessions may be `older`."""
        dirty = self.store.dirty
        self.world.tell(self.name, "crashes" + (" before its commit" if dirty else ""))
        if dirty:
            self.world.hit("client crashed before its commit")
        self._life += 1
        self._turning = self._frozen = False
        self._missed.clear()
        self.witness.crashed()
        wire, self.wire = self.wire, None
        if wire is not None:
            wire.leave(silently=self.world.maybe(0.5))
        self.store.crash()
        if older is not None:
            self.store.set_back(older)
        self._set_clock_back()
        self.machine = self._new_machine()
        self._rings = None
        self.machine.tick(self.now)
        self._turn()
        self.dial_later(self.world.between(0, RESTART_MS))

    def set_back(self) -> None:
        """Its sessions become those of an older copy, or are lost; the first time, the copy is made."""
        if self.store.dirty or self._frozen:
            return
        if self._copy is None:
            self._copy = self.store.sessions()
            return
        self.world.hit("sessions set back")
        self.world.tell(self.name, "has its sessions set back")
        self.history.set_back.add(self.me.device)
        older, self._copy = self._copy, None
        # A server that repeats things is told from a device that forgot only if that forgot everything.
        if self.person.town.habits.forges or self.world.maybe(0.3):
            older = {}
        self.was_older = self.was_older or bool(older)
        self.crash(older)

    def _set_clock_back(self) -> None:
        """Its clock may be behind when it starts again, and stays so."""
        town = self.person.town
        if not town.healing and town.timer_chance.random() < town.habits.clock_back:
            self.world.hit("device's clock set back")
            self._behind_ms += town.timer_chance.randint(1, BACK_MS)
        if self._behind_ms:
            self.timers.restarted()

    @property
    def now(self) -> int:
        """By its own clock."""
        return self.world.now - self._behind_ms

    def freeze(self, ms: int) -> None:
        """The app hangs: the kernel goes on taking bytes for it."""
        if self._frozen:
            return
        self.world.hit("app hung")
        self._frozen, life = True, self._life
        self.world.later(ms, lambda: self._thaw() if life == self._life else None)

    def _thaw(self) -> None:
        self._frozen = False
        self.late_ms = FROZEN_MS
        while self._missed and not self._frozen:
            self._missed.popleft()()
        self.machine.tick(self.now)
        self._turn()
        self.late_ms = COMMIT_MS

    # --- what its person does -----------------------------------------------------------------------

    def write(self, to: int, lane: Lane, life_ms: int) -> None:
        if self._frozen or self.removed:
            return
        if self.store.waiting >= self.person.town.most_waiting:
            self.world.hit("window full")
            return
        self._count += 1
        seen = self.store.conversation(to).seen
        text = f"{self.name}/{self._life}/{self._count}"
        life_ms = life_ms or self.machine.timer(to)
        if self.person.town.sealed:
            message = self.machine.write(to, Content(Kind.TEXT, text), self.now, lane=lane, life_ms=life_ms)
        else:
            message = self.machine.compose(to, text.encode(), self.now, lane=lane, life_ms=life_ms)
        self.witness.writes(message.id, seen, life_ms)
        self._turn_soon()

    def set_timer(self, peer: int, life_ms: int) -> None:
        if self._frozen or self.removed or self.store.waiting >= self.person.town.most_waiting:
            return
        seen = self.store.conversation(peer).seen
        change = self.machine.set_timer(peer, life_ms, self.now)
        self.witness.writes(change.id, seen, 0)
        self.world.hit("timer set")
        self._turn_soon()

    def do(self, deed: Callable[[Machine], object]) -> None:
        """Its person does something else with the app."""
        if not self._frozen and not self.removed:
            with suppress(ClientError):
                deed(self.machine)
            self._turn_soon()

    def read(self, peer: int) -> None:
        if not self._frozen and self.machine.mark_read(peer, self.now):
            self._turn_soon()

    def give_up(self) -> None:
        waiting = [row for row in self.store.outgoing() if not (row.void or row.reseal or row.content)]
        if waiting and not self._frozen and self.machine.give_up(waiting[0].id, self.now):
            self.world.tell(self.name, f"gives up {waiting[0].id}")
            self._turn_soon()

    def link(self, pending: PendingLink) -> None:
        """Its person shows it the code of a new device."""
        if not self._frozen and not self.removed:
            self.machine.link(pending, self.now)
            self._turn_soon()

    def revoked(self, device: int) -> None:
        """Its person has cut off another device."""
        if not self._frozen:
            self.machine.forget_own_devices()
            self.machine.dismiss(device, self.now)
            self.machine.sign_again(self.now)
            self._turn_soon()

    def verify(self, peer: int) -> None:
        """Its person has compared safety numbers."""
        if self.machine.sealer.believed.is_held(peer) and self.person.hesitates():
            return
        key = self.machine.account_key(peer)
        if not self._frozen and key and self.machine.agree(peer, self.now, key=key, verified=True):
            self.world.hit("contact verified")
            self._turn_soon()

    def accept(self) -> None:
        """Its person agrees to whatever key has changed."""
        believed = self.machine.sealer.believed
        for person in self.person.town.people:
            if not self._frozen and believed.is_held(person.account):
                self.world.hit("new key accepted")
                key = self.machine.account_key(person.account)
                self.machine.agree(person.account, self.now, key=key, verified=False)
                self._turn_soon()

    @property
    def settled(self) -> bool:
        """Nothing is half done: nothing unanswered, nothing uncommitted, no reading untold."""
        if self.person.town.sealed and not self.machine.sealer.is_reachable:
            return False
        if any(self.store.open_schedules()):
            return False
        return self.online and not self.store.waiting and not self.store.dirty and not has_untold_reading(self.store)
