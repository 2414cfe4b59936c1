"""The own devices know of each other's newest backups, so that none of them restores an older one unknowingly.

Knows:   the control message BACKUPS.
Touches: what is known of backups (`backup/newest.py`); the outbox.
Never:   tells anybody else of a backup, or what opens one.
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.backup.newest import KnownBackup, known_in, note, put_known
from nightmail.client.machine.context import Context
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.model.ids import account_of

from .controls import backups, backups_of


class BackupSync:
    def __init__(self, context: Context, sealer: E2eeSealer, outbox: Outbox) -> None:
        self._context, self._sealer, self._outbox = context, sealer, outbox

    def step(self) -> None:
        """Tell the other own devices of backups that were made here, if there are any."""
        known = known_in(self._context.store)
        news = [each for each in known if not each.told]
        listed = self._sealer.believed.of(self._context.identity.account)
        if not news or listed is None:
            return
        if len(listed.devices) > 1:
            self._send(news, 0)
        put_known(self._context.store, [replace(each, told=True) for each in known])

    def send_all(self, device: int) -> None:
        """A device was linked here."""
        if known := known_in(self._context.store):
            self._send(known, device)

    def _send(self, known: list[KnownBackup], only: int) -> None:
        said = [(each.lineage, each.at, each.by) for each in known]
        self._outbox.control(self._context.identity.account, backups(said), only=only)

    def take(self, _by: int, data: bytes) -> None:
        """Another own device says which backups there are. Raises BadEncoding."""
        for lineage, at, maker in backups_of(data):
            if account_of(maker) == self._context.identity.account:
                note(self._context.store, KnownBackup(lineage, at, maker))
