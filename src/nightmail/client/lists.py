"""Whom to seal for: device lists of others and of this account, asked for once and remembered.

Knows:   which lists are out of date, and who waits for one. Whether one is to be believed, the sealer knows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from nightmail.wire.items import Devices

from .errors import Misbehaved
from .hub import Hub
from .sealer import Then
from .store import DeviceList

ThenList: TypeAlias = Callable[[DeviceList], None]


class Lists:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.believe: Callable[[Devices], DeviceList | None] = lambda _: None
        """The sealer's judgement."""
        self._known: dict[int, DeviceList] = {}
        self._outdated: set[int] = set()
        """What the store still has, but the server no longer accepts."""
        self._asked: dict[int, int] = {}
        """Account → when it was asked for over this connection."""
        self._forgotten = 0
        """Counts what became out of date: an answer to a question from before may be, too."""
        self._forgot: dict[int, int] = {}
        self._waiting: dict[int, dict[object, tuple[ThenList, Then]]] = {}

    def of(self, account: int) -> DeviceList | None:
        """The list to seal by; None: ask for it with `want`. Version 0: there is no such account."""
        if known := self._known.get(account):
            return known
        if account in self._outdated or (stored := self._hub.store.device_list(account)) is None:
            return None
        self._known[account] = stored
        return stored

    def want(self, account: int, who: object, then: ThenList, otherwise: Then) -> None:
        """Ask for a list; `then` is called with it, `otherwise` if it is refused; once for each `who`.

        It is handed over because others are called before, and may have found it out of date by then.
        """
        hub = self._hub
        self._waiting.setdefault(account, {})[who] = then, otherwise
        asked = self._asked.get(account)
        if hub.online and (asked is None or hub.now - asked >= hub.limits.answer_ms):
            self._ask(account)

    def _ask(self, account: int) -> None:
        self._asked[account] = self._hub.now
        self._hub.look(account, partial(self._found, account, self._forgotten))

    def forget(self, account: int) -> None:
        """It is out of date: ask again before the next use."""
        self._known.pop(account, None)
        self._outdated.add(account)
        self._asked.pop(account, None)
        self._forgotten += 1
        self._forgot[account] = self._forgotten
        if self._hub.online and account in self._waiting:
            # Whoever waits must not wait for an answer from before, which does not count.
            self._ask(account)

    def outdate(self, account: int, version: int) -> None:
        """There is a list of this version: forget an older one."""
        if (known := self.of(account)) is not None and known.version < version:
            self.forget(account)

    def lost(self) -> None:
        self._asked.clear()
        self._waiting.clear()

    def deadline(self) -> int | None:
        """When to ask again for what somebody waits for."""
        waiting = [asked for account, asked in self._asked.items() if account in self._waiting]
        return min(waiting) + self._hub.limits.answer_ms if waiting else None

    def tick(self) -> None:
        hub = self._hub
        for account in list(self._waiting):
            asked = self._asked.get(account)
            if hub.online and asked is not None and hub.now - asked >= hub.limits.answer_ms:
                self._ask(account)

    def _found(self, account: int, asked: int, item: Devices) -> None:
        if item.account != account:
            raise Misbehaved("a device list of somebody else")
        if asked < self._forgot.get(account, 0):
            if account in self._waiting and account not in self._asked:
                self._ask(account)
            return
        # A slow server may have been asked twice, and then answers twice.
        self._asked.pop(account, None)
        found = self.believe(item)
        if found is None:
            for _, otherwise in self._waiting.pop(account, {}).values():
                otherwise()
            return
        self._known[account] = found
        if item.version:
            self._outdated.discard(account)
            self._hub.store.put_device_list(found)
        for then, _ in self._waiting.pop(account, {}).values():
            then(found)
        if not item.version:
            self.forget(account)  # They may join at any time: never remembered.
