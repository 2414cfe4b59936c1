"""Safety numbers: two people compare them, and each of them then accepts or verifies the other's key.

Knows:   which key a number belongs to.
Touches: what the person said about a key, in a turn of the machine like everything else.
Never:   accepts a key other than the one whose number the person saw.
"""

from __future__ import annotations

from typing import NamedTuple

from nightmail.client.link.driver import Driver
from nightmail.client.store.port import Store
from nightmail.e2ee.errors import NotAsAnnounced
from nightmail.e2ee.safety import check_safety_number, safety_number

from .errors import Misused, NumberDiffers


class Trust(NamedTuple):
    """What the person said about a key."""

    verified: bool
    """The person compared safety numbers, and they were the same."""
    held: bool
    """The key changed after that: nothing is sealed for it until the person accepts it."""
    changed_at: int
    """When it changed last; 0: never."""


class SafetyNumbers:
    def __init__(self, account: int, store: Store, driver: Driver) -> None:
        self._account, self._store, self._driver = account, store, driver

    def number(self, peer: int) -> str:
        return self._numbered_key(peer)[0]

    def trust(self, peer: int) -> Trust:
        row = self._store.trusted(peer)
        return Trust(row.verified, row.held, row.changed_at) if row else Trust(False, False, 0)

    async def agree(self, peer: int, number: str, *, verified: bool) -> None:
        """The person accepts the key with this number, or has compared it. Raises NumberDiffers, Misused."""
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
        """The safety number with a peer, and the peer's key that it belongs to."""
        with self._driver.working() as machine:
            ours, theirs = machine.account_key(self._account), machine.account_key(peer)
        if not ours or not theirs:
            raise Misused("their key is not known here yet: send them a message first")
        return safety_number(self._account, ours, peer, theirs), theirs
