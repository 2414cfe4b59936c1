"""Writing: every message is durable here first, under an id and a number that it keeps.

Knows:   the next number of each stream, and what a message, a re-seal and a control message have in common.
Touches: messages and outgoing rows, as they begin.
Never:   gives one number to two messages.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from nightmail.client.errors import TooLarge
from nightmail.client.machine.context import Context
from nightmail.client.messages import Message
from nightmail.client.store.rows import MessageNumber
from nightmail.client.trust.sealer import Sealer
from nightmail.e2ee.content import CONTENT_BYTES_MAX
from nightmail.e2ee.identity import Address
from nightmail.model.words import Kind, Lane

from .control_copies import ControlCopies
from .envelopes import address, new_id
from .sending import Sending
from .streams import Streams

TARGETS_MAX = 128
"""Devices of a group that one row is sealed for."""


class Outbox:
    def __init__(
        self, context: Context, sealer: Sealer, streams: Streams, sending: Sending, control_copies: ControlCopies
    ) -> None:
        self._context, self._sealer, self._streams = context, sealer, streams
        self._sending, self._control_copies = sending, control_copies

    def compose(self, to: int, body: bytes, kind: Kind, lane: Lane, life_ms: int) -> Message:
        """Store a new message. It keeps its id and number for good. Raises TooLarge."""
        message = self.draft(to, body, kind, life_ms)
        self.number(message, lane)
        return message

    def draft(self, to: int, body: bytes, kind: Kind, life_ms: int) -> Message:
        """Store a new message that is not to be sent yet. It keeps its id for good. Raises TooLarge."""
        context = self._context
        self.check_size(body)
        me = context.identity.device
        message = Message(id=new_id(context), peer=to, by=me, own=True, body=body, kind=kind, life_ms=life_ms)
        context.store.put_message(message)
        return message

    def number(self, message: Message, lane: Lane) -> None:
        """Send a stored message. It keeps its number for good."""
        has_file = message.kind is Kind.MEDIA
        self._number(message.peer, lane, message.id, message.id, message.body, 0, has_file=has_file)

    def check_size(self, body: bytes) -> None:
        """Raises TooLarge."""
        limit = self._context.body_bytes
        if len(body) <= self._sealer.fits(limit):
            return
        if len(body) > CONTENT_BYTES_MAX:
            raise TooLarge(len(body), CONTENT_BYTES_MAX)
        if (size := self._sealer.envelope_bytes_max(body)) > limit:
            raise TooLarge(size, limit, len(body))

    def reseal(self, message: Message, device: int) -> None:
        """The same message again, for one device: an ordinary send under an id and number of its own."""
        ident, has_file = new_id(self._context), message.kind is Kind.MEDIA
        self._number(message.peer, Lane.HIGH, ident, message.id, message.body, device, has_file=has_file)

    def control(self, to: int, content: bytes, only: int = 0, lane: Lane = Lane.HIGH) -> None:
        """Send a control message to all devices of an account, or to one. It has no tick, and no person sees it.

        Raises TooLarge if no note can hold it. If only this server finds it too large, the server refuses it, and it
        is given up.
        """
        if len(content) > CONTENT_BYTES_MAX:
            raise TooLarge(len(content), CONTENT_BYTES_MAX)
        ident = new_id(self._context)
        # For the server, a message for one device is a re-seal. The original was never sent.
        original = new_id(self._context) if only else ident
        self._number(to, lane, ident, original, content, only, is_control=True)

    def control_again(self, original: str, device: int) -> None:
        """A device could not open the control message that was for it."""
        if (copy := self._control_copies.take(original, device)) is not None:
            self._number(copy.to, copy.lane, new_id(self._context), original, copy.content, device, is_control=True)

    def seal_in_group(self, group: int, content: bytes, to: Sequence[Address], before: int | None = None) -> None:
        """Something for single devices of a group, in as many rows as it takes: high lane, before the number `before`
        if that is not None. It has no tick, and no person sees it."""
        room = self._context.frame_bytes // 2 // self._sealer.envelope_bytes_max(content)
        size = max(1, min(TARGETS_MAX, room))
        for first in range(0, len(to), size):
            ident = new_id(self._context)
            targets = tuple((address.device, address.registration) for address in to[first : first + size])
            self._number(group, Lane.HIGH, ident, ident, content, 0, is_control=True, targets=targets, before=before)
            before = None if before is None else before + 1

    def broadcast(self, group: int, content: bytes) -> None:
        """A control message to everybody in a group. It has no tick."""
        ident = new_id(self._context)
        self._number(group, Lane.NORMAL, ident, ident, content, 0, is_control=True)

    def reseal_in_group(self, message: Message, address: Address) -> None:
        """A message to a group again, for one device."""
        ident, targets = new_id(self._context), ((address.device, address.registration),)
        has_file = message.kind is Kind.MEDIA
        self._number(message.peer, Lane.HIGH, ident, message.id, message.body, 0, targets=targets, has_file=has_file)

    def give_up(self, message_id: str) -> bool:
        """Take a message back that the server does not have; False if it no longer waits.

        Keys, questions and what is sealed again are not the person's to take back: nobody would say them again.
        """
        for stream in self._streams:
            for row in stream.rows.values():
                if row.id == message_id and not (row.void or row.reseal or row.content):
                    self._sending.void(stream, row, "given_up")
                    return True
        return False

    def _number(
        self, to: int, lane: Lane, ident: str, original: str, body: bytes, only: int, *, is_control: bool = False,
        targets: tuple[tuple[int, int], ...] = (), before: int | None = None, has_file: bool = False,
    ) -> None:  # fmt: skip
        context = self._context
        last = context.store.last_number(to, lane) + 1
        n = last if before is None else before
        row = address(context, to, lane, n, ident, original, body, only)
        row = replace(row, targets=targets, has_file=has_file)
        if is_control:
            row = replace(row, content=body)
        context.store.put_last_number(to, lane, last)
        if before is not None:
            self._streams.make_room(to, lane, before)
        context.store.put_numbered(MessageNumber(context.identity.device, to, lane, n, original))
        self._sending.add(row)
