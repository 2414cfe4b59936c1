"""All parts for groups, built and connected.

Knows:   which part hears what.
Never:   decides anything: each method hands on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nightmail.client.machine.context import Context
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.outbox.sending import Sending
from nightmail.client.outbox.streams import Streams
from nightmail.client.outbox.ticks import Ticks
from nightmail.client.store.rows import Outgoing
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.e2ee.note import Note
from nightmail.model.refusals import StaleGroup
from nightmail.model.rows import GroupEntry

from .audience import GroupAudience
from .changes import GroupChanges
from .following import ChainFollower
from .known_groups import KnownGroups
from .log import GroupLogs, Take, WaitFor
from .names import GroupNames
from .opening import GroupOpening
from .own_devices import GroupSync
from .sealing import GroupSealing
from .seen_by import SeenByMembers
from .sender_keys import SenderKeys
from .waiting import WaitingEntries
from .welcomes import Welcomes


class GroupParts:
    def __init__(
        self, context: Context, lists: DeviceLists, sealer: E2eeSealer, streams: Streams, sending: Sending,
        outbox: Outbox, ticks: Ticks, opened: Callable[[GroupEntry, Note], None], wait_for: WaitFor, take: Take,
    ) -> None:  # fmt: skip
        """`opened` takes a message that had to wait for its key, `take` an entry of a group's log, unless it must
        `wait_for` something."""
        self._context, self._sending = context, sending
        believed = sealer.believed
        self.known = KnownGroups(context)
        self.follower = ChainFollower(context, lists, believed, self.known, self._changed)
        self.audience = GroupAudience(context, lists, believed, self.known)
        self.keys = SenderKeys(context, sealer, streams, outbox, self.known, self.audience)
        self.sealing = GroupSealing(
            context, sealer, streams, self.known, self.follower, self.audience, self.keys, self._go_on
        )
        self.waiting = WaitingEntries(context, believed, outbox)
        self.welcomes = Welcomes(
            context, lists, believed, outbox, self.known, self.audience, self.waiting, self._joined
        )  # fmt: skip
        self.names = GroupNames(context, outbox, self.known)
        self.logs = GroupLogs(
            context, self.known, wait_for, take, self.waiting.has_room, lambda: not sealer.awaits_provisioning
        )
        self.changes = GroupChanges(context, lists, sealer, self.known, self.follower, self.logs.begin)
        self.sync = GroupSync(context, sealer, outbox, self.welcomes)
        self.seen_by = SeenByMembers(
            context, sealer, outbox, ticks, self.known, self.audience, self.keys, self.welcomes, self.logs.grew
        )
        self.opening = GroupOpening(
            context, sealer, self.known, self.follower, self.audience, self.welcomes, self.waiting, self.names,
            opened, self.seen_by.answer, self.logs.fetch,
        )  # fmt: skip

    # --- the connection and the clock -----------------------------------------------------------

    def connected(self) -> None:
        self.follower.connected()
        self.welcomes.connected()
        self.changes.connected()
        self.logs.connected()
        self.seen_by.connected()

    def lost(self) -> None:
        for part in (
            self.follower,
            self.audience,
            self.keys,
            self.welcomes,
            self.opening,
            self.seen_by,
            self.logs,
            self.sealing,
        ):
            part.lost()

    def forget(self) -> None:
        """Once a day."""
        self.waiting.forget()
        self.opening.forget()

    # --- who hears what -------------------------------------------------------------------------

    def _go_on(self, group: int) -> None:
        """What is written to a group may go on; so may what is scheduled for it."""
        self._sending.go_on(group)
        self._context.signals.group_goes_on(group)

    def _changed(self, group: int) -> None:
        """Members or settings of a group are others now."""
        if self.known.joined(group) is None:
            self.keys.drop(group)
        self.opening.try_again(group)
        self._go_on(group)

    def _joined(self, group: int) -> None:
        """The members of a group are known from now on."""
        self.opening.try_again(group)
        self.logs.fetch(group)
        self.audience.is_listed(group, partial(self._go_on, group))  # the lists name the members' handles
        self._go_on(group)

    def stale(self, group: int, said: StaleGroup) -> None:
        """The server says that the group has changed."""
        row = self.known.row(group)
        if row is not None and said.head == row.head and said.epoch != row.epoch:
            self.audience.outdate(group)
        self.follower.stale(group, said.epoch, said.head, said.length)

    def control_accepted(self, row: Outgoing) -> None:
        """The server took something for single devices: a message may have waited for it."""
        self._go_on(row.to)
