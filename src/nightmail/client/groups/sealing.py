"""What is sent to a group: a message, sealed once for everybody; or something for single devices, sealed one by one.

Knows:   what must be there before a message can be sealed: the chain of changes, the lists of all members, and this
         device's own chain in everybody's hands.
Touches: outgoing rows, own chains.
Never:   seals for a device that may not read now, whatever was meant when the row was written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from nightmail.client.link.framing import size_of
from nightmail.client.machine.context import Context
from nightmail.client.media.addressing import Addressing
from nightmail.client.outbox.envelopes import content_of
from nightmail.client.outbox.stream import OutgoingStream
from nightmail.client.outbox.streams import Streams
from nightmail.client.own_devices.controls import Control
from nightmail.client.store.group_rows import GroupRow
from nightmail.client.store.rows import Outgoing
from nightmail.client.timers.lives import left_ms
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.client.trust.sealer import Then
from nightmail.e2ee.content import decode_content
from nightmail.e2ee.groups.sealing import GroupContext, seal_group_note
from nightmail.e2ee.identity import Address
from nightmail.e2ee.note import Note
from nightmail.model.records import Envelope, GroupSealed, GroupSent, GroupVoided
from nightmail.model.schedule_rows import GroupContent
from nightmail.model.words import Lane
from nightmail.wire.items import Ask

from .audience import GroupAudience
from .following import ChainFollower
from .known_groups import KnownGroups
from .sender_keys import SenderKeys

GroupRecord: TypeAlias = GroupSent | GroupSealed | GroupVoided


class GroupSealing:
    def __init__(
        self, context: Context, sealer: E2eeSealer, streams: Streams, known: KnownGroups, follower: ChainFollower,
        audience: GroupAudience, keys: SenderKeys, go_on: Callable[[int], None],
    ) -> None:  # fmt: skip
        """`go_on` sends what waits for a group."""
        self._context, self._sealer, self._streams = context, sealer, streams
        self._known, self._follower, self._audience, self._keys = known, follower, audience, keys
        self._go_on = go_on
        self._asked: set[int] = set()
        self._shown: set[int] = set()
        """Groups that were asked for over this connection, and those that the server has shown."""

    def lost(self) -> None:
        self._asked.clear()
        self._shown.clear()

    # --- before a stream goes on ----------------------------------------------------------------

    def prepare(self, stream: OutgoingStream) -> None:
        """A stream to a group is about to be sent: hand this device's chain to everybody who lacks it."""
        first = next((row for row in stream.rows.values() if _is_message(row) and not self._is_sealed(row)), None)
        if first is not None and self._is_caught_up(stream.to):
            before = first.n if stream.lane is Lane.HIGH else None
            self._keys.are_handed_on(stream.to, before, partial(self._go_on, stream.to))

    def seal_for_later(self, group: int, note: Note) -> GroupContent | None:
        """A message for later, sealed for the members of now; None: something must come first, and `go_on` says when
        it is here."""
        row = self._known.joined(group)
        if row is None or not self._is_caught_up(group):
            return None
        self._keys.are_handed_on(group, None, partial(self._go_on, group))
        chain = self._keys.chain(group)
        if chain is None or not self._keys.is_held_by_all(group) or self._keys.is_under_way(group):
            return None
        chain, ciphertext = seal_group_note(chain, GroupContext(group, row.genesis, row.epoch, row.head), note)
        self._keys.put(chain)
        return GroupContent(row.epoch, row.head, ciphertext)

    def _is_caught_up(self, group: int) -> bool:
        """Whether the members and their devices are known. If not, they are asked for."""
        if self._known.joined(group) is None:
            return False
        then = partial(self._go_on, group)
        if not self._is_looked_at(group):
            return False
        if self._follower.is_behind(group):
            self._follower.when_followed(group, then)
            return False
        return self._audience.is_listed(group, then)

    def _is_looked_at(self, group: int) -> bool:
        """Whether the server has shown the group over this connection: before that, few keys may be claimed. If not,
        it is asked for, and the streams go on then."""
        if group in self._shown or not self._context.online:
            return True
        if group not in self._asked:
            self._asked.add(group)
            self._follower.look(group, partial(self._looked_at, group))
        return False

    def _looked_at(self, group: int) -> None:
        self._shown.add(group)
        self._go_on(group)

    # --- one row --------------------------------------------------------------------------------

    def record(self, stream: OutgoingStream, row: Outgoing) -> GroupRecord | None:
        """What to send; None: something must come first, and the stream goes on by itself."""
        if not row.void and self._known.joined(row.to) is None and not _asks(row):
            row = self._streams.end(stream, row, "not_member")
        if _is_message(row) and row.has_file and self._context.signals.addressing(row, ()) is Addressing.GONE:
            row = self._streams.end(stream, row, "file_gone")
        if row.void:
            return GroupVoided(row.to, row.lane, row.n, stream.floor, row.id)
        return self._for_everybody(stream, row) if _is_message(row) else self._for_some(stream, row)

    def _for_everybody(self, stream: OutgoingStream, row: Outgoing) -> GroupRecord | None:
        group = self._known.joined(row.to)
        assert group is not None
        if not self._is_sealed(row):
            sealed = self._seal(stream, row, group)
            if sealed is None:
                return None
            row = sealed
            self._streams.put(stream, row)
        _, kind, life_ms, _ = content_of(self._context, row)
        record = GroupSent(
            group=row.to, lane=row.lane, n=row.n, floor=stream.floor, seen=self._seen(row.to), id=row.id, tag=row.tag,
            kind=kind, epoch=row.epoch, head=row.head, life_ms=life_ms, ciphertext=row.ciphertext,
        )  # fmt: skip
        if size_of(Ask(0, record)) > self._context.frame_bytes:
            return self._void(stream, row, "too_large")
        return record

    def _is_sealed(self, row: Outgoing) -> bool:
        """Whether it was sealed for the members of now. Otherwise the server would not take it."""
        group = self._known.row(row.to)
        return bool(row.ciphertext) and group is not None and (row.epoch, row.head) == (group.epoch, group.head)

    def _seal(self, stream: OutgoingStream, row: Outgoing, group: GroupRow) -> Outgoing | None:
        chain = self._keys.chain(row.to)
        if chain is None or not self._is_caught_up(row.to) or not self._keys.is_held_by_all(row.to):
            return None
        if stream.lane is Lane.NORMAL and self._keys.is_under_way(row.to):
            return None
        # Only for a file: a group may have thousands of devices.
        if row.has_file and self._is_unaddressed(row, {each.device for each in self._audience.addresses(row.to)}):
            return None
        body, _, _, _ = content_of(self._context, row)
        context = GroupContext(row.to, group.genesis, group.epoch, group.head)
        chain, ciphertext = seal_group_note(chain, context, Note(row.nonce, row.original, body))
        self._keys.put(chain)
        return replace(row, ciphertext=ciphertext, epoch=group.epoch, head=group.head)

    def _for_some(self, stream: OutgoingStream, row: Outgoing) -> GroupRecord | None:
        """For single devices: a key, a welcome, a message again."""
        group = self._known.row(row.to)
        if row.reseal and self._is_over(row):
            return self._void(stream, row, "expired")  # its life is over: nothing is left to seal again
        body, kind, life_ms, stamp = content_of(self._context, row)
        # Who asks where a group stands does not know its members.
        audience = self._audience.listed(row.targets) if _asks(row) else self._audience.addresses(row.to)
        targets = [Address(*target) for target in row.targets if Address(*target) in audience]
        if self._keys.hands_on(row) and not self._keys.is_current(row):
            targets = []
        if not targets:
            for target in row.targets:
                self._keys.failed(row, Address(*target))
            return self._void(stream, row, "device_removed")
        unsealed = {each.device: each.registration for each in targets if each.device not in row.envelopes}
        then = partial(self._go_on, row.to)
        if unsealed and (
            not self._are_ready(row, stream, unsealed, then) or self._is_unaddressed(row, unsealed)
        ):  # fmt: skip
            return None
        if unsealed:
            note = Note(row.nonce, row.original, body, stamp)
            made = {
                device: Envelope(device, registration, self._sealer.seal(device, registration, note))
                for device, registration in unsealed.items()
            }
            row = replace(row, envelopes={**row.envelopes, **made})
            self._streams.put(stream, row)
        message = self._context.store.message(row.original) if row.reseal else None
        return GroupSealed(
            group=row.to, lane=row.lane, n=row.n, floor=stream.floor, seen=self._seen(row.to), id=row.id, tag=row.tag,
            kind=kind, epoch=group.epoch if group else 0, of=row.original if row.reseal else None,
            of_seq=message.group_seq if message else 0, life_ms=life_ms,
            envelopes=tuple(row.envelopes[each.device] for each in targets),
        )  # fmt: skip

    def _are_ready(self, row: Outgoing, stream: OutgoingStream, devices: dict[int, int], then: Then) -> bool:
        if self._known.joined(row.to) is None:
            return self._sealer.ready(devices, (self, stream), then, then)
        if not self._is_looked_at(row.to):
            return False
        return self._sealer.ready_in_group(row.to, devices, (self, stream), then, then)

    def _is_unaddressed(self, row: Outgoing, devices: Collection[int]) -> bool:
        """Whether its blob is not for these devices yet; the streams go on when it is."""
        return row.has_file and self._context.signals.addressing(row, devices) is Addressing.WAITING

    def _is_over(self, row: Outgoing) -> bool:
        """Whether nothing is left of the message that is to be sealed again. It has a number in the group, if it has
        not failed."""
        message = self._context.store.message(row.original)
        if message is None or not message.group_seq:
            return True
        return bool(message.life_ms) and not left_ms(self._context, message)

    def _void(self, stream: OutgoingStream, row: Outgoing, why: str) -> GroupVoided:
        row = self._streams.end(stream, row, why)
        return GroupVoided(row.to, row.lane, row.n, stream.floor, row.id)

    def _seen(self, group: int) -> int:
        return self._context.store.conversation(group).seen


def _asks(row: Outgoing) -> bool:
    """Whether it asks a member for something."""
    return bool(row.targets and row.content) and decode_content(row.content).control == Control.GROUP_WANTED


def _is_message(row: Outgoing) -> bool:
    """Whether it is for everybody in the group."""
    return not row.void and not row.targets
