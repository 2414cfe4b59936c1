"""Every number that decides a record's fate.

The fold may depend on nothing but the log, so `FoldLimits` is itself logged (`LimitsSet`) and
kept in the shard's row; `FormLimits` are checked before a record is logged at all.
"""

from __future__ import annotations

from msgspec import Struct

DAY_MS = 24 * 60 * 60 * 1000


class FoldLimits(Struct, frozen=True, array_like=True):
    mailbox_entries: int = 10_000
    """Message entries one device may leave waiting. A phone that is off for a month still fits."""
    ring_acks: int = 256
    """Answers kept per stream and lane, and so the most a client may leave unacknowledged."""
    ttl_ms: int = 30 * DAY_MS
    """How long an undelivered entry lives; 0 is never."""
    ahead_ms: int = 2_000
    """How far past the server's clock a stamp may go to stand after what its sender had seen."""
    tick_items: int = 512
    """Due items handled by one `Ticked`, so that time passing never stops the loop for long."""
    blocked_accounts: int = 10_000
    """Accounts one account may block: its block list is one row."""
    pin_tries: int = 10
    """Wrong PINs in a row after which a registration lock compares no more for a while."""
    pin_lock_ms: int = 7 * DAY_MS
    """That while, in ms."""
    stock_one_time: int = 200
    """One-time X25519 keys held for one device; beyond it the oldest are let go. Two uploads fit."""
    stock_kem: int = 40
    """Likewise, one-time KEM keys. Each has 1.6 KiB."""
    low_one_time: int = 20
    """With fewer X25519 keys than this a device is told to publish more."""
    low_kem: int = 5
    """Likewise, with fewer KEM keys."""
    claims_kept: int = 64
    """Claims remembered per device, so that a repeated one gets the same keys."""
    claims_kept_ms: int = DAY_MS
    """How long each is remembered: a sender that lost an answer asks again within a day."""
    claims_per_minute: int = 10
    """Keys of one device that one account may claim in a minute, so that nobody empties another's stock."""
    devices: int = 32
    """Devices linked to one account at once, listed or not: every receipt goes to each of them."""
    mailbox_bytes: int = 64 * 1024 * 1024
    """Bytes of ciphertext that may wait for one device: an ack, an expiry and an unlinking read what they end."""
    slot_items: int = 1_000
    """Due items in one row. Many may fall due in one second, and each change writes its row whole."""
    failures_alone: int = 1_000
    """With so many receipts waiting for a device, further failures share intervals: they are one row."""
    dead_letters_ms: int = 30 * DAY_MS
    """A message that could not be applied stays *sent* so long; then it has failed. 0 is never."""
    share_parts: int = 10
    """One account may hold one of so many equal parts of a mailbox, of its entries and of its bytes: nobody fills it
    alone."""
    stranger_entries: int = 100
    """Entries of a mailbox that an account may hold which the recipient has neither written to nor saved."""
    stranger_bytes: int = 1024 * 1024
    """Likewise, bytes of ciphertext. With fewer than a body may have, strangers cannot send the largest ones."""
    stranger_parts: int = 2
    """Once one of so many equal parts of a mailbox is used, strangers are refused: the rest is for known accounts."""
    known_accounts: int = 5_000
    """Accounts that one account may have said to know: they are one row, and the oldest is dropped for a new one."""
    handle_kept_ms: int = 30 * DAY_MS
    """How long the handle of a closed account, and every handle that looks like it, is kept for its owner."""
    group_members: int = 5_000
    """Members of one group, joined or not."""
    account_groups: int = 1_000
    """Groups that one account may be in: each is told of every change of its devices."""
    group_changes: int = 120
    """Changes of one group's chain in an hour."""
    relistings: int = 60
    """Times in an hour that the groups of one account are told of its devices. Further changes wait for its end."""
    chain_kept: int = 4_096
    """Changes of one group that are kept, the newest."""
    group_write_members: int = 100
    """A group with more members that have joined stores its entries once, in its log."""
    group_read_members: int = 1_000
    """In a group with more, news does not carry the entry."""
    group_log_bytes: int = 64 * 1024 * 1024
    """Bytes of ciphertext in one group's log; beyond it the oldest entries end."""
    schedules: int = 10_000
    """Scheduled messages of one account that have not ended."""
    schedule_calls: int = 1_000
    """Of these, those to webhooks."""
    schedule_bytes: int = 64 * 1024 * 1024
    """Bytes of their content, of one account."""
    schedule_ahead_ms: int = 14 * DAY_MS
    """How far ahead a message into a conversation may be scheduled: keys that it is sealed with are kept that long."""
    call_ahead_ms: int = 365 * DAY_MS
    """Likewise, a call to a webhook."""
    reseal_ms: int = DAY_MS
    """A message whose recipients' devices have changed waits so long after its time to be sealed again."""
    schedules_kept_ms: int = 7 * DAY_MS
    """How long a scheduled message is shown after it has ended; into a conversation, for 30 days at least. Its content
    is gone at once."""
    call_patience_ms: int = 30_000
    """A call whose outcome is not told within this time is made again: its caller may have crashed."""
    retry_after_ms: int = 3_600_000
    """Longest delay of a retry that a webhook, or a push provider, may ask for."""
    wake_patience_ms: int = 20_000
    """A push whose outcome is not told within this time is asked for again, while something waits."""
    wake_again_ms: int = 15 * 60_000
    """A device that has not fetched what waits is pushed again this long after the first push."""
    wake_second_ms: int = 60 * 60_000
    """Likewise, for the second time."""
    wake_third_ms: int = 6 * 60 * 60_000
    """Likewise, for the third and last time."""
    media_bytes: int = 2 * 1024 * 1024 * 1024
    """Bytes of one blob; and never more than the quota that it counts towards."""
    media_quota_bytes: int = 1024 * 1024 * 1024
    """Bytes of one account's media, from when their uploads begin until they end."""
    backup_quota_bytes: int = 1024 * 1024 * 1024
    """Likewise, of its backups."""
    media_files: int = 10_000
    """Blobs of one account."""
    backups: int = 256
    """Of these, backups: they are listed in one row."""
    media_uploads: int = 16
    """Uploads of one account that are not finished."""
    media_devices: int = 20_000
    """Devices that one blob may be for."""
    media_ms: int = 30 * DAY_MS
    """How long media are kept that some device has not fetched."""
    upload_ms: int = DAY_MS
    """How long an upload may take, with all its interruptions."""


class FormLimits(Struct, frozen=True):
    body_bytes: int = 64 * 1024
    """Ciphertext of one envelope."""
    envelopes: int = 256
    """Devices one message may be sealed for, on each side."""
    spans: int = 1_024
    """Intervals that one read mark may list."""
    authors: int = 64
    """Devices whose messages one read mark may name: the stream of each is a row to be read."""
    unreadable: int = 256
    """Numbers that one acknowledgement may list as unreadable: no more are handed out before one."""
    handle_chars: int = 64
    """Name of an account."""
    label_chars: int = 64
    """Device name."""
    list_bytes: int = 64 * 1024
    """A signed device list."""
    call_bytes: int = 64 * 1024
    """Content of one call to a webhook."""
    url_chars: int = 2_048
    """Address of a webhook."""
    push_token_chars: int = 4_096
    """A push token, or the subscription of a browser."""
    lifetime_ms: int = 7 * DAY_MS
    """Longest timer of a disappearing message."""
    lifetime_ms_min: int = 30_000
    """Shortest one: less would end it before a phone in a pocket has fetched it. A re-seal may carry any remainder."""
