"""Every alert there is: its condition, how urgent it is, and what it means.

Knows:   the names of metrics.
Never:   is copied by hand: `make docs` writes deploy/prometheus/alerts.yml and the table of docs/operating.md from it,
         and the server judges by it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nightmail.server.histogram import COMMIT_MS, LATENCY_MS, bounds_in_seconds

from .conditions import Condition, Growth, Level, Quantile, Share

MINUTE_S, HOUR_S = 60, 3_600
RUNBOOK = "docs/operating.md"


class Alert(Struct, frozen=True):
    name: str
    severity: Literal["critical", "warning", "info"]
    """critical: messages may be lost or are not taken; warning: look at it today; info: nothing is wrong yet."""
    condition: Condition
    for_s: int
    """How long the condition must be met."""
    text: str
    """What it means, in one sentence."""

    @property
    def runbook(self) -> str:
        """Where it is written what to do."""
        return f"{RUNBOOK}#{self.name.lower()}"


MEMORY, LOG = "nightmail_messages_repeated_total", "nightmail_messages_repeated_from_log_total"
"""Who answered a retry."""

ALERTS: tuple[Alert, ...] = (
    Alert(
        "Loss", "critical", Level("nightmail_entries_lost", "!=", 0), MINUTE_S,
        "Copies of messages are not accounted for: neither delivered nor failed, withheld, waiting or a dead letter.",
    ),
    Alert(
        "NotReady", "critical", Level("nightmail_ready", "==", 0), MINUTE_S,
        "The server takes no messages.",
    ),
    Alert(
        "DiskTight", "critical", Level("nightmail_disk_tight", "==", 1), 0,
        "No space can be reserved for the log: only acknowledgements are taken.",
    ),
    Alert(
        "DiskFilling", "warning", Level("nightmail_disk_free_bytes", "<", 5_000_000_000), 5 * MINUTE_S,
        "Less than 5 GB are free where the data folder is.",
    ),
    Alert(
        "StorageFailing", "critical", Growth("nightmail_storage_troubles_total", 0, 10 * MINUTE_S), 0,
        "Checkpoints keep failing, or rows cannot be read. Nothing is lost yet.",
    ),
    Alert(
        "ClockAhead", "critical", Level("nightmail_clock_ahead_seconds", ">", 60), 0,
        "The machine's clock is far ahead of the server's time. It will be believed if it stays so.",
    ),
    Alert(
        "ClockBehind", "critical", Level("nightmail_clock_ahead_seconds", "<", -60), 5 * MINUTE_S,
        "The machine's clock is far behind the server's time: timers wait.",
    ),
    Alert(
        "RecordSetAside", "critical", Growth("nightmail_records_poisoned_total", 0, 10 * MINUTE_S), 0,
        "A record could not be applied and is a dead letter now.",
    ),
    Alert(
        "DeadLetters", "warning", Level("nightmail_dead_letters", ">", 1_000), 5 * MINUTE_S,
        "More than 1,000 dead letters wait for an operator.",
    ),
    Alert(
        "DeadLettersRise", "critical", Growth("nightmail_dead_letters", 1_000, 5 * MINUTE_S, is_gauge=True), 0,
        "There are 1,000 dead letters more than five minutes ago.",
    ),
    Alert(
        "SlowDelivery", "warning",
        Quantile("nightmail_delivery_seconds", bounds_in_seconds(LATENCY_MS), 0.99, 0.1, 5 * MINUTE_S, 500),
        10 * MINUTE_S,
        "One message in a hundred takes longer than 100 ms to a connected device.",
    ),
    Alert(
        "SlowCommits", "warning",
        Quantile("nightmail_commit_seconds", bounds_in_seconds(COMMIT_MS), 0.99, 0.1, 5 * MINUTE_S, 500),
        10 * MINUTE_S,
        "One commit in a hundred takes longer than 100 ms.",
    ),
    Alert(
        "ManyDuplicates", "warning",
        Share(
            (MEMORY, LOG), ("nightmail_messages_accepted_total", MEMORY, LOG), ">", 0.01, 10 * MINUTE_S, 1_000,
        ),
        10 * MINUTE_S,
        "More than 1 % of the messages are retries of messages that the server has already.",
    ),
    Alert(
        "HotDedupMisses", "warning", Share((MEMORY,), (MEMORY, LOG), "<", 0.95, 10 * MINUTE_S, 100), 10 * MINUTE_S,
        "Memory answers less than 95 % of the retries: the others are written to the log again.",
    ),
    Alert(
        "DeepAccount", "warning", Level("nightmail_account_depth", ">", 10_000), 5 * MINUTE_S,
        "More than 10,000 entries wait for the devices of one account.",
    ),
    Alert(
        "MailboxNearlyFull", "warning", Level("nightmail_mailbox_fill_ratio", ">=", 0.8), 5 * MINUTE_S,
        "The mailbox of a device is taken to 80 % or more. The device may be out of use.",
    ),
    Alert(
        "FullMailboxes", "warning",
        Growth('nightmail_entries_failed_total{reason="mailbox_full"}', 0, HOUR_S), 0,
        "Messages failed because a mailbox was full.",
    ),
    Alert(
        "LowPrekeys", "info", Level("nightmail_devices_low_prekeys", ">", 0), HOUR_S,
        "Devices have fewer than 20 one-time keys left, and have not published new ones for an hour.",
    ),
    Alert(
        "ExhaustedPrekeys", "warning", Level("nightmail_devices_exhausted_prekeys", ">", 0), HOUR_S,
        "Devices have no one-time key left: who writes to them first uses the keys of last resort.",
    ),
)  # fmt: skip
