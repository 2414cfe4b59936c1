"""Which mailboxes and accounts hold most: found among those that get mail, and followed from then on.

Knows:   the deepest few that it has seen.
Touches: the state's notes, accounts and mailboxes, to read them, between two records.
Never:   looks at more than a few per tick, or loads a row.

A mailbox that is not in memory has not changed since it was, so what was seen of it still holds. Only finding is by
sample: of many messages in one tick a few are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nightmail.core.state import ShardState
from nightmail.model.ids import account_of, log_of
from nightmail.model.notes import Note, Placed
from nightmail.model.rows import Mailbox

LOOKED_AT = 8
"""Messages of one tick."""
FOLLOWED = 64
"""Accounts, and devices, that are remembered: the deepest."""
NEARLY_FULL = 0.8


class Depths:
    def __init__(self) -> None:
        self._accounts: dict[int, int] = {}
        """Account → entries that wait for all its devices together."""
        self._devices: dict[int, tuple[int, float]] = {}
        """Device → entries that wait, and what part of its mailbox is taken."""

    @property
    def account(self) -> int:
        """Waiting for the deepest account."""
        return max(self._accounts.values(), default=0)

    @property
    def mailbox(self) -> int:
        """Waiting in the deepest mailbox."""
        return max((waiting for waiting, _ in self._devices.values()), default=0)

    @property
    def fill(self) -> float:
        """What part of the fullest mailbox is taken, by entries or bytes."""
        return max((part for _, part in self._devices.values()), default=0.0)

    @property
    def nearly_full(self) -> int:
        return sum(part >= NEARLY_FULL for _, part in self._devices.values())

    def look(self, state: ShardState, fresh: Sequence[Note]) -> None:
        """Look at some of those who just got mail."""
        for note in fresh[:: max(1, len(fresh) // LOOKED_AT)]:
            if type(note) is Placed and note.places:
                device = note.places[0][0]
                if device != log_of(note.to):
                    self._see(state, device)

    def follow(self, state: ShardState) -> None:
        """Now and then: look again at those that are remembered, and forget all but the deepest."""
        for account in list(self._accounts):
            self._see_account(state, account)
        for device in list(self._devices):
            self._see_device(state, device)
        self._accounts = dict(sorted(self._accounts.items(), key=lambda item: -item[1])[:FOLLOWED])
        self._devices = dict(sorted(self._devices.items(), key=lambda item: -item[1][1])[:FOLLOWED])

    def forget(self, is_gone: Callable[[int], bool]) -> None:
        """Accounts that another node sees now."""
        self._accounts = {account: depth for account, depth in self._accounts.items() if not is_gone(account)}
        self._devices = {device: seen for device, seen in self._devices.items() if not is_gone(account_of(device))}

    def _see(self, state: ShardState, device: int) -> None:
        if len(self._devices) < 2 * FOLLOWED or device in self._devices:
            self._see_device(state, device)
            self._see_account(state, account_of(device))

    def _see_device(self, state: ShardState, device: int) -> None:
        if device not in state.mailboxes.rows:
            return
        box, limits = state.mailboxes.rows[device], state.shard.limits
        if box is None or not box.waiting:
            self._devices.pop(device, None)
        else:
            part = max(box.waiting / limits.mailbox_entries, box.bytes / limits.mailbox_bytes)
            self._devices[device] = box.waiting, part

    def _see_account(self, state: ShardState, number: int) -> None:
        """Its devices get their mail together, so their mailboxes are in memory together."""
        account = state.accounts.rows.get(number)
        if account is None:
            if number in state.accounts.rows:
                self._accounts.pop(number, None)
            return
        boxes: list[Mailbox | None] = [state.mailboxes.rows.get(device) for device in account.devices]
        if any(box is None for box in boxes):
            return
        if waiting := sum(box.waiting for box in boxes if box):
            self._accounts[number] = waiting
        else:
            self._accounts.pop(number, None)
