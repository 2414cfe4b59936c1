"""What was written, acknowledged and shown, and the verdict.

Knows:   every message by the label in its text: its author, recipient, lane and number.
Never:   judges by anything but the events of clients and their profiles at the end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from nightmail.client.messages import Message, Tick
from nightmail.model.words import Lane

NOTES = 20
"""How many broken promises are described."""


class MessageLabel(NamedTuple):
    """Identifies a message by its text, independent of its id."""

    run: str
    by: int
    """The device that wrote it."""
    to: int
    """The person or the group it is for."""
    lane: Lane
    n: int
    """1, 2, 3 … for this device, person or group, and lane."""

    def text(self, padding: int) -> str:
        return f"verify {self.run} {self.by} {self.to} {int(self.lane)} {self.n} " + "." * padding

    @classmethod
    def parse(cls, text: str) -> MessageLabel | None:
        words = text.split(" ")
        if len(words) < 7 or words[0] != "verify":
            return None
        return cls(words[1], int(words[2]), int(words[3]), Lane(int(words[4])), int(words[5]))


class Verdict(Struct, frozen=True, kw_only=True):
    sent: int
    """Messages that the server acknowledged."""
    delivered: int
    """Of these, shown on every device that they were addressed to."""
    lost: int
    """Missing on an addressed device, counted per device; or never sent although all faults ended."""
    doubled: int
    reordered: int
    unticked: int
    """Delivered, but the author never got a receipt."""
    failed: int
    """Failed with a reason; not counted as lost."""
    to_group: int = 0
    """Of the acknowledged ones, those written to the group."""
    notes: list[str]

    @property
    def broken(self) -> int:
        return self.lost + self.doubled + self.reordered + self.unticked


class Ledger:
    """Filled during the run, by event handlers of every client."""

    def __init__(
        self, run: str, addressed: Mapping[int, Sequence[int]], groups: Mapping[int, Sequence[int]] | None = None
    ) -> None:
        """`addressed`: person → their devices; `groups`: group → the devices of its members."""
        self._run, self._addressed, self._groups = run, addressed, groups or {}
        self._owner = {device: person for person, devices in addressed.items() for device in devices}
        self._next: Counter[tuple[int, int, Lane]] = Counter()
        self.written: dict[str, MessageLabel] = {}
        """Message id → label, of every message that a client queued."""
        self.acked: set[str] = set()
        self.ticked: set[tuple[int, str]] = set()
        """(device, message id) of every delivery receipt. Only those of the author count."""
        self.failed: dict[str, str] = {}
        self.shown: dict[int, Counter[str]] = {device: Counter() for device in self._owner}
        """Device → message ids in the order of their first event, and how many events there were."""
        self.missing: set[tuple[int, MessageLabel]] = set()
        """(device, message) pairs that were not shown yet."""
        self.changed = asyncio.Event()
        """Set after every event."""

    # --- events ---------------------------------------------------------------------------------

    def next_label(self, by: int, to: int, lane: Lane) -> MessageLabel:
        self._next[by, to, lane] += 1
        return MessageLabel(self._run, by, to, lane, self._next[by, to, lane])

    def wrote(self, message_id: str, label: MessageLabel) -> None:
        self.written[message_id] = label
        # Recipients may have got the message before its author got the id.
        self.missing.update(
            (device, label) for device in self.devices_for(label) if message_id not in self.shown[device]
        )  # fmt: skip
        self.changed.set()

    def was_sent(self, message_id: str) -> None:
        self.acked.add(message_id)
        self.changed.set()

    def was_delivered(self, device: int, message_id: str) -> None:
        self.ticked.add((device, message_id))
        self.changed.set()

    def has_failed(self, message_id: str, reason: str) -> None:
        self.failed[message_id] = reason
        self.changed.set()

    def was_shown(self, device: int, message: Message) -> None:
        self.shown[device][message.id] += 1
        if label := MessageLabel.parse(message.text):
            self.missing.discard((device, label))
        self.changed.set()

    def devices_for(self, label: MessageLabel) -> list[int]:
        """The devices that must show it: the recipient's devices, or those of all members; and the author's others."""
        if label.to in self._groups:
            return [device for device in self._groups[label.to] if device != label.by]
        own = self._addressed[self._owner[label.by]]
        return [device for device in (*self._addressed[label.to], *own) if device != label.by]

    def is_to_group(self, label: MessageLabel) -> bool:
        return label.to in self._groups

    @property
    def done(self) -> bool:
        """True if every message is shown everywhere and its author has a receipt."""
        if self.missing:
            return False
        return all((label.by, ident) in self.ticked or ident in self.failed for ident, label in self.written.items())

    # --- the verdict ----------------------------------------------------------------------------

    def judge(self, histories: Mapping[int, Sequence[Message]]) -> Verdict:
        """`histories`: the messages of each device's profile at the end, in display order."""
        judge = _Judge(self, histories)
        return judge.verdict()


