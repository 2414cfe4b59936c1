"""The life of a connection: Hello, Welcome, heartbeat, hanging up, and how it ended.

Knows:   whether the server has greeted, when it was last heard, what it said when it left.
Touches: the limits that Welcome announces, in the context.
Never:   takes mail: only what the connection itself is about.
"""

from __future__ import annotations

from nightmail.client.errors import Misbehaved
from nightmail.client.events import Connected, DeviceRemoved, Disconnected, Ended
from nightmail.client.machine.context import Context
from nightmail.client.machine.turn import Ending
from nightmail.client.store.rows import Cursors
from nightmail.wire import frames as wire
from nightmail.wire.closing import SENTENCES, CloseCode
from nightmail.wire.items import VERSION, Goodbye, Hello, Ping, Pong, Welcome

AGENT = "nightmail-python"
SILENT = "the server is silent"
HEARTBEAT_MS_MIN = 1_000


class Liveness:
    def __init__(self, context: Context) -> None:
        self._context = context
        self.is_open = False
        """A socket is open, and Hello was said on it."""
        self._hello: bytes | None = None
        self._goodbye: Goodbye | None = None
        self._heartbeat_ms = 0
        self._silent_at: int | None = None
        """When to give the server up: it has not said Welcome, or Pong, by then."""
        self._ping_at: int | None = None
        self._nonce = 0

    # --- begin and end --------------------------------------------------------------------------

    def open(self, cursors: Cursors) -> None:
        """A socket is open: say who this is, and how far the mailbox is stored."""
        assert not self.is_open, "one connection at a time"
        context = self._context
        self.is_open, context.hang_up, self._goodbye = True, None, None
        me = context.identity
        hello = Hello(VERSION, me.device, me.token, cursors.normal, cursors.high, cursors.receipts, AGENT)
        self._hello = wire.encode([hello])
        self._silent_at = context.now + context.limits.welcome_ms

    def take_hello(self) -> list[bytes]:
        """The first frame of a connection, if it was not written yet."""
        hello, self._hello = self._hello, None
        return [] if hello is None else [hello]

    def close(self, code: int, why: str) -> Ending:
        """The connection is gone. `code` and `why` are the socket's; what the server said counts more."""
        self.is_open = False
        self._hello = self._silent_at = self._ping_at = None
        ending = Ending(self._goodbye.code, self._goodbye.retry_ms) if self._goodbye else Ending(code, 0)
        known = next((known for known in CloseCode if known == ending.code), None)
        sentence = why or self._context.hang_up or (SENTENCES[known] if known else "the connection broke")
        self._context.hang_up = None
        self._context.tell(Disconnected(sentence, ending.code))
        if known in (CloseCode.REMOVED, CloseCode.UNAUTHORIZED):
            self._context.tell(DeviceRemoved(ending.code, sentence))
        elif known is not None and known.final:
            self._context.tell(Ended(ending.code, sentence))
        return ending

    # --- what the server says -------------------------------------------------------------------

    def take_welcome(self, item: Welcome) -> None:
        context = self._context
        if context.online or item.version != VERSION:
            raise Misbehaved("a second Welcome, or one for another version")
        context.online, self._silent_at = True, None
        context.window = min(context.limits.window, max(1, item.window))
        context.body_bytes = item.body_bytes
        context.frame_bytes = item.frame_bytes
        context.server_since, context.server_items = item.since, item.items
        self._heartbeat_ms = max(HEARTBEAT_MS_MIN, item.heartbeat_ms)
        self._ping_at = context.now + self._heartbeat_ms
        context.tell(Connected(item.node, item.at))

    def take_goodbye(self, item: Goodbye) -> None:
        self._goodbye = item

    def take_pong(self, item: Pong) -> None:
        self._silent_at = None

    # --- time -----------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        dues = (self._silent_at, self._ping_at)
        return min((due for due in dues if due is not None), default=None)

    def tick(self) -> None:
        now = self._context.now
        if self._silent_at is not None and now >= self._silent_at:
            self._silent_at = None
            self._context.hang_up = self._context.hang_up or SILENT
        if self._ping_at is not None and now >= self._ping_at:
            self._nonce += 1
            self._context.items.append(Ping(self._nonce))
            self._ping_at = now + self._heartbeat_ms
            self._silent_at = self._silent_at or now + self._heartbeat_ms
