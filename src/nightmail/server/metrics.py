"""/metrics: plain figures, put into Prometheus' form when they are scraped.

Knows:   the name and the meaning of every metric (docs/operating.md lists them).
Touches: the figures of heart, gateway and process, to read them.
Never:   costs anything between two scrapes.
"""

from __future__ import annotations

import os
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nightmail.gateway.counters import Counters
from nightmail.model.ledger import CopyLedger
from nightmail.model.records import CallOutcome, PushOutcome
from nightmail.model.words import Reason

from .heart import clock
from .metric_families import counter, gauge, histogram, labelled, plain

if TYPE_CHECKING:
    from .front import NodeFront

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

GATEWAY: dict[str, str] = {
    "bytes_in": "Bytes of frames from devices.",
    "bytes_out": "Bytes of frames to devices.",
    "claims_limited": "Claims of keys refused because an account or an address claimed too many.",
    "closed": "Connections that ended.",
    "connected": "Devices that said who they are, and were known.",
    "displaced": "Connections that ended because the same device connected again.",
    "drained": "Times that a device was told that its queue is empty.",
    "frames_in": "Frames from devices.",
    "frames_out": "Frames to devices.",
    "group_entries_pushed": "Entries of group logs told to attending devices as they came.",
    "group_heads_told": "Times that a device was told only how far a group's log had come.",
    "groups_asked": "Questions about groups: chains, members, logs, receipts.",
    "groups_limited": "Questions about groups refused because there were too many.",
    "links_limited": "Links of devices refused because an account linked too many.",
    "malformed": "Frames and items that could not be read.",
    "not_admitted": "Connections that were told to come back later.",
    "presence_limited": "Questions about presence refused because an account asked too many.",
    "presence_told": "Changes of presence told to watchers.",
    "rate_limited": "Messages refused because an account sent too fast.",
    "repeated": "Entries that were offered again because they were not acknowledged.",
    "requests_limited": "HTTP requests refused because one address sent too many.",
    "strangers_dropped": "Connections let go because too many had not said who they are.",
    "submitted": "Records that devices submitted.",
    "suspected": "Devices that stopped acknowledging and count as offline.",
    "too_fast": "Connections closed because they sent more than any honest client.",
    "typing_limited": "Signs of typing dropped because an account sent too many.",
    "typing_passed": "Signs of typing passed on to a device.",
    "unauthorized": "Connections with an unknown device or a wrong token.",
}
"""Counter of the gateway → what it means. A test sees that none is missing."""