class _Judge:
    def __init__(self, ledger: Ledger, histories: Mapping[int, Sequence[Message]]) -> None:
        self._ledger, self._histories = ledger, histories
        self._notes: list[str] = []
        self._labels: dict[int, list[tuple[MessageLabel, Message]]] = {
            device: [(label, message) for message in history if (label := MessageLabel.parse(message.text))]
            for device, history in histories.items()
        }

    def verdict(self) -> Verdict:
        own = {
            message.id: message
            for device, pairs in self._labels.items()
            for label, message in pairs
            if label.by == device
        }
        acked = self._ledger.acked | {ident for ident, message in own.items() if message.state in _ACCEPTED}
        written = {**self._ledger.written, **{ident: _label(message) for ident, message in own.items()}}
        lost, whole = self._lost(written, acked, own)
        unticked = [ident for ident in whole if own[ident].state not in _TICKED]
        self._note("its author never got a receipt", unticked, written)
        return Verdict(
            sent=len(acked), delivered=len(whole), lost=lost, doubled=self._doubled(), reordered=self._reordered(),
            unticked=len(unticked), failed=len(self._ledger.failed), notes=self._notes,
            to_group=sum(self._ledger.is_to_group(written[ident]) for ident in acked if ident in written),
        )  # fmt: skip

    def _lost(
        self, written: dict[str, MessageLabel], acked: set[str], own: dict[str, Message]
    ) -> tuple[int, list[str]]:  # fmt: skip
        lost, whole = 0, list[str]()
        shown = {device: {label for label, _ in pairs} for device, pairs in self._labels.items()}
        for ident, label in written.items():
            if ident in self._ledger.failed and ident not in acked:
                continue
            missing = [device for device in self._ledger.devices_for(label) if label not in shown[device]]
            if ident not in own or (ident not in acked and not missing):
                missing.append(label.by)
            if missing:
                lost += len(missing)
                self._note(f"not on devices {missing}", [ident], written)
            else:
                whole.append(ident)
        return lost, whole

    def _doubled(self) -> int:
        doubled = 0
        for device, shown in self._ledger.shown.items():
            twice = [ident for ident, count in shown.items() if count > 1]
            doubled += len(twice)
            self._note(f"two events on device {device}", twice, self._ledger.written)
            labels = Counter(label for label, _ in self._labels[device])
            again = [str(label) for label, count in labels.items() if count > 1]
            doubled += len(again)
            self._note(f"twice in the history of device {device}", again, {})
        return doubled

    def _reordered(self) -> int:
        reordered = 0
        stamps: dict[MessageLabel, int] = {}
        for device, pairs in self._labels.items():
            reordered += self._inversions(f"the history of device {device}", [label for label, _ in pairs])
            for label, message in pairs:
                if message.at and stamps.setdefault(label, message.at) != message.at:
                    reordered += 1
                    self._note(f"a different timestamp on device {device}", [message.id], {})
        for device, shown in self._ledger.shown.items():
            by_id = {message.id: label for label, message in self._labels[device]}
            labels = [by_id[ident] for ident in shown if ident in by_id]
            reordered += self._inversions(f"the events of device {device}", labels)
        return reordered

    def _inversions(self, where: str, labels: Iterable[MessageLabel]) -> int:
        """How many messages come after one that was written later."""
        inversions = 0
        last: dict[tuple[int, int, Lane], int] = {}
        for label in labels:
            stream = (label.by, label.to, label.lane)
            if label.n <= last.get(stream, 0):
                inversions += 1
                self._note(f"{where}: number {label.n} after {last[stream]}", [str(label)], {})
            last[stream] = max(label.n, last.get(stream, 0))
        return inversions

    def _note(self, what: str, idents: Iterable[str], labels: Mapping[str, MessageLabel]) -> None:
        for ident in idents:
            if len(self._notes) < NOTES:
                label = labels.get(ident)
                self._notes.append(f"{ident}{f' ({label.by} → {label.to}, {label.n})' if label else ''}: {what}")


_ACCEPTED = (Tick.SENT, Tick.DELIVERED, Tick.READ)
_TICKED = (Tick.DELIVERED, Tick.READ)


def _label(message: Message) -> MessageLabel:
    label = MessageLabel.parse(message.text)
    assert label is not None
    return label
