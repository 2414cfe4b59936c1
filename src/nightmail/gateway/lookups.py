"""A device asks for the device lists of accounts; the session answers a few at a time.

Knows:   the questions of one connection that are not answered yet.
Touches: the desk, to read accounts; the list of items that goes out next.
Never:   exists while nothing is asked: an idle connection owns none.
"""

from __future__ import annotations

from collections.abc import Callable

from nightmail.engine.ports import Desk
from nightmail.model.forms import ACCOUNT_MAX
from nightmail.model.rows import Account
from nightmail.wire.items import REF_MAX, Devices, FromServer, Look

LISTS_AT_ONCE = 8
"""Device lists in one frame: each may be as long as a body."""


def is_well_formed(look: Look) -> bool:
    return 0 <= look.ref <= REF_MAX and 1 <= look.account <= ACCOUNT_MAX


class Lookups:
    __slots__ = ("_asked", "_desk", "_found", "_out", "_waiting")

    def __init__(self, desk: Desk, out: list[FromServer], found: Callable[[], None]) -> None:
        self._desk, self._out, self._found = desk, out, found
        self._waiting: list[Look] = []
        self._asked = 0
        """Accounts that the desk has not shown yet."""

    @property
    def can_ask(self) -> bool:
        """The next accounts are asked for when those before are answered."""
        return bool(self._waiting) and not self._asked

    @property
    def finished(self) -> bool:
        return not self._waiting and not self._asked

    def add(self, look: Look) -> None:
        self._waiting.append(look)

    def ask(self) -> None:
        """Ask for the next few accounts. Calls `found` after each answer, possibly before this returns."""
        looks, self._waiting = self._waiting[:LISTS_AT_ONCE], self._waiting[LISTS_AT_ONCE:]
        self._asked = len(looks)
        for look in looks:
            self._ask(look)

    def _ask(self, look: Look) -> None:
        account = look.account

        def found(row: Account | None) -> None:
            if row is None or row.closed:
                self._out.append(Devices(look.ref, account, 0, {}, b""))
            else:
                self._out.append(Devices(look.ref, account, row.list_version, dict(row.listed), row.signed_list))
            self._asked -= 1
            self._found()

        self._desk.account(account, found)
