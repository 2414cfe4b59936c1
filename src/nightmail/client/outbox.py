"""Writing: every message durable here first, under an id and a number that it keeps.

Knows:   the next number of each stream, and what a message, a re-seal and a word between devices have in common.
Touches: messages and outgoing rows, as they begin.
Never:   sends what the store has not committed (the machine sees to that), or gives a number to two messages.

    streams.py      what waits, and how it ends
    sending.py      what goes out next, and when again
    answers.py      what each answer of the server's asks of us
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.e2ee.content import CONTENT_BYTES_MAX
from nightmail.model.words import Kind, Lane

from .answers import Answers
from .errors import TooLarge
from .hub import Hub
from .lists import Lists
from .messages import Message
from .sealer import Sealer
from .sealing import address, new_id
from .sending import Sending
from .spoken import Spoken
from .store import Numbered
from .streams import Streams
from .ticks import Ticks


class Outbox:
    def __init__(self, hub: Hub, lists: Lists, sealer: Sealer, ticks: Ticks) -> None:
        self._hub, self._sealer = hub, sealer
        self.streams = Streams(hub, ticks)
        self.spoken = Spoken(hub)
        self._sending = Sending(hub, lists, sealer, self.streams)
        self._sending.on_answer = Answers(hub, lists, self.streams, self._sending, self.spoken, ticks).take

    # --- writing --------------------------------------------------------------------------------

    def compose(self, to: int, body: bytes, kind: Kind, lane: Lane, life_ms: int) -> Message:
        """Write a message down. It has its id and number for good."""
        hub = self._hub
        if len(body) > (limit := self._sealer.fits(hub.body_bytes)):
            raise TooLarge(len(body), limit)
        ident = new_id(hub)
        message = Message(id=ident, peer=to, by=hub.identity.device, own=True, body=body, kind=kind, life_ms=life_ms)
        hub.store.put_message(message)
        self._number(to, lane, ident, ident, body, 0)
        return message

    def reseal(self, message: Message, device: int) -> None:
        """The same message once more, for one device: an ordinary send under an id and number of its own."""
        self._number(message.peer, Lane.HIGH, new_id(self._hub), message.id, message.body, device)

    def control(self, to: int, content: bytes, only: int = 0, lane: Lane = Lane.HIGH) -> None:
        """A word from device to device, for all of an account or for one. Nobody sees it, no tick follows it.

        Raises TooLarge: no note can hold it. What only this server finds too large it refuses, and that is the end
        of it.
        """
        if len(content) > CONTENT_BYTES_MAX:
            raise TooLarge(len(content), CONTENT_BYTES_MAX)
        ident = new_id(self._hub)
        # For one device alone it is, to the server, a re-seal of something that was never sent.
        original = new_id(self._hub) if only else ident
        self._number(to, lane, ident, original, content, only, is_control=True)

    def say_again(self, original: str, device: int) -> None:
        """A control message could not be opened by the device that it was for."""
        if (word := self.spoken.again(original, device)) is not None:
            self._number(word.to, word.lane, new_id(self._hub), original, word.content, device, is_control=True)

    def give_up(self, message_id: str) -> bool:
        """Take a message back, if the server has not got it; False: it no longer waits."""
        for stream in self.streams:
            for row in stream.rows.values():
                if row.id == message_id and not row.void:
                    self._sending.void(stream, row, "given_up")
                    return True
        return False

    def _number(
        self, to: int, lane: Lane, ident: str, original: str, body: bytes, only: int, *, is_control: bool = False
    ) -> None:
        hub = self._hub
        n = hub.store.last_number(to, lane) + 1
        row = address(hub, to, lane, n, ident, original, body, only)
        if is_control:
            row = replace(row, content=body)
        hub.store.put_last_number(to, lane, n)
        hub.store.put_numbered(Numbered(hub.identity.device, to, lane, n, original))
        self._sending.add(row)

    # --- the connection and the clock -----------------------------------------------------------

    def connected(self) -> None:
        """Everything that is unanswered goes out at once, in order."""
        self.spoken.forget()
        self._sending.connected()

    def lost(self) -> None:
        self._sending.lost()

    def deadline(self) -> int | None:
        return self._sending.deadline()

    def tick(self) -> None:
        self._sending.tick()
