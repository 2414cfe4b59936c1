"""For each alert, series that make it fire; told to Prometheus' own tool and to the server's own judge alike.

One value stands for 15 seconds. The alert is quiet up to `quiet_s`, and fires at `fires_s`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

STEP_S = 15
MINUTE_S = 60


class Story(Struct, frozen=True):
    series: Mapping[str, Sequence[float]]
    quiet_s: int
    fires_s: int


def level(name: str, before: float, after: float, *, lasting_s: int) -> Story:
    """A gauge that changes after a minute, and stays."""
    values = [before] * 4 + [after] * (lasting_s // STEP_S + 8)
    return Story({name: values}, MINUTE_S - STEP_S + max(0, lasting_s - STEP_S), MINUTE_S + lasting_s)


def growth(name: str, by: float) -> Story:
    """A counter that grows once, after ten minutes."""
    return Story({name: [0.0] * 40 + [by] * 8}, 10 * MINUTE_S - STEP_S, 10 * MINUTE_S)


def grows_evenly(rate: float, steps: int, *, after: int = 0) -> list[float]:
    """A counter that grows by so much in every step; from a step on."""
    return [rate * max(0, step - after) for step in range(steps)]


def slow(histogram: str, bounds: Sequence[str], quick: str) -> Story:
    """From the tenth minute on, one in twenty is slower than the bound `quick`."""
    steps = 120
    count = grows_evenly(40, steps)
    late = grows_evenly(2, steps, after=40)
    series: dict[str, Sequence[float]] = {f"{histogram}_count": count, f'{histogram}_bucket{{le="+Inf"}}': count}
    for bound in bounds:
        in_time = float(bound) <= float(quick)
        series[f'{histogram}_bucket{{le="{bound}"}}'] = (
            [each - behind for each, behind in zip(count, late, strict=True)] if in_time else count
        )
    return Story(series, 19 * MINUTE_S, 22 * MINUTE_S)


DELIVERY_BOUNDS = ("0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1.0", "2.0", "5.0")
COMMIT_BOUNDS = ("0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1.0", "5.0")

STORIES: dict[str, Story] = {
    "Loss": level("nightmail_entries_lost", 0, 1, lasting_s=MINUTE_S),
    "NotReady": level("nightmail_ready", 1, 0, lasting_s=MINUTE_S),
    "DiskTight": level("nightmail_disk_tight", 0, 1, lasting_s=0),
    "DiskFilling": level("nightmail_disk_free_bytes", 6e9, 4e9, lasting_s=5 * MINUTE_S),
    "StorageFailing": growth("nightmail_storage_troubles_total", 1),
    "ClockAhead": level("nightmail_clock_ahead_seconds", 60, 61, lasting_s=0),
    "ClockBehind": level("nightmail_clock_ahead_seconds", -60, -61, lasting_s=5 * MINUTE_S),
    "RecordSetAside": growth("nightmail_records_poisoned_total", 1),
    "DeadLetters": level("nightmail_dead_letters", 1_000, 1_001, lasting_s=5 * MINUTE_S),
    "DeadLettersRise": Story({"nightmail_dead_letters": [0] * 40 + [900] * 20 + [2_100] * 4}, 900 - 15, 900),
    "SlowDelivery": slow("nightmail_delivery_seconds", DELIVERY_BOUNDS, "0.1"),
    "SlowCommits": slow("nightmail_commit_seconds", COMMIT_BOUNDS, "0.1"),
    "ManyDuplicates": Story(
        {
            "nightmail_messages_accepted_total": grows_evenly(100, 120),
            "nightmail_messages_repeated_total": grows_evenly(3, 120, after=40),
            "nightmail_messages_repeated_from_log_total": [0] * 120,
        },
        10 * MINUTE_S, 26 * MINUTE_S,
    ),
    "HotDedupMisses": Story(
        {
            "nightmail_messages_repeated_total": grows_evenly(10, 140),
            "nightmail_messages_repeated_from_log_total": grows_evenly(1, 140, after=40),
        },
        14 * MINUTE_S, 30 * MINUTE_S,
    ),
    "DeepAccount": level("nightmail_account_depth", 10_000, 10_001, lasting_s=5 * MINUTE_S),
    "MailboxNearlyFull": level("nightmail_mailbox_fill_ratio", 0.79, 0.8, lasting_s=5 * MINUTE_S),
    "FullMailboxes": growth('nightmail_entries_failed_total{reason="mailbox_full"}', 1),
    "LowPrekeys": level("nightmail_devices_low_prekeys", 0, 1, lasting_s=60 * MINUTE_S),
    "ExhaustedPrekeys": level("nightmail_devices_exhausted_prekeys", 0, 1, lasting_s=60 * MINUTE_S),
}  # fmt: skip
