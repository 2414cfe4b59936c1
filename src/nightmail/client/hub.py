"""What the parts of the machine share: the store, the moment, and what is to be said and told.

Knows:   which question each answer belongs to, for as long as the connection lasts.
Never:   lets anything out: the machine does that, once the store has committed.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from nightmail.e2ee.chance import Chance
from nightmail.model.answers import Said
from nightmail.model.limits import FormLimits
from nightmail.wire.items import REF_MAX, Answered, Ask, Devices, FromDevice, Look, SaidByDevices

from .errors import Misbehaved
from .events import Event
from .limits import ClientLimits
from .store import Identity, Store

OnAnswer: TypeAlias = Callable[[Said], None]
OnDevices: TypeAlias = Callable[[Devices], None]


class Hub:
    def __init__(
        self, store: Store, identity: Identity, limits: ClientLimits, chance: Random, secrets: Chance
    ) -> None:  # fmt: skip
        self.store, self.identity, self.limits = store, identity, limits
        self.chance, self.secrets = chance, secrets
        """What moves a schedule a little, and what nobody may guess."""
        self.now = 0
        self.online = False
        """The server has said Welcome, and has not gone since."""
        self.window = limits.window
        self.body_bytes = FormLimits().body_bytes
        self.frame_bytes = limits.frame_bytes
        """The largest frame that the server reads."""
        self.items: list[FromDevice] = []
        self.events: list[Event] = []
        self.rekeyed: list[Callable[[int], None]] = []
        """Called with an account whose key is another now."""
        self.agreed: list[Callable[[int], None]] = []
        """Called with an account that what waited for it can go on to."""
        self.daily: list[Callable[[], None]] = []
        """Called once a day, to let go of what is no longer needed."""
        self._answers: dict[int, OnAnswer] = {}
        self._looks: dict[int, OnDevices] = {}
        self._ref = 0

    def tell(self, event: Event) -> None:
        self.events.append(event)

    def handle(self, account: int) -> str:
        """How an account is called here; its number in hex if nobody ever said."""
        return self.store.conversation(account).handle or f"{account:x}"

    def ask(self, body: SaidByDevices, answered: OnAnswer | None = None) -> None:
        assert self.online
        ref = 0
        if answered:
            ref = self._next_ref()
            self._answers[ref] = answered
        self.items.append(Ask(ref, body))

    def look(self, account: int, found: OnDevices) -> None:
        assert self.online
        ref = self._next_ref()
        self._looks[ref] = found
        self.items.append(Look(ref, account))

    def answered(self, item: Answered) -> None:
        if answered := self._answers.pop(item.ref, None):
            answered(item.said)

    def devices(self, item: Devices) -> None:
        if not (found := self._looks.pop(item.ref, None)):
            raise Misbehaved("a device list that nobody asked for")
        found(item)

    def lost(self) -> None:
        """The connection is gone, and with it everything that was to be said over it."""
        self.online = False
        self.items.clear()
        self._answers.clear()
        self._looks.clear()

    def _next_ref(self) -> int:
        while True:
            self._ref = self._ref % REF_MAX + 1
            if self._ref not in self._answers and self._ref not in self._looks:
                return self._ref
