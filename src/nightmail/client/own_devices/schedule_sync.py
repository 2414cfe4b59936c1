"""The own devices know of each other's messages for later: each can list, cancel and seal them again.

Knows:   the control message SCHEDULES.
Touches: rows of schedules; the outbox.
Never:   takes a schedule that no device of this account can have made, or one that has ended here.
"""

from __future__ import annotations

from nightmail.client.machine.context import Context
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.schedules.scheduling import Scheduling
from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.model.forms import ACCOUNT_MAX
from nightmail.model.ids import MessageId, account_of

from .controls import SharedSchedule, cut, schedules, schedules_of, size_of_item

PART_BYTES = 100
"""What a control message takes around its schedules."""
OPEN_MAX = 10_000
"""Schedules that are kept of what other own devices bring: as many as a server takes of one account."""


class ScheduleSync:
    def __init__(self, context: Context, sealer: E2eeSealer, outbox: Outbox, scheduling: Scheduling) -> None:
        self._context, self._sealer, self._outbox, self._scheduling = context, sealer, outbox, scheduling

    def tell(self, row: ScheduledRow) -> None:
        """The server has taken a message for later: the other own devices may have to seal it again."""
        listed = self._sealer.believed.of(self._context.identity.account)
        if listed is not None and len(listed.devices) > 1:
            self._send([row], 0)

    def send_all(self, device: int) -> None:
        """A device was linked here."""
        self._send([row for row in self._context.store.open_schedules(1) if not row.cancelling], device)

    def _send(self, rows: list[ScheduledRow], only: int) -> None:
        room = self._sealer.fits(self._context.body_bytes) - PART_BYTES
        shared = [_shared(row) for row in rows]
        # What is longer than any control message is sealed again by its own device alone.
        for some in cut((each for each in shared if size_of_item(each) <= room), room, size_of_item):
            self._outbox.control(self._context.identity.account, schedules(some), only=only)

    def take(self, by: int, data: bytes) -> None:
        """Another own device says what is scheduled. Raises BadEncoding."""
        store, own = self._context.store, self._context.identity.account
        for each in schedules_of(data):
            is_ours = account_of(MessageId.parse(each.id).device) == account_of(each.by) == own
            if not is_ours or not 0 < each.to <= ACCOUNT_MAX or store.schedule(each.id) is not None:
                continue
            if len(store.open_schedules(1)) < OPEN_MAX:
                self._scheduling.look_at(_row(each))


def _shared(row: ScheduledRow) -> SharedSchedule:
    return SharedSchedule(
        row.id, row.to, row.kind, row.body, row.life_ms, row.nonce, row.made_at, row.deliver_at, row.serial, row.by
    )


def _row(said: SharedSchedule) -> ScheduledRow:
    """It may have ended since it was said: so the server is asked."""
    return ScheduledRow(
        id=said.id, to=said.to, kind=said.kind, body=said.body, life_ms=said.life_ms, nonce=said.nonce,
        made_at=said.made_at, deliver_at=said.deliver_at, by=said.by, serial=said.serial, has_news=True,
    )  # fmt: skip