class Metrics(Collector):
    def __init__(self, node: NodeFront) -> None:
        self._node = node
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def scrape(self) -> bytes:
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing: otherwise registering it would collect everything."""
        return []

    def collect(self) -> Iterator[Metric]:
        yield from self._messages()
        yield from self._heart()
        yield from self._calls()
        yield from self._pushes()
        yield from self._blobs()
        yield from self._gateway()
        yield from self._process()

    def judged(self) -> Iterator[Metric]:
        """What alerts are about; the others would cost too much several times a minute."""
        yield from self._messages()
        yield from self._heart()

    def _messages(self) -> Iterator[Metric]:
        message_counts, figures = self._node.message_counts, self._node.figures
        yield counter("messages_accepted", "Messages accepted for the first time.", message_counts.accepted)
        yield counter(
            "messages_blocked", "Messages accepted from senders that the recipient blocks.", message_counts.blocked
        )
        ledger, ended = self._node.totals().ledger, self._node.counted_ledger()
        yield counter("messages_repeated", "Retries answered from memory.", figures.repeated)
        yield counter("messages_repeated_from_log", "Retries that the log had to answer.", ended.repeated)
        yield counter("entries_filed", "Entries put into mailboxes, own copies included.", message_counts.filed)
        yield from self._ledger(ledger, ended)
        fanned = CounterMetricFamily(
            "nightmail_group_messages",
            "Messages to groups, and keys for their devices, by where they went.",
            labels=["to"],
        )
        for way, count in message_counts.group_messages.items():
            fanned.add_metric([way], count)
        yield fanned
        yield histogram(
            "delivery_seconds",
            "Accept to device ack, for connected devices; above 1,280 a second for a part of them.",
            message_counts.latency,
        )
        depths = message_counts.depths
        yield gauge("account_depth", "Waiting for the deepest account seen, all its devices together.", depths.account)
        yield gauge("mailbox_depth", "Waiting in the deepest mailbox seen.", depths.mailbox)
        yield gauge("mailbox_fill_ratio", "How much of the fullest mailbox seen is taken.", depths.fill)
        yield gauge("devices_nearly_full", "Devices seen whose mailbox is taken to 80 %.", depths.nearly_full)

    def _ledger(self, ledger: CopyLedger, ended: CopyLedger) -> Iterator[Metric]:
        """What became of each copy: one message for one device. `ended` only grows."""
        # No counter: the copies of a letter that is replayed are taken off it, and counted again where they are filed.
        yield gauge("entries_owed", "Copies of messages taken on, each for one device.", ledger.owed)
        yield counter("entries_delivered", "Copies that devices acknowledged as stored.", ended.delivered)
        failed = {reason.name.lower(): ended.failed.get(reason, 0) for reason in Reason if reason is not Reason.NONE}
        yield labelled(
            CounterMetricFamily, "entries_failed", "Copies that will not be shown on their device.", "reason", failed
        )  # fmt: skip
        yield counter("entries_withheld", "Copies from senders that their recipient blocks.", ended.withheld)
        yield gauge("entries_waiting", "Entries that wait in mailboxes.", ledger.waiting)
        yield gauge("entries_buried", "Copies in dead letters that nobody has settled.", ledger.buried)

    def _heart(self) -> Iterator[Metric]:
        figures, totals = self._node.figures, self._node.totals()
        yield gauge("ready", "1 if messages are taken.", not self._node.not_ready())
        yield counter("records", "Records made durable.", figures.records)
        yield histogram("commit_seconds", "From a batch's append to its being durable.", figures.commits)
        yield counter("commits_failed", "Batches that could not be written.", figures.failed_commits)
        yield histogram("loop_lag_seconds", "How late the event loop was, every 50 ms.", figures.lag)
        yield counter("checkpoints", "Checkpoints made durable.", figures.checkpoints)
        yield counter("checkpoint_rows", "Rows written by checkpoints.", figures.checkpoint_rows)
        yield counter("checkpoint_entries", "Entries written by checkpoints.", figures.checkpoint_entries)
        yield gauge(
            "checkpoint_duration_seconds", "The newest checkpoint, from taken to durable.", figures.checkpoint_ms / 1000
        )
        if figures.checkpoint_at:
            age = max(0, clock() - figures.checkpoint_at) / 1000
            yield gauge("checkpoint_age_seconds", "Since the newest checkpoint was taken.", age)
        yield gauge("unsaved_rows", "Rows and lines that only the log has.", totals.unsaved)
        yield gauge("unsaved_bytes", "Ciphertext of waiting entries that only the log has.", totals.unsaved_bytes)
        yield gauge("unsaved_records", "Records behind the newest checkpoint.", totals.unsaved_records)
        yield gauge("dead_letters", "Dead letters that nobody has settled.", totals.dead)
        yield labelled(
            GaugeMetricFamily, "dead_letters_by_error", "Dead letters that are kept, by error.", "error",
            self._node.letter_counts,
        )  # fmt: skip
        yield gauge("devices_low_prekeys", "Devices with few one-time keys left, or none.", totals.low)
        yield gauge("devices_exhausted_prekeys", "Devices without one-time keys of one kind or both.", totals.exhausted)
        yield counter("records_poisoned", "Records set aside since the start.", figures.poisoned)
        yield counter("storage_troubles", "Times that storage kept failing.", figures.troubles)
        yield counter("clock_leaps", "Times that the machine's clock was too far ahead to be believed.", figures.leaps)
        seen = self._node.clock_seen()
        yield gauge(
            "clock_ahead_seconds", "The machine's clock minus the time that the server goes by; negative: timers wait.",
            (seen.wall_ms - seen.time_ms) / 1000,
        )  # fmt: skip
        yield gauge("rows_in_memory", "Rows kept in memory.", totals.rows_in_memory)
        free = shutil.disk_usage(self._node.folder).free
        yield gauge("disk_free_bytes", "Free space where the data folder is.", free)
        yield from self._node.engine_metrics()

    def _calls(self) -> Iterator[Metric]:
        calls = self._node.calls
        assert calls is not None
        scheduled, places = calls.scheduled, calls.dispatch.places
        by_outcome = {outcome.name.lower(): calls.dispatch.ended[outcome] for outcome in CallOutcome}
        retries = {outcome.name.lower(): scheduled.retries[outcome] for outcome in CallOutcome}
        yield labelled(CounterMetricFamily, "webhook_calls", "Calls that have ended.", "outcome", by_outcome)
        yield labelled(
            CounterMetricFamily, "webhook_retries", "Scheduled calls that were repeats.", "outcome", retries
        )  # fmt: skip
        yield labelled(
            CounterMetricFamily, "webhook_errors", "Scheduled calls that failed.", "error", scheduled.errors
        )  # fmt: skip
        yield gauge("outlets", "Outlets that make calls.", calls.processes)
        yield gauge("webhook_calls_busy", "Calls under way.", places.busy)
        yield gauge("webhook_calls_waiting", "Calls that wait for a place.", places.waiting)
        yield counter("webhook_calls_put_off", "Scheduled calls that found too many waiting.", scheduled.put_off)

    def _blobs(self) -> Iterator[Metric]:
        assert self._node.media is not None
        keeper = self._node.media.keeper
        yield gauge("blob_streams", "Uploads and downloads of blobs under way.", self._node.media.service.streams.count)
        yield counter("blobs_removed", "Blobs whose bytes were removed because they have ended.", keeper.removed)
        yield counter("blobs_swept", "Bytes without a blob that a sweep removed.", keeper.swept)
        yield counter("blobs_lost", "Blobs whose bytes were not found any more.", keeper.lost)
        yield counter("blob_failures", "Times that the store of bytes failed for the keeper.", keeper.failed)

    def _pushes(self) -> Iterator[Metric]:
        assert self._node.pushes is not None
        waker = self._node.pushes.waker
        by_outcome = {outcome.name.lower(): waker.outcomes[outcome] for outcome in PushOutcome}
        yield labelled(CounterMetricFamily, "pushes", "Pushes that have ended.", "outcome", by_outcome)
        yield labelled(CounterMetricFamily, "push_errors", "Pushes that failed.", "error", waker.errors)
        yield counter("devices_woken", "Devices that connected soon after a push.", waker.woken)
        yield counter("messages_woken", "Messages woken by push: what waited for those devices.", waker.messages_woken)
        yield gauge("pushes_busy", "Pushes under way.", waker.under_way)
        yield gauge("pushes_waiting", "Devices that wait to be pushed to.", waker.waiting)
        yield counter("pushes_put_off", "Wakes that found too many waiting.", waker.put_off)

    def _gateway(self) -> Iterator[Metric]:
        gateway, listener = self._node.gateway, self._node.listener
        for name in Counters.__slots__:
            yield counter(f"gateway_{name}", GATEWAY.get(name, name), getattr(gateway.counters, name))
        yield gauge("connections", "WebSocket connections.", gateway.connections)
        yield gauge("devices_online", "Devices that are connected.", gateway.devices)
        if gateway.presence is not None:
            yield gauge("accounts_watched", "Accounts whose presence a device watches.", len(gateway.presence.watchers))
        yield gauge("groups_attended", "Groups whose log some connected device attends.", len(gateway.groups.attended))
        yield gauge("pressed", "1 while drains are paced.", gateway.pressed)
        yield gauge("http_connections", "HTTP connections.", listener.connections)
        yield counter("http_requests", "HTTP requests answered.", listener.requests)

    def _process(self) -> Iterator[Metric]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        resident = int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE_BYTES
        yield plain(
            CounterMetricFamily, "process_cpu_seconds", "CPU time of the process.", usage.ru_utime + usage.ru_stime
        )
        yield plain(GaugeMetricFamily, "process_resident_memory_bytes", "Memory of the process.", resident)
        yield plain(GaugeMetricFamily, "process_open_fds", "Open files.", len(os.listdir("/proc/self/fd")))
        yield plain(GaugeMetricFamily, "process_max_fds", "Files that may be open.", soft)
        yield plain(
            GaugeMetricFamily, "process_start_time_seconds", "When it started, since 1970.", self._node.started_at
        )
        yield gauge("clock_seconds", "The server's clock, since 1970.", time.time())
