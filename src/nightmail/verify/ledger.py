"""What was written, acknowledged and shown; and the verdict.

Knows:   every message by the label in its text: who wrote it, in which lane, as which of theirs.
Never:   judges by anything but what clients said and what their profiles hold at the end.
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
"""Examples of what broke that are kept."""


class MessageLabel(NamedTuple):
    """Which message this is, whatever its id."""

    run: str
    by: int
    """The device that wrote it."""
    to: int
    """The person it is for."""
    lane: Lane
    n: int
    """The how-many-th of this device, person and lane."""

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
    """Of these, shown on every device they were for."""
    lost: int
    """Missing on a device they were for, counted per device; or never sent although everything healed."""
    doubled: int
    reordered: int
    unticked: int
    """Delivered, and their author was never told."""
    failed: int
    """Given up with a reason, which is no loss."""
    notes: list[str]

    @property
    def broken(self) -> int:
        return self.lost + self.doubled + self.reordered + self.unticked


class Ledger:
    """Filled while it happens, by handlers of every client."""

    def __init__(self, run: str, addressed: Mapping[int, Sequence[int]]) -> None:
        """`addressed`: person → their devices."""
        self._run, self._addressed = run, addressed
        self._owner = {device: person for person, devices in addressed.items() for device in devices}
        self._next: Counter[tuple[int, int, Lane]] = Counter()
        self.written: dict[str, MessageLabel] = {}
        """Message id → what it is; whatever a client took into its outbox."""
        self.acked: set[str] = set()
        self.ticked: set[tuple[int, str]] = set()
        """(device, message): what each device was told of. Only its author's counts."""
        self.failed: dict[str, str] = {}
        self.told: dict[int, Counter[str]] = {device: Counter() for device in self._owner}
        """Device → ids in the order in which it was first told of them, and how often it was."""
        self.missing: set[tuple[int, MessageLabel]] = set()
        """(device, message) that was not shown yet."""
        self.moved = asyncio.Event()
        """Something happened."""

    # --- while it happens -----------------------------------------------------------------------

    def next_label(self, by: int, to: int, lane: Lane) -> MessageLabel:
        self._next[by, to, lane] += 1
        return MessageLabel(self._run, by, to, lane, self._next[by, to, lane])

    def wrote(self, message_id: str, label: MessageLabel) -> None:
        self.written[message_id] = label
        # Others may have been told before whoever wrote it was.
        self.missing.update(
            (device, label) for device in self.devices_for(label) if message_id not in self.told[device]
        )  # fmt: skip
        self.moved.set()

    def was_sent(self, message_id: str) -> None:
        self.acked.add(message_id)
        self.moved.set()

    def was_delivered(self, device: int, message_id: str) -> None:
        self.ticked.add((device, message_id))
        self.moved.set()

    def has_failed(self, message_id: str, reason: str) -> None:
        self.failed[message_id] = reason
        self.moved.set()

    def was_shown(self, device: int, message: Message) -> None:
        self.told[device][message.id] += 1
        if label := MessageLabel.parse(message.text):
            self.missing.discard((device, label))
        self.moved.set()

    def devices_for(self, label: MessageLabel) -> list[int]:
        """Everyone who must show it: the recipient's devices, and the author's other ones."""
        own = self._addressed[self._owner[label.by]]
        return [device for device in (*self._addressed[label.to], *own) if device != label.by]

    @property
    def done(self) -> bool:
        """Everything is shown, and its authors know."""
        if self.missing:
            return False
        return all((label.by, ident) in self.ticked or ident in self.failed for ident, label in self.written.items())

    # --- the verdict ----------------------------------------------------------------------------

    def judge(self, histories: Mapping[int, Sequence[Message]]) -> Verdict:
        """`histories`: what each device's profile holds at the end, in the order of display."""
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
        acked = self._ledger.acked | {ident for ident, message in own.items() if message.state in _GOT_THERE}
        written = {**self._ledger.written, **{ident: _label(message) for ident, message in own.items()}}
        lost, whole = self._lost(written, acked, own)
        unticked = [ident for ident in whole if own[ident].state not in _TICKED]
        self._note("its author was never told", unticked, written)
        return Verdict(
            sent=len(acked), delivered=len(whole), lost=lost, doubled=self._doubled(), reordered=self._reordered(),
            unticked=len(unticked), failed=len(self._ledger.failed), notes=self._notes,
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
        for device, told in self._ledger.told.items():
            twice = [ident for ident, count in told.items() if count > 1]
            doubled += len(twice)
            self._note(f"told twice on device {device}", twice, self._ledger.written)
            labels = Counter(label for label, _ in self._labels[device])
            again = [str(label) for label, count in labels.items() if count > 1]
            doubled += len(again)
            self._note(f"twice in the history of device {device}", again, {})
        return doubled

    def _reordered(self) -> int:
        reordered = 0
        stamps: dict[MessageLabel, int] = {}
        for device, pairs in self._labels.items():
            reordered += self._descents(f"the history of device {device}", [label for label, _ in pairs])
            for label, message in pairs:
                if message.at and stamps.setdefault(label, message.at) != message.at:
                    reordered += 1
                    self._note(f"another stamp on device {device}", [message.id], {})
        for device, told in self._ledger.told.items():
            by_id = {message.id: label for label, message in self._labels[device]}
            labels = [by_id[ident] for ident in told if ident in by_id]
            reordered += self._descents(f"what device {device} was told", labels)
        return reordered

    def _descents(self, where: str, labels: Iterable[MessageLabel]) -> int:
        """How often something stands behind what was written after it."""
        descents = 0
        last: dict[tuple[int, int, Lane], int] = {}
        for label in labels:
            stream = (label.by, label.to, label.lane)
            if label.n <= last.get(stream, 0):
                descents += 1
                self._note(f"{where}: number {label.n} after {last[stream]}", [str(label)], {})
            last[stream] = max(label.n, last.get(stream, 0))
        return descents

    def _note(self, what: str, idents: Iterable[str], labels: Mapping[str, MessageLabel]) -> None:
        for ident in idents:
            if len(self._notes) < NOTES:
                label = labels.get(ident)
                self._notes.append(f"{ident}{f' ({label.by} → {label.to}, {label.n})' if label else ''}: {what}")


_GOT_THERE = (Tick.SENT, Tick.DELIVERED, Tick.READ)
_TICKED = (Tick.DELIVERED, Tick.READ)


def _label(message: Message) -> MessageLabel:
    label = MessageLabel.parse(message.text)
    assert label is not None
    return label
