"""Prompts: the devices of one node look into their mailboxes again, because news of an owner can be lost.

Knows:   which devices are connected here, by shard, and when each was last prompted.
Touches: the listeners of this node, as if the owner had told them.
Never:   prompts more than `prompts_max` devices in one tick: each of them asks its shard's owner.

An owner that is replaced takes with it what it has not told yet, and a link between nodes drops what it
carries. Prompting a device that has nothing waiting costs one question and changes nothing. A second question finds a
device whose removal was not told, or whose keys run low. It may have heard that before, and hears it with each prompt
until it has published more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from nightmail.engine.ports import Listener
from nightmail.model.ids import DEVICES_EVER, account_of, shard_of
from nightmail.model.rows import Account
from nightmail.model.words import Lane

NEVER = -(1 << 62)
AskForAccount: TypeAlias = Callable[[int, Callable[[Account | None], None]], None]


class PromptLimits(Struct, frozen=True):
    refresh_ms: int = 30_000
    """Every device is prompted this often."""
    prompts_max: int = 2_000
    """Devices that are prompted in one tick; the others follow in the next ones."""


class Prompts:
    def __init__(
        self, listener: Listener, account: AskForAccount, shards: int, pace: Callable[[], int], limits: PromptLimits
    ) -> None:
        self._listener, self._account, self._pace, self._limits = listener, account, pace, limits
        self._looking: set[int] = set()
        """Devices whose account was asked for."""
        self._shards: list[dict[int, int]] = [{} for _ in range(shards)]
        """Per shard: device → when it was last prompted, oldest first. NEVER comes before every time."""

    def note_connection(self, device: int, *, here: bool) -> None:
        prompted = self._of(device)
        prompted.pop(device, None)
        if here:
            # Its pump asks by itself when it begins.
            prompted[device] = self._pace()

    def owner_changed(self, shard: int) -> None:
        """Prompt the shard's devices with the next ticks: its last owner may have died before it told them."""
        self._shards[shard] = dict.fromkeys(self._shards[shard], NEVER)

    def tick(self) -> None:
        due = list(self._due())
        for device in due:
            self.note_connection(device, here=True)
            for lane in Lane:
                self._listener.grew(device, lane)
            self._listener.changed(device)
        if due:
            self._listener.settled()
        for device in due:
            if device & DEVICES_EVER and device not in self._looking:  # A group has no devices to remove.
                self._looking.add(device)
                self._account(account_of(device), partial(self._make_up, device))

    def _make_up(self, device: int, account: Account | None) -> None:
        """Tell what the account's row says of the device."""
        self._looking.discard(device)
        if account is None or device not in self._of(device):
            return
        if (found := account.devices.get(device)) is None:
            self._listener.dismissed(device)
        elif found.low:
            self._listener.low(device)
        else:
            return
        self._listener.settled()

    def _due(self) -> Iterator[int]:
        late, left = self._pace() - self._limits.refresh_ms, self._limits.prompts_max
        for prompted in self._shards:
            for device, at in prompted.items():
                if left == 0:
                    return
                if at > late:
                    break
                left -= 1
                yield device

    def _of(self, device: int) -> dict[int, int]:
        return self._shards[shard_of(account_of(device), len(self._shards))]
