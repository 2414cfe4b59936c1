"""Counts of messages since the start, from the delivery log's newest lines; the latency of deliveries; depths.

Knows:   how far it has read, shard by shard; a bounded number of entries that it waits to see acknowledged.
Touches: the state's notes and mailboxes, to read them, between two records.
Never:   keeps a line, or reads lines from before the last tick.

What became of every copy, whenever the server was started, is counted by the fold itself (`model/ledger.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from nightmail.core.state import ShardState
from nightmail.model.ids import account_of, log_of, shard_of
from nightmail.model.notes import ConnectionChanged, Dropped, Note, Placed, Taken
from nightmail.model.words import Lane, Reason

from .depths import Depths
from .histogram import LATENCY_MS, Histogram

AT_ONCE = 64
"""Entries of one look that are followed to their acknowledgement: all of up to 1,280 a second, and evenly chosen ones
of more."""
WAIT_MS = 10_000
"""A device that takes longer is away, whatever its connection says."""
FOLLOWED = 1_024
"""At a time: a thousand devices that are connected and do not acknowledge cost no more than this."""


class _Reading:
    """How far one shard's lines are read."""

    def __init__(self) -> None:
        self.state: ShardState | None = None
        self.lines = 0
        self.followed: dict[tuple[int, Lane, int], tuple[int, int]] = {}
        """(device, lane, seq) → (accepted at, followed since)."""


class MessageCounts:
    """Call `look` before anything that may take a checkpoint, and `skip` after it: that clears the lines."""

    def __init__(self, is_online: Callable[[int], bool] | None) -> None:
        """Without `is_online`: those are, whose connections the lines tell of."""
        self._connected: set[int] | None = set[int]() if is_online is None else None
        self._is_online = is_online or self._is_connected
        self._readings: dict[int, _Reading] = {}
        self.accepted = self.blocked = self.filed = self.delivered = 0
        self.failed = dict.fromkeys((reason for reason in Reason if reason is not Reason.NONE), 0)
        self.group_messages = {"mailboxes": 0, "log": 0}
        """Messages to groups, and keys for their devices, by where their entries went."""
        self.latency = Histogram(LATENCY_MS)
        self.depths = Depths()

    @property
    def depth(self) -> int:
        """Waiting in the deepest mailbox."""
        return self.depths.mailbox

    def skip(self, state: ShardState) -> None:
        """What stands in the state now was counted before, by this process or by an earlier one."""
        reading = self._reading(state)
        if reading.state is not state:
            reading.state, reading.followed = state, {}
        reading.lines = len(state.notes)

    def forget(self, shard: int, shards: int) -> None:
        """Another node counts on."""
        self._readings.pop(shard, None)

        def is_gone(account: int) -> bool:
            return shard_of(account, shards) == shard

        self.depths.forget(is_gone)
        if self._connected:
            self._connected = {device for device in self._connected if not is_gone(account_of(device))}

    def look(self, state: ShardState, now: int) -> None:
        """Count the lines since the last look. `now` never jumps."""
        reading = self._reading(state)
        if not (fresh := state.notes[reading.lines :]):
            return
        reading.lines = len(state.notes)
        self._count(fresh)
        self.depths.look(state, fresh)
        self._follow(reading, fresh, now)
        if reading.followed:
            self._resolve(reading, state, fresh, now)

    def _reading(self, state: ShardState) -> _Reading:
        return self._readings.setdefault(state.index, _Reading())

    def _is_connected(self, device: int) -> bool:
        return self._connected is not None and device in self._connected

    def _count(self, fresh: list[Note]) -> None:
        accepted = filed = full = delivered = 0
        for note in fresh:
            if type(note) is Placed:
                if not note.copy:
                    accepted += 1
                    if note.blocked:
                        self.blocked += 1
                    elif not note.to & 1:
                        self._count_in_group(note)
                for place in note.places:
                    if place[1]:
                        filed += 1
                    elif not note.blocked:
                        full += 1
            elif type(note) is Taken:
                delivered += note.high - note.low + 1
                if note.unreadable:
                    delivered -= len(note.unreadable)
                    self.failed[Reason.UNDECRYPTABLE] += len(note.unreadable)
            elif type(note) is Dropped:
                self.failed[note.reason] += 1
            elif type(note) is ConnectionChanged and self._connected is not None:
                (self._connected.add if note.here else self._connected.discard)(note.device)
        self.accepted += accepted
        self.filed += filed
        self.delivered += delivered
        self.failed[Reason.MAILBOX_FULL] += full

    def _count_in_group(self, note: Placed) -> None:
        is_in_log = bool(note.places) and note.places[0][0] == log_of(note.to)
        self.group_messages["log" if is_in_log else "mailboxes"] += 1

    def _follow(self, reading: _Reading, fresh: list[Note], now: int) -> None:
        """Follow what was filed for devices that are connected."""
        filed = [
            (device, note.lane, seq, note.at)
            for note in fresh
            if type(note) is Placed and not note.copy
            for device, seq in note.places
            if seq
        ]
        for device, lane, seq, at in filed[:: -(-len(filed) // AT_ONCE) or 1]:
            if len(reading.followed) < FOLLOWED // len(self._readings) and self._is_online(device):
                reading.followed[device, lane, seq] = at, now

    def _resolve(self, reading: _Reading, state: ShardState, fresh: list[Note], now: int) -> None:
        done = [
            key
            for key, (_, since) in reading.followed.items()
            if now - since > WAIT_MS or not (box := state.mailboxes.get(key[0])) or box.lanes[key[1]].acked >= key[2]
        ]
        if not done:
            return
        wanted = {(device, lane) for device, lane, _ in done}
        taken = [note for note in fresh if isinstance(note, Taken) and (note.device, note.lane) in wanted]
        for key in done:
            at, _ = reading.followed.pop(key)
            device, lane, seq = key
            for note in taken:
                if note.device == device and note.lane == lane and note.low <= seq <= note.high:
                    self.latency.add(max(0, note.at - at))
                    break
