"""Writing: every message is durable here first, under an id and a number that it keeps.

Knows:   the next number of each stream, and what a message, a re-seal and a control message have in common.
Touches: messages and outgoing rows, as they begin.
Never:   gives one number to two messages.
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.errors import TooLarge
from nightmail.client.machine.context import Context
from nightmail.client.messages import Message
from nightmail.client.store.rows import MessageNumber
from nightmail.client.trust.sealer import Sealer
from nightmail.e2ee.content import CONTENT_BYTES_MAX
from nightmail.model.words import Kind, Lane

from .control_copies import ControlCopies
from .envelopes import address, new_id
from .sending import Sending
from .streams import Streams


class Outbox:
    def __init__(
        self, context: Context, sealer: Sealer, streams: Streams, sending: Sending, control_copies: ControlCopies
    ) -> None:
        self._context, self._sealer, self._streams = context, sealer, streams
        self._sending, self._control_copies = sending, control_copies

    def compose(self, to: int, body: bytes, kind: Kind, lane: Lane, life_ms: int) -> Message:
        """Store a new message. It keeps its id and number for good. Raises TooLarge."""
        context = self._context
        limit = self._sealer.fits(context.body_bytes)
        if len(body) > limit and (size := self._sealer.travelling_bytes(body)) > limit:
            raise TooLarge(size, limit)
        ident = new_id(context)
        me = context.identity.device
        message = Message(id=ident, peer=to, by=me, own=True, body=body, kind=kind, life_ms=life_ms)
        context.store.put_message(message)
        self._number(to, lane, ident, ident, body, 0)
        return message

    def reseal(self, message: Message, device: int) -> None:
        """The same message again, for one device: an ordinary send under an id and number of its own."""
        self._number(message.peer, Lane.HIGH, new_id(self._context), message.id, message.body, device)

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

    def give_up(self, message_id: str) -> bool:
        """Take a message back that the server does not have; False if it no longer waits."""
        for stream in self._streams:
            for row in stream.rows.values():
                if row.id == message_id and not row.void:
                    self._sending.void(stream, row, "given_up")
                    return True
        return False

    def _number(
        self, to: int, lane: Lane, ident: str, original: str, body: bytes, only: int, *, is_control: bool = False
    ) -> None:
        context = self._context
        n = context.store.last_number(to, lane) + 1
        row = address(context, to, lane, n, ident, original, body, only)
        if is_control:
            row = replace(row, content=body)
        context.store.put_last_number(to, lane, n)
        context.store.put_numbered(MessageNumber(context.identity.device, to, lane, n, original))
        self._sending.add(row)
