"""All limits on what a connection may cost. None decides what becomes of a message."""

from __future__ import annotations

from msgspec import Struct

LINGER_MS = 2_000
"""How long a peer has to read the last frame, or why it was refused, before the connection is cut."""


class GatewayLimits(Struct, frozen=True):
    hello_ms: int = 10_000
    """From the first byte to the `Hello`, in ms; a connection that takes longer is closed."""
    hello_bytes: int = 4_096
    """Bytes that are read before the device is known, for the request and the `Hello` each."""
    hello_frames: int = 256
    """WebSocket frames before the device is known: pings, and the fragments of a `Hello`."""
    turn_frames: int = 64
    """WebSocket frames that one connection gets handled in one turn of the event loop; then the others come first."""
    frame_bytes: int = 1_048_576
    """Bytes of one frame, checked before it is read: this bounds the memory of a connection."""
    heartbeat_ms: int = 30_000
    """How often a device sends something, in ms: mobile networks drop a silent connection after a minute or two."""
    silence_ms: int = 90_000
    """A connection that is silent for this long is closed, in ms: three heartbeats."""
    credit_entries: int = 256
    """Entries that a device may leave unacknowledged; then no more are read for it."""
    credit_bytes: int = 1_048_576
    """The same in bytes: a slow reader takes no more memory than this, however much waits for it."""
    batch_entries: int = 100
    """Entries in one frame: other devices get their turn in between."""
    batch_bytes: int = 262_144
    """Bytes of ciphertext in one frame, roughly: a frame stays well below `frame_bytes`."""
    repeat_ms: int = 100
    """The oldest unacknowledged entry is offered again after this, in ms, or later if the network is slower."""
    repeat_again_ms: int = 500
    """It is offered a second time after this, in ms; then the device counts as offline until it acknowledges."""
    sends_per_s: int = 50
    """Messages, and numbers given up, per second and account, on average: faster than a person writes."""
    sends_burst: int = 500
    """Messages of an account at once: those that its devices wrote while they were offline."""
    bytes_per_s: int = 2_097_152
    """Bytes per second that are read from the devices of an account, on average; what is beyond waits in its socket."""
    bytes_burst: int = 4_194_304
    """Bytes of an account that are read at once."""
    items_per_s: int = 1_000
    """Other items per second and device, and frames without items: pings, fragments, empty ones. Above it the
    connection is closed, because no honest client does that."""
    items_burst: int = 5_000
    """Other items at once."""
    claims_per_minute: int = 100
    """Key bundles that one account may claim in a minute, over all its connections."""
    young_claims_per_minute: int = 20
    """Likewise, of an account that has registered recently."""
    young_ms: int = 86_400_000
    """How long that is, in ms. When the server starts, it knows no account's age: all count as registered then."""
    address_claims_per_minute: int = 300
    """Key bundles that all accounts of one address may claim in a minute."""
    address_device_claims_per_minute: int = 20
    """Of these, from one device. While few keys of the device are left, a tenth of it."""
    fellow_claims_per_minute: int = 2_000
    """Key bundles of fellow members that one account may claim in a minute: a first message to 1,000 people, with two
    devices each, is on its way within that minute."""
    address_fellow_claims_per_minute: int = 6_000
    """Likewise, all accounts of one address. What one device may lose to an address stays as it is."""
    looks_per_s: int = 20
    """Device lists per second and account that are looked up; further ones wait. An unknown account costs ten."""
    looks_burst: int = 500
    """Device lists of an account at once: those of all contacts of a device that starts."""
    address_looks_per_s: int = 100
    """Likewise, for all accounts of one address."""
    address_looks_burst: int = 2_500
    """Likewise, at once."""
    links_per_minute: int = 10
    """Devices that one account may link in a minute, over all its connections: each uses up a number for ever."""
    connects_per_s: int = 400
    """Connections admitted per second; the others are told when to come back."""
    connects_burst: int = 100
    """Connections admitted at once: they take less than a tenth of a second, so live traffic is hardly delayed."""
    address_connects_per_s: int = 50
    """Of these, from one address. An IPv6 address counts with its /64; its /56 may do twice as much, its /48 four
    times."""
    address_connects_burst: int = 100
    """Connections from one address admitted at once."""
    address_requests_per_s: int = 100
    """HTTP requests per second from one address, counted likewise; others are told when to come back."""
    address_requests_burst: int = 200
    """HTTP requests from one address at once."""
    retry_ms: int = 1_000
    """A connection that is not admitted may come back after this, in ms, or later, when it is its turn."""
    retry_ms_max: int = 30_000
    """The longest time, in ms, that a connection is told to wait, apart from up to `retry_ms` by chance."""
    strangers: int = 4_096
    """Connections whose device is not known yet; above this the oldest is closed."""
    address_strangers: int = 256
    """Of these, from one address (IPv6: from one /64); above this the oldest of them is closed."""
    drains_at_once: int = 8
    """Devices that get waiting entries in one turn of the event loop: live traffic goes in between."""
    paced_per_s: int = 100
    """Waiting entries per second and device while the server is under pressure."""
    pressure_lag_ms: int = 50
    """The server is under pressure when its event loop is later than this, in ms."""
    pressure_commit_ms: int = 100
    """The server is also under pressure when a commit takes longer than this, in ms."""
    unsent_bytes: int = 262_144
    """Unsent bytes of a connection; above this nothing is read from the device or for it."""
    unread_ms: int = 60_000
    """A device that reads nothing from its socket for this long, in ms, is disconnected."""
    stop_ms: int = 5_000
    """A server that stops sends its devices elsewhere over this time, in ms, so that they do not all arrive at once."""
