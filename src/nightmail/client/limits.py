"""Every number that decides how a client behaves, with its unit and its reason."""

from __future__ import annotations

from msgspec import Struct

from nightmail.model.limits import DAY_MS


class ClientLimits(Struct, frozen=True):
    # --- sending
    window: int = 256
    """Numbers per conversation and lane that may wait for their answer: the server keeps answers for that many."""
    answer_ms: int = 5_000
    """No answer for this long is a failed attempt."""
    retry_ms_min: int = 1_000
    """The wait after the first failed attempt; it doubles from then on."""
    retry_ms_max: int = 300_000
    """Five minutes: a phone in a tunnel costs nobody anything."""
    retry_jitter: float = 0.1
    """How much of a wait chance may add or take away, so that clients do not come back in step."""
    soon_ms: int = 50
    """The wait when only an earlier number has to arrive first."""
    retries_before_notice: int = 3
    """Failed retries after which the app hears that a message waits for the network."""
    lifetime_ms: int = 29 * DAY_MS
    """Then a message that nobody took has failed: a day less than the server keeps one."""
    reseals: int = 3
    """How often one message is sealed again for one device that could not open it or had no copy."""

    # --- sealing
    stock_one_time: int = 100
    """One-time X25519 keys that are made at once: half of what the server holds."""
    stock_kem: int = 20
    """Likewise, one-time KEM keys."""
    restock_ms: int = 300_000
    """At most so often further one-time keys are made, however often the server says that few are left. Until then
    conversations begin with the last-resort keys."""
    restart_ms: int = 3_600_000
    """At most so often a session is begun with a device because it could not open something: no loops."""

    guest_ms: int = 3_600_000
    """A device that was agreed to and has not come within this is no longer waited for: nobody stands there now."""
    lists_per_minute: int = 60
    """Device lists that are signed within a minute at most: a server that was restored, or lies, may ask for many."""
    list_jump: int = 10_000
    """A server that claims a list version this far above the last one signed is not followed: versions would run out,
    and contacts keep the highest they saw."""

    # --- receiving
    kept_ms: int = 31 * DAY_MS
    """What is remembered of a message that has not come, or could not be opened: a day longer than the server keeps
    one."""
    held_entries: int = 512
    """Entries that wait in memory for a list; then the server goes on although it may not: it has credit for 256."""
    held_bytes: int = 4 * 1024 * 1024
    """Likewise; it has credit for 1 MiB."""
    ack_entries: int = 32
    """Entries after which an acknowledgement goes out at once."""
    ack_ms: int = 5
    """How long an acknowledgement waits for company."""
    receipts_ack_entries: int = 32
    receipts_ack_ms: int = 200
    """Receipts are acknowledged lazily: nobody waits for it."""
    ack_again_ms: int = 1_000
    """Then an acknowledgement, a read mark or a question that was put off is said again."""

    # --- the connection
    welcome_ms: int = 10_000
    """A server that takes longer to say Welcome is given up."""
    blind_ms: int = 60_000
    """A new device that was not told yet whose it is, and has entries that it cannot judge, connects anew so often."""
    connect_ms: int = 10_000
    """Likewise, one that takes longer to open a socket."""
    backoff_ms_min: int = 500
    """The first wait between attempts to connect lies between 0 and this; it doubles from then on."""
    backoff_ms_max: int = 60_000
    settled_ms: int = 10_000
    """A connection that lasted this long was a good one: the waits begin anew."""
    stumbles: int = 5
    """So often in a row a frame may trip the client up, with nothing new in the mailbox in between; then it ends."""
    frame_bytes: int = 16 * 1024 * 1024
    """The largest frame that is read: a batch of the largest entries, and then some."""
    events: int = 10_000
    """Events that one slow listener may leave unread; then it is told that it lags."""
    find_ms: int = 1_000
    """How often a new device asks whether it was vouched for: somebody stands before two screens."""
    http_ms: int = 15_000
    """A question over HTTP that takes longer has failed."""
    http_bytes: int = 4 * 1024 * 1024
    """The largest answer over HTTP that is read."""
