"""A device asks for the device lists of accounts; the session answers a few at a time.

Knows:   the questions of one connection that are not answered yet.
Touches: the desk, to read accounts; the list of items that goes out next; the budgets that lookups are taken from.
Never:   exists while nothing is asked: an idle connection owns none.
"""

from __future__ import annotations

from collections.abc import Callable

from nightmail.model.forms import ACCOUNT_MAX
from nightmail.model.rows import Account
from nightmail.wire.items import REF_MAX, Devices, FromServer, Look

from .ports import Shared
from .rates import Bucket

LISTS_AT_ONCE = 8
"""Device lists in one frame: each may be as long as a body."""
UNKNOWN_COST = 10
"""An account that does not exist costs as much as so many that do: otherwise handles could be found by trying."""


def is_well_formed(look: Look) -> bool:
    return 0 <= look.ref <= REF_MAX and 1 <= look.account <= ACCOUNT_MAX


class Lookups:
    __slots__ = ("_asked", "_budgets", "_found", "_out", "_paused", "_shared", "_waiting")

    def __init__(
        self, shared: Shared, budgets: tuple[Bucket, ...], out: list[FromServer], found: Callable[[], None]
    ) -> None:
        self._shared, self._budgets, self._out, self._found = shared, budgets, out, found
        self._paused = False
        """The budget is used up, and a timer runs."""
        self._waiting: list[Look] = []
        self._asked = 0
        """Accounts that the desk has not shown yet."""

    @property
    def can_ask(self) -> bool:
        """The next accounts are asked for when those before are answered."""
        return bool(self._waiting) and not self._asked and not self._paused

    @property
    def finished(self) -> bool:
        return not self._waiting and not self._asked

    def add(self, look: Look) -> bool:
        """False if more wait than a device may ask at once."""
        self._waiting.append(look)
        return len(self._waiting) <= self._shared.limits.items_burst

    def ask(self) -> None:
        """Ask for the next few accounts. Calls `found` after each answer, possibly before this returns."""
        now = self._shared.pace()
        count = min(LISTS_AT_ONCE, *(budget.level(now) for budget in self._budgets))
        if count <= 0:
            self._paused = True
            wait_ms = max(budget.wait_ms() for budget in self._budgets)
            self._shared.wheel.add(now + wait_ms, self._resume)
            return
        looks, self._waiting = self._waiting[:count], self._waiting[count:]
        self._spend(len(looks))
        self._asked = len(looks)
        for look in looks:
            self._ask(look)

    def _resume(self, _now: int) -> None:
        self._paused = False
        self._found()

    def _spend(self, amount: int) -> None:
        for budget in self._budgets:
            budget.spend(amount)

    def _ask(self, look: Look) -> None:
        account = look.account

        def found(row: Account | None) -> None:
            if row is None or row.closed:
                self._spend(UNKNOWN_COST - 1)
                self._out.append(Devices(look.ref, account, 0, {}, b""))
            else:
                self._out.append(Devices(look.ref, account, row.list_version, dict(row.listed), row.signed_list))
            self._asked -= 1
            self._found()

        self._shared.desk.account(account, found)
