"""Guests that did not come: each is revoked at the server, where it would stay linked without anybody knowing.

Knows:   whom to revoke, and who has not answered yet.
Touches: one errand for each, so that a restart only delays it.
Never:   gives up because nobody was there to hear it; or insists on what is so already.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nightmail.model.answers import Said
from nightmail.model.records import Unlinked
from nightmail.model.refusals import Refusal

from .again import Again
from .hub import Hub

ERRAND = "revoke "


class Revoking:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._again = Again(hub, self._ask_all)
        self.on_revoked: Callable[[int], None] = lambda _: None
        """Called with a device that the server no longer has."""

    def revoke(self, device: int) -> None:
        self._hub.store.put_errand(_name(device), b"")
        self._ask(device)

    def spare(self, device: int) -> None:
        """The person wants it after all."""
        if self._hub.store.errand(_name(device)) is not None:
            self._hub.store.drop_errand(_name(device))

    def connected(self) -> None:
        self._again.connected()

    def lost(self) -> None:
        self._again.lost()

    def deadline(self) -> int | None:
        return self._again.due

    def tick(self) -> None:
        self._again.tick()

    def _ask_all(self) -> None:
        for name in self._hub.store.errands(ERRAND):
            self._ask(int(name.removeprefix(ERRAND), 16))

    def _ask(self, device: int) -> None:
        if self._hub.online:
            self._hub.ask(Unlinked(device), partial(self._answered, device))

    def _answered(self, device: int, said: Said) -> None:
        if isinstance(said, Refusal) and said.retry:
            self._again.later()
            return
        # Done; or refused for good: it is gone, or not this device's to revoke any more.
        self.spare(device)
        self.on_revoked(device)


def _name(device: int) -> str:
    return f"{ERRAND}{device:016x}"
