"""Every number that decides how a client behaves, with its unit, its range and its reason.

A profile can have its own (`profile/settings.py`), which must lie in the range. A program that makes a `ClientLimits`
by itself is not checked.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from nightmail.model.limits import DAY_MS

Seconds: TypeAlias = Annotated[int, Meta(ge=1, le=600_000)]
"""Milliseconds, up to ten minutes."""
Days: TypeAlias = Annotated[int, Meta(ge=1, le=31_536_000_000)]
"""Milliseconds, up to a year."""


class ClientLimits(Struct, frozen=True):
    # --- sending
    window: Annotated[int, Meta(ge=1, le=256)] = 256
    """How many numbers per conversation and lane may wait for their answer: the server keeps that many answers."""
    answer_ms: Seconds = 5_000
    """Without an answer for this long, an attempt has failed."""
    retry_ms_min: Seconds = 1_000
    """The wait after the first failed attempt; it doubles from then on."""
    retry_ms_max: Days = 300_000
    """The longest wait between two attempts. Five minutes: a phone in a tunnel costs its server nothing."""
    retry_jitter: Annotated[float, Meta(ge=0, le=0.5)] = 0.1
    """The part of a wait that is added or taken away at random, so that clients do not retry in step."""
    soon_ms: Seconds = 50
    """The wait when only an earlier number must arrive first."""
    retries_before_notice: Annotated[int, Meta(ge=0, le=1_000)] = 3
    """After this many failed retries the app is told that a message waits for the network."""
    lifetime_ms: Days = 29 * DAY_MS
    """A message that the server has not taken by then has failed: a day less than the server keeps one."""
    timer_ms_min: Annotated[int, Meta(ge=1, le=604_800_000)] = 30_000
    """The shortest timer of a conversation, as servers have it; a change to a shorter one is ignored."""
    reseals: Annotated[int, Meta(ge=0, le=10)] = 3
    """How often one message is sealed again for one device that could not open it or had no copy."""

    # --- sealing
    stock_one_time: Annotated[int, Meta(ge=1, le=100)] = 100
    """How many one-time X25519 keys are made at once: half of what the server holds."""
    stock_kem: Annotated[int, Meta(ge=1, le=100)] = 20
    """Likewise, one-time KEM keys."""
    rotate_ms: Annotated[int, Meta(ge=DAY_MS, le=28 * DAY_MS)] = 7 * DAY_MS
    """How often the signed prekey and the last-resort KEM key are replaced. Looked at once a day."""
    restock_ms: Days = 300_000
    """The shortest time between two batches of one-time keys, however often the server says that few are left. Without
    any, sessions begin with the last-resort keys."""
    restart_ms: Days = 3_600_000
    """The shortest time between two sessions that are begun because a device could not open a message: no loops."""

    link_ms: Days = 3_600_000
    """A device that the person agreed to and that has not come within this time is not linked."""
    lists_per_minute: Annotated[int, Meta(ge=1, le=1_000)] = 60
    """How many device lists are signed per minute at most: a server that was restored, or lies, may ask for many."""
    list_jump: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    """If a server claims a list version this far above the last signed one, no list is signed: versions would run out,
    and contacts keep the highest that they saw."""

    # --- receiving
    remember_ms: Days = 31 * DAY_MS
    """How long to remember a message that has not come, or could not be opened: a day longer than the server keeps
    it."""
    held_entries: Annotated[int, Meta(ge=256, le=65_536)] = 512
    """How many entries may wait in memory for a list. A server has credit for 256, so more is misbehaviour."""
    held_bytes: Annotated[int, Meta(ge=1_048_576, le=1_073_741_824)] = 4 * 1024 * 1024
    """Likewise, in bytes. A server has credit for 1 MiB."""
    parked_entries: Annotated[int, Meta(ge=1, le=255)] = 128
    """How many entries that cannot be opened yet are kept until the queue is empty, and how many may be handed out
    since the first of them. A server has credit for 256."""
    parked_bytes: Annotated[int, Meta(ge=1, le=917_504)] = 512 * 1024
    """Likewise, in bytes. A server has credit for 1 MiB."""
    parked_ms: Seconds = 2_000
    """If nothing more comes for this long, they are judged although the queue is not empty: the server may have no
    credit left."""
    ack_entries: Annotated[int, Meta(ge=1, le=128)] = 32
    """After this many entries an ack is sent at once."""
    ack_ms: Annotated[int, Meta(ge=0, le=1_000)] = 5
    """How long an ack waits for more entries."""
    receipts_ack_entries: Annotated[int, Meta(ge=1, le=10_000)] = 32
    """After this many receipts an ack is sent at once."""
    receipts_ack_ms: Annotated[int, Meta(ge=0, le=60_000)] = 200
    """Receipts are acknowledged lazily: no device waits for it."""

    group_asks: Annotated[int, Meta(ge=0, le=10_000)] = 60
    """How often per hour this device asks members of groups for keys, messages or welcomes that it lacks."""
    group_answers: Annotated[int, Meta(ge=0, le=10_000)] = 20
    """How often per hour one device of a group is answered when it asks so."""

    contacts: Annotated[int, Meta(ge=0, le=1_000_000)] = 10_000
    """How many contacts this device keeps of those that other own devices bring."""

    fetch_bytes: Annotated[int, Meta(ge=0, le=1_099_511_627_776)] = 8 * 1024 * 1024
    """Files up to this size are fetched as soon as their message comes, and kept sealed in the profile; 0: none."""

    # --- the connection
    welcome_ms: Seconds = 10_000
    """How long the server may take to say Welcome."""
    stuck_ms: Seconds = 60_000
    """How often a new device reconnects while it waits to be provisioned and has entries that it cannot judge."""
    connect_ms: Seconds = 10_000
    """How long opening a socket may take."""
    backoff_ms_min: Seconds = 500
    """The first wait between attempts to connect lies between 0 and this; it doubles from then on."""
    backoff_ms_max: Days = 60_000
    """The longest wait between attempts to connect."""
    settled_ms: Seconds = 10_000
    """A connection that lasted this long was a good one: the next wait is the shortest again."""
    restarts: Annotated[int, Meta(ge=0, le=1_000)] = 5
    """How often in a row a frame may break the machine, without progress in the mailbox; then the client ends."""
    frame_bytes: Annotated[int, Meta(ge=2_097_152, le=268_435_456)] = 16 * 1024 * 1024
    """The largest frame that is read: a batch of the largest entries, and then some."""
    events: Annotated[int, Meta(ge=1, le=10_000_000)] = 10_000
    """How many events one slow listener may leave unread before it gets Lagging."""
    find_ms: Seconds = 1_000
    """How often a new device asks whether it was vouched for: a person waits in front of both screens."""
    http_ms: Seconds = 15_000
    """How long a request over HTTP may take."""
    http_bytes: Annotated[int, Meta(ge=65_536, le=268_435_456)] = 4 * 1024 * 1024
    """The largest answer over HTTP that is read."""
