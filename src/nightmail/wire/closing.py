"""Why a connection ends: WebSocket close codes, and what the device should do about each.

4000 to 4999 are ours to define. Only ever add.
"""

from __future__ import annotations

from enum import IntEnum


class CloseCode(IntEnum):
    NORMAL = 1000
    """Either side is done."""
    PROTOCOL = 1002
    """Not WebSocket as it was agreed: a reserved bit, an unmasked frame, a broken fragment."""
    NOT_BINARY = 1003
    """A text message."""
    TOO_LARGE = 1009
    """A frame above the limit; it was not read."""

    MALFORMED = 4000
    """A frame that is no array of known items."""
    OUT_OF_STATE = 4001
    """Something between `Hello` and `Welcome`, or a second `Hello`."""
    UNAUTHORIZED = 4002
    """No such device, or another token. Also what a revoked device hears when it comes back."""
    UNSUPPORTED = 4003
    """A version that this server does not speak."""
    HELLO_TIMEOUT = 4004
    """No `Hello` in time."""
    DISPLACED = 4005
    """The same device has connected again."""
    DRAINING = 4006
    """This server stops: go elsewhere, at once."""
    BUSY = 4007
    """Too many come at the same time: come back after `retry_ms`."""
    SILENT = 4008
    """Nothing was heard for longer than three heartbeats."""
    TOO_FAST = 4009
    """More items than any honest client sends."""
    REMOVED = 4010
    """The device was revoked, or its account ended."""
    UNREAD = 4011
    """The device does not read what it is sent."""

    @property
    def final(self) -> bool:
        """Connecting again with the same words will end the same way."""
        return self in FINAL


FINAL = frozenset({CloseCode.UNAUTHORIZED, CloseCode.UNSUPPORTED, CloseCode.DISPLACED, CloseCode.REMOVED})

SENTENCES: dict[CloseCode, str] = {
    CloseCode.NORMAL: "goodbye",
    CloseCode.PROTOCOL: "that is not WebSocket as agreed",
    CloseCode.NOT_BINARY: "frames are binary",
    CloseCode.TOO_LARGE: "a frame above the limit",
    CloseCode.MALFORMED: "a frame that cannot be read",
    CloseCode.OUT_OF_STATE: "one Hello, and it comes first",
    CloseCode.UNAUTHORIZED: "no such device, or another token",
    CloseCode.UNSUPPORTED: "this version of the protocol is not spoken here",
    CloseCode.HELLO_TIMEOUT: "no Hello in time",
    CloseCode.DISPLACED: "the same device has connected again",
    CloseCode.DRAINING: "this server stops; go elsewhere",
    CloseCode.BUSY: "too many at once; come back later",
    CloseCode.SILENT: "nothing was heard for too long",
    CloseCode.TOO_FAST: "too many items at once",
    CloseCode.REMOVED: "the device was removed",
    CloseCode.UNREAD: "nobody reads what is sent",
}
