"""Safety numbers: what two people compare, and what each then says about the other's key.

Knows:   which key a number is about.
Touches: what the person said about a key, in a turn of the machine like everything else.
Never:   agrees to another key than the one whose number the person saw.
"""

from __future__ import annotations

from typing import NamedTuple

from nightmail.e2ee.errors import NotAsAnnounced
from nightmail.e2ee.safety import check_safety_number, safety_number

from .driver import Driver
from .errors import Misused, NumberDiffers
from .store import Store


class Trust(NamedTuple):
    verified: bool
    """Safety numbers were compared, and were alike."""
    held: bool
    """The key changed since: nothing is sealed for it until the person accepts it."""
    changed_at: int
    """When it changed last; 0: never."""


class Safety:
    def __init__(self, account: int, store: Store, driver: Driver) -> None:
        self._account, self._store, self._driver = account, store, driver

    def number(self, peer: int) -> str:
        return self._numbered_key(peer)[0]

    def trust(self, peer: int) -> Trust:
        row = self._store.trusted(peer)
        return Trust(row.verified, row.held, row.changed_at) if row else Trust(False, False, 0)

    async def agree(self, peer: int, number: str, *, verified: bool) -> None:
        """The person knows of the key with this number, or has compared it. Raises NumberDiffers, Misused."""
        current, key = self._numbered_key(peer)
        try:
            check_safety_number(current, number)
        except NotAsAnnounced:
            raise NumberDiffers from None
        with self._driver.working() as machine:
            if not machine.agree(peer, self._driver.clock(), key=key, verified=verified):
                raise NumberDiffers
        await self._driver.committed()

    def _numbered_key(self, peer: int) -> tuple[str, bytes]:
        """The safety number with somebody, and the key of theirs that it is about."""
        with self._driver.working() as machine:
            ours, theirs = machine.account_key(self._account), machine.account_key(peer)
        if not ours or not theirs:
            raise Misused("nobody's key is known here yet: write to them first")
        return safety_number(self._account, ours, peer, theirs), theirs
