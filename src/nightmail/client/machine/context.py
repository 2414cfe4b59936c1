"""What all parts of the machine share: the store, the time, the connection, and what is to be let out.

Knows:   which question each answer belongs to, for as long as the connection lasts.
Never:   lets anything out: the machine does that, after the store has committed.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from nightmail.client.errors import Misbehaved
from nightmail.client.events import Event
from nightmail.client.limits import ClientLimits
from nightmail.client.messages import unnamed
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Identity
from nightmail.client.timers.life_clock import LifeClock
from nightmail.e2ee.chance import Chance
from nightmail.model.answers import Said
from nightmail.model.limits import FormLimits
from nightmail.wire.items import FIRST_ITEMS, REF_MAX, Answered, Ask, Devices, FromDevice, Look, SaidByDevices

from .signals import Signals

OnAnswer: TypeAlias = Callable[[Said], None]
OnDevices: TypeAlias = Callable[[Devices], None]


class Context:
    def __init__(
        self, store: Store, identity: Identity, limits: ClientLimits, chance: Random, secrets: Chance, signals: Signals
    ) -> None:
        self.store, self.identity, self.limits = store, identity, limits
        self.chance, self.secrets = chance, secrets
        """What moves a schedule a little, and what nobody may guess."""
        self.signals = signals
        self.now = 0
        self.online = False
        """The server has said Welcome on the present connection."""
        self.hang_up: str | None = None
        """Why the driver must close the connection; None: it stays open."""
        self.window = limits.window
        self.body_bytes = FormLimits().body_bytes
        self.frame_bytes = limits.frame_bytes
        """The largest frame that the server reads."""
        self.server_since = 1
        """The newest records that the server knows."""
        self.server_items = FIRST_ITEMS
        """The newest items that the server takes."""
        self.items: list[FromDevice] = []
        self.events: list[Event] = []
        self.life_clock = LifeClock(self)
        self._answers: dict[int, OnAnswer] = {}
        self._looks: dict[int, OnDevices] = {}
        self._ref = 0

    def tell(self, event: Event) -> None:
        """Tell the app, after the next commit."""
        self.events.append(event)

    def handle(self, account: int) -> str:
        """The handle of an account, to be shown."""
        if account == self.identity.account:
            return self.identity.handle
        return self.store.conversation(account).handle or unnamed(account)

    def ask(self, body: SaidByDevices, answered: OnAnswer | None = None) -> None:
        """Send a record, after the next commit; `answered` gets the answer, unless the connection is lost first."""
        assert self.online
        ref = 0
        if answered:
            ref = self._next_ref()
            self._answers[ref] = answered
        self.items.append(Ask(ref, body))

    def look(self, account: int, found: OnDevices) -> None:
        """Ask for an account's device list; likewise."""
        assert self.online
        ref = self._next_ref()
        self._looks[ref] = found
        self.items.append(Look(ref, account))

    def ask_item(self, make: Callable[[int], FromDevice], refused: OnAnswer) -> int:
        """Send an item that is answered by an item of its own, or refused. Returns its ref; `forget_ref` it then."""
        assert self.online
        ref = self._next_ref()
        self._answers[ref] = refused
        self.items.append(make(ref))
        return ref

    def forget_ref(self, ref: int) -> None:
        """The question was answered by an item of its own."""
        self._answers.pop(ref, None)

    def take_answer(self, item: Answered) -> None:
        if answered := self._answers.pop(item.ref, None):
            answered(item.said)

    def take_devices(self, item: Devices) -> None:
        if not (found := self._looks.pop(item.ref, None)):
            raise Misbehaved("a device list that nobody asked for")
        found(item)

    def lost(self) -> None:
        """The connection is gone, and with it every question and whatever was still to be sent."""
        self.online = False
        self.items.clear()
        self._answers.clear()
        self._looks.clear()

    def _next_ref(self) -> int:
        while True:
            self._ref = self._ref % REF_MAX + 1
            if self._ref not in self._answers and self._ref not in self._looks:
                return self._ref
