"""Every number that bounds what a connection may cost. None decides what becomes of a message."""

from __future__ import annotations

from msgspec import Struct


class GatewayLimits(Struct, frozen=True):
    hello_ms: int = 10_000
    """From the first byte to the `Hello`, in ms: whoever holds a socket without saying who they are is let go."""
    hello_bytes: int = 4_096
    """Bytes that are read before a device is known, request and `Hello` each: strangers cost little memory."""
    frame_bytes: int = 1_048_576
    """Bytes of one frame, checked before it is read: bounds the memory of a connection."""
    heartbeat_ms: int = 30_000
    """How often a device says something, in ms: phones' networks forget a connection after a minute or two."""
    silence_ms: int = 90_000
    """Then a silent connection is taken for dead, in ms: three heartbeats."""
    credit_entries: int = 256
    """Entries a device may leave unacknowledged before more are read for it."""
    credit_bytes: int = 1_048_576
    """Likewise in bytes: a slow reader costs this much, however much waits for it."""
    batch_entries: int = 100
    """Entries handed out in one frame: others get their turn in between."""
    batch_bytes: int = 262_144
    """Bytes of ciphertext in one frame, roughly: a frame stays well below `frame_bytes`."""
    repeat_ms: int = 100
    """The oldest unacknowledged entry is offered again after this, in ms, or later if the line is slower."""
    repeat_again_ms: int = 500
    """And once more after this, in ms; then the device counts as offline, until it acknowledges."""
    sends_per_s: int = 50
    """Messages, and numbers given up, per second and device, over time: faster than anybody writes."""
    sends_burst: int = 500
    """Messages at once: what a device wrote while it was offline."""
    items_per_s: int = 1_000
    """Other items per second and device; above it the connection is closed, because no honest client does that."""
    items_burst: int = 5_000
    """Other items at once."""
    claims_per_minute: int = 100
    """Bundles of keys that one account may claim in a minute, of all devices together, over all its connections."""
    links_per_minute: int = 10
    """Devices that one account may link in a minute, over all its connections: each uses up a number for ever."""
    connects_per_s: int = 400
    """Connections admitted per second; others are told when to come back."""
    connects_burst: int = 100
    """Connections admitted at once: they take less than a tenth of a second, so that live traffic hardly notices."""
    retry_ms: int = 1_000
    """Whoever is not admitted comes back after this, in ms, or later: when it is their turn."""
    strangers: int = 4_096
    """Connections that have not said who they are; beyond it the oldest is let go."""
    drains_at_once: int = 8
    """Devices whose waiting mail is handed out in one turn of the event loop: live traffic goes between."""
    paced_per_s: int = 100
    """Waiting messages per second and device while the server is under pressure."""
    pressure_lag_ms: int = 50
    """The server is under pressure when its event loop is later than this, in ms."""
    pressure_commit_ms: int = 100
    """Or when a commit takes longer than this, in ms."""
    unsent_bytes: int = 262_144
    """Bytes that may wait in a socket; then nothing more is read from the device or for it."""
    unread_ms: int = 60_000
    """A device that takes nothing from its socket for this long, in ms, is let go."""
    stop_ms: int = 5_000
    """A server that stops sends its devices elsewhere over this time, in ms, so that they do not arrive all at once."""
