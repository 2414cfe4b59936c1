"""A new device of one's own is told where each group stands. The members hand it their keys themselves.

Knows:   the control message GROUPS.
Touches: the outbox; the welcomes.
"""

from __future__ import annotations

from nightmail.client.machine.context import Context
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.own_devices.controls import cut, size_of_item
from nightmail.client.trust.e2ee_sealer import E2eeSealer

from . import controls
from .welcomes import Welcomes

PART_BYTES = 100
"""What a control message takes around its groups."""


class GroupSync:
    def __init__(self, context: Context, sealer: E2eeSealer, outbox: Outbox, welcomes: Welcomes) -> None:
        self._context, self._sealer, self._outbox, self._welcomes = context, sealer, outbox, welcomes

    def send_all(self, device: int) -> None:
        """A device was linked here."""
        made = (self._welcomes.made(row.group) for row in self._context.store.groups())
        room = self._sealer.fits(self._context.body_bytes) - PART_BYTES
        for some in cut((said for said in made if said is not None), room, size_of_item):
            self._outbox.control(self._context.identity.account, controls.groups(some), only=device)

    def take(self, by: int, data: bytes) -> None:
        """The device that linked this one says where the groups stand. Raises BadEncoding."""
        for said in controls.groups_of(data):
            self._welcomes.take(said.start.group, by, said)
