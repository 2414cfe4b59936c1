"""People with devices, and what they do all day: write, read, lose connections, change phones, block each other.

Which habits there are, and how strong, is drawn anew for each seed, so that every run is a
different kind of bad day.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from nightmail.model.answers import Done, Joined, Said
from nightmail.model.ids import SERVER, account_id
from nightmail.model.records import AnyBody, Blocked, Linked, Listed, ReceiptsSet, Registered
from nightmail.model.refusals import ListConflict
from nightmail.model.rows import Entry
from nightmail.model.words import Lane, Platform

from .client import Client
from .liar import lie

if TYPE_CHECKING:
    from .town import Town

RETRY_MS = 300
SETTLED_MS = 5_000
"""Longer than a copy of what was said may still be on its way."""


@dataclass
class Habits:
    """How likely each thing is, out of all that a device does."""

    write: float
    read: float
    cut: float
    crash: float
    second_link: float
    offline: float
    late_ack: float
    give_up: float
    block: float
    receipts: float
    link: float
    remove: float
    high_lane: float
    repeat: float
    lose_ack: float
    unreadable: float
    timer: float
    lie: float

    @classmethod
    def draw(cls, town: Town, off: frozenset[str]) -> Habits:
        chance = town.world.chance

        def some(most: float) -> float:
            return most * chance.random() if chance.random() < 0.7 else 0.0

        habits = cls(
            write=30, read=6, cut=some(4), crash=some(2), second_link=some(2), offline=some(3), late_ack=some(2),
            give_up=some(2), block=some(0.6), receipts=some(0.4), link=some(0.5), remove=some(0.3),
            high_lane=chance.choice((0.0, 0.1, 0.5)), repeat=some(0.2), lose_ack=some(0.2), unreadable=some(0.08),
            timer=some(0.2), lie=some(1),
        )  # fmt: skip
        for habit in off & {habit.name for habit in fields(cls)}:
            setattr(habits, habit, 0.0)
        return habits


class Person:
    def __init__(self, town: Town, handle: str) -> None:
        self.town, self.world, self.handle = town, town.world, handle
        self.account = account_id(handle)
        self.clients: list[Client] = []
        self.window = town.window
        self.blocked: set[int] = set()
        self.receipts_on = True
        self._changing = False
        self._wishing: set[int] = set()
        self._devices_made = 0

    # --- what chance decides ----------------------------------------------------------------------

    def link_delay(self) -> tuple[int, int]:
        return self.town.link_delay

    def finds_unreadable(self, entry: Entry) -> bool:
        return entry.of is None and not self.town.healing and self.world.maybe(self.town.habits.unreadable)

    def forgets_to_ack(self) -> bool:
        return not self.town.healing and self.world.maybe(self.town.habits.lose_ack)

    def repeats_itself(self) -> bool:
        return not self.town.healing and self.world.maybe(self.town.habits.repeat)

    def hides_reading(self, peer: int) -> bool:
        return self.account in self.town.history.receipts_off or peer in self.blocked or self._ever_blocked(peer)

    def _ever_blocked(self, peer: int) -> bool:
        return any((a, p) == (self.account, peer) for a, p, _, _ in self.town.history.blocks)

    # --- account and devices ------------------------------------------------------------------------

    def ask(self, by: int, body: AnyBody, answered: Callable[[Said], None]) -> None:
        """Say something until it is answered with anything but 'try again'."""
        open_question = [True]

        def answer(said: Said) -> None:
            if getattr(said, "retry", False) or not open_question[0]:
                return
            open_question[0] = False
            answered(said)

        def attempt() -> None:
            if open_question[0]:
                self.town.backend.submit(by, body, answer)
                self.world.later(RETRY_MS, attempt)

        attempt()

    def register(self) -> None:
        body = Registered(self.account, self.handle, *self._new_device())
        self.ask(SERVER, body, lambda said: self._add_client(said, body.registration))

    def _new_device(self) -> tuple[int, bytes, str, Platform]:
        self._devices_made += 1
        return self._devices_made, self.world.chance.randbytes(32), f"device {self._devices_made}", Platform.CLI

    def _add_client(self, said: Said, registration: int) -> None:
        if not isinstance(said, Joined):
            raise self.town.history.broke("accounts", f"{self.handle} could not join: {said!r}")
        client = Client(self.world, self.town.history, self, said.device, registration)
        self.world.tell(client.name, "joins")
        self.clients.append(client)
        self.town.live(client)

    def link_device(self) -> None:
        """A further device: linked, then listed, so that others seal for it."""
        if self._changing or len(self.clients) >= 3:
            return
        self._changing = True
        body = Linked(self.account, *self._new_device())

        def linked(said: Said) -> None:
            self._add_client(said, body.registration)
            self._list()

        self.ask(self.clients[0].device, body, linked)

    def remove_device(self) -> None:
        """A device is lost: the next list no longer names it."""
        if self._changing or len(self.clients) < 2:
            return
        self._changing = True
        lost = self.clients.pop(self.world.between(1, len(self.clients) - 1))
        lost.removed = True
        lost.crash()
        self.town.history.removed.add(lost.device)
        self.world.tell(lost.name, "is lost")
        self.world.hit("device removed")
        self._list()

    def _list(self) -> None:
        def listed(version: int) -> None:
            devices = tuple(client.device for client in self.clients)
            body = Listed(self.account, version + 1, devices, version.to_bytes(4, "big"))

            def answered(said: Said) -> None:
                if isinstance(said, ListConflict):
                    listed(said.version)
                    return
                assert isinstance(said, Done), said
                self._changing = False
                self.town.history.listed.setdefault(self.account, []).append((self.world.now, body.version))
                for client in self.clients:
                    client.outbox.forget_lists()

            self.ask(self.clients[0].device, body, answered)

        listed(0)

    def block(self, peer: int) -> None:
        """Block somebody, or change one's mind: not before every copy of the last wish has arrived."""
        if peer in self._wishing:
            return
        self._wishing.add(peer)
        on = peer not in self.blocked
        if on:
            self.blocked.add(peer)
            self.town.history.block(self.account, peer)
            self.world.hit("blocked")
        else:
            self.blocked.discard(peer)
            self.town.history.unblocks(self.account, peer)

        def answered(said: Said) -> None:
            if on:
                self.town.history.surely_blocked(self.account, peer)
            else:
                self.town.history.unblocked(self.account, peer)
            self.world.later(SETTLED_MS, lambda: self._wishing.discard(peer))

        self.world.tell(self.handle, f"{'blocks' if on else 'unblocks'} {peer:x}")
        self.ask(self.clients[0].device, Blocked(self.account, peer, on), answered)

    def switch_receipts(self) -> None:
        self.receipts_on = not self.receipts_on
        self.town.history.receipts_off.add(self.account)
        self.ask(self.clients[0].device, ReceiptsSet(self.account, self.receipts_on), lambda said: None)

    # --- a device's day -------------------------------------------------------------------------------

    def act(self, client: Client) -> None:
        """One thing that a device, or the person holding it, does."""
        habits, chance = self.town.habits, self.world.chance
        peer = chance.choice([p for p in self.town.people if p is not self])
        deeds: dict[str, Callable[[], None]] = {
            "write": lambda: self._write(client, peer.account),
            "read": lambda: client.read(peer.account),
            "cut": lambda: client.link.cut() if client.link else None,
            "crash": client.crash,
            "second_link": lambda: client.connect(self.town.backend, keep_old=True) if client.wants_online else None,
            "offline": lambda: self._go_offline(client),
            "late_ack": client.ack_again,
            "give_up": client.outbox.give_up,
            "block": lambda: self.block(peer.account),
            "receipts": self.switch_receipts,
            "link": self.link_device,
            "remove": self.remove_device,
            "lie": lambda: lie(client, self.town.backend),
        }
        names = list(deeds) if client.wants_online else ["write", "read", "give_up", "crash"]
        deeds[chance.choices(names, [getattr(habits, name) for name in names])[0]]()

    def _write(self, client: Client, peer: int) -> None:
        lane = Lane.HIGH if self.world.maybe(self.town.habits.high_lane) else Lane.NORMAL
        timer = self.world.between(1_000, 30_000) if self.world.maybe(self.town.habits.timer) else 0
        client.outbox.compose(peer, lane, life_ms=timer)

    def _go_offline(self, client: Client) -> None:
        client.wants_online = False
        for link in client.links:
            link.cut()
        self.world.tell(client.name, "goes offline")
        self.world.later(self.world.between(1_000, self.town.offline_ms), lambda: self._come_back(client))

    def _come_back(self, client: Client) -> None:
        client.wants_online = True
