"""Whom to seal for: the device lists of other accounts and of this one, asked for once and cached.

Knows:   which lists are out of date, and which parts wait for one. Whether a list is believed, the sealer knows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from nightmail.client.errors import Misbehaved
from nightmail.client.machine.context import Context
from nightmail.client.store.rows import DeviceList
from nightmail.wire.items import Devices

from .sealer import Then

ThenList: TypeAlias = Callable[[DeviceList], None]


class DeviceLists:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[int, DeviceList] = {}
        self._outdated: set[int] = set()
        """Accounts whose list is still in the store, but no longer accepted by the server."""
        self._asked: dict[int, int] = {}
        """Account → when it was asked for over this connection."""
        self._forgotten = 0
        """Counts calls of `forget`: an answer to a question from before such a call may be out of date, too."""
        self._forgot: dict[int, int] = {}
        self._found_at: dict[int, int] = {}
        """Account → when its list was found over this connection."""
        self._waiting: dict[int, dict[object, tuple[ThenList, Then]]] = {}
        self.changes = 0
        """Counts lists that came or went out of date."""

    def of(self, account: int) -> DeviceList | None:
        """The list to seal by; None: ask for it with `want`. Version 0 means that there is no such account."""
        if known := self._known.get(account):
            return known
        if account in self._outdated or (stored := self._context.store.device_list(account)) is None:
            return None
        self._known[account] = stored
        return stored

    def found_at(self, account: int) -> int:
        """When the present list came over this connection; 0: it did not."""
        return self._found_at.get(account, 0)

    def want(self, account: int, who: object, then: ThenList, otherwise: Then) -> None:
        """Ask for a list; `then` is called with it, `otherwise` if it is refused; once for each `who`.

        `then` gets the list as an argument, because a part that was called before may have called `forget`.
        """
        context = self._context
        self._waiting.setdefault(account, {})[who] = then, otherwise
        asked = self._asked.get(account)
        if context.online and (asked is None or context.now - asked >= context.limits.answer_ms):
            self._ask(account)

    def _ask(self, account: int) -> None:
        self._asked[account] = self._context.now
        self._context.look(account, partial(self._found, account, self._forgotten))

    def forget(self, account: int) -> None:
        """The list is out of date: ask again before the next use."""
        self.changes += 1
        self._known.pop(account, None)
        self._found_at.pop(account, None)
        self._outdated.add(account)
        self._asked.pop(account, None)
        self._forgotten += 1
        self._forgot[account] = self._forgotten
        if self._context.online and account in self._waiting:
            # An answer to the earlier question will not count, so ask again for those who wait.
            self._ask(account)

    def outdate(self, account: int, version: int) -> None:
        """The account has a list of this version: forget an older one."""
        if (known := self.of(account)) is not None and known.version < version:
            self.forget(account)

    def lost(self) -> None:
        self._asked.clear()
        self._found_at.clear()
        self._waiting.clear()

    def deadline(self) -> int | None:
        """When to ask again for a list that a part waits for."""
        waiting = [asked for account, asked in self._asked.items() if account in self._waiting]
        return min(waiting) + self._context.limits.answer_ms if waiting else None

    def tick(self) -> None:
        context = self._context
        for account in list(self._waiting):
            asked = self._asked.get(account)
            if context.online and asked is not None and context.now - asked >= context.limits.answer_ms:
                self._ask(account)

    def _found(self, account: int, asked: int, item: Devices) -> None:
        if item.account != account:
            raise Misbehaved("a device list of somebody else")
        if asked < self._forgot.get(account, 0):
            if account in self._waiting and account not in self._asked:
                self._ask(account)
            return
        # A slow server may have been asked twice; it then answers twice.
        self._asked.pop(account, None)
        found = self._context.signals.believe(item)
        if found is None:
            for _, otherwise in self._waiting.pop(account, {}).values():
                otherwise()
            return
        self.changes += 1
        self._known[account] = found
        self._found_at[account] = self._context.now
        if item.version:
            self._outdated.discard(account)
            self._context.store.put_device_list(found)
        for then, _ in self._waiting.pop(account, {}).values():
            then(found)
        if not item.version:
            self.forget(account)  # the account may register at any time, so this is not cached
