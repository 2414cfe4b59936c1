"""Devices that did not finish linking: each is revoked at the server, where it would stay linked unnoticed.

Knows:   which devices to revoke.
Touches: one errand for each, so that a restart only delays it.
Never:   gives up because the connection was lost; or insists on what the server refuses for good.
"""

from __future__ import annotations

from functools import partial

from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Retry
from nightmail.model.answers import Said
from nightmail.model.records import Unlinked
from nightmail.model.refusals import Refusal

ERRAND = "revoke "


class Revocations:
    def __init__(self, context: Context) -> None:
        self._context = context
        self.retry = Retry(context, self._ask_all)

    def revoke(self, device: int) -> None:
        self._context.store.put_errand(_name(device), b"")
        self._ask(device)

    def spare(self, device: int) -> None:
        """The person wants the device after all."""
        if self._context.store.errand(_name(device)) is not None:
            self._context.store.drop_errand(_name(device))

    def connected(self) -> None:
        self.retry.reset()
        self._ask_all()

    def _ask_all(self) -> None:
        for name in self._context.store.errands(ERRAND):
            self._ask(int(name.removeprefix(ERRAND), 16))

    def _ask(self, device: int) -> None:
        if self._context.online:
            self._context.ask(Unlinked(device), partial(self._answered, device))

    def _answered(self, device: int, said: Said) -> None:
        if isinstance(said, Refusal) and said.retry:
            self.retry.later()
            return
        # Done; or refused for good: the device is gone, or no longer this device's to revoke.
        self.spare(device)
        self._context.signals.device_revoked(device)


def _name(device: int) -> str:
    return f"{ERRAND}{device:016x}"
