"""Presence and typing, for an app: who is online, who was last seen when, who is typing, and who may know it of us.

Knows:   which calls wait for an answer of the server.
Never:   stores anything: all of it may be out of date a minute later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from nightmail.client.link.driver import Driver
from nightmail.client.link.presence import PEEKED
from nightmail.model.words import Audience, PresenceState

from .errors import PresenceRefused
from .events import Sight
from .messages import Message, Tick
from .waiters import Waiters

T = TypeVar("T")


class People:
    """The people that this account may see."""

    def __init__(self, driver: Driver, waiters: Waiters) -> None:
        self._driver, self._waiters = driver, waiters

    async def sights(self, accounts: Sequence[int]) -> list[Sight]:
        """In the order of the accounts. Waits for a connection. Raises PresenceRefused."""
        found: dict[int, Sight] = {}
        wanted = list(dict.fromkeys(accounts))
        for first in range(0, len(wanted), PEEKED):
            answer: asyncio.Future[dict[int, Sight]] = self._waiters.answer()
            with self._driver.working() as machine:
                machine.presence(self._driver.clock()).peek(
                    wanted[first : first + PEEKED], lambda said, answer=answer: _settle(answer, said),
                    lambda answer=answer: not answer.done(),
                )  # fmt: skip
            found |= await answer
        return [found[account] for account in accounts]

    async def show_to(self, audience: Audience | None) -> Audience:
        """Who may see this account's presence from now on; None only asks. Durable at the server when it returns."""
        answer: asyncio.Future[Audience] = self._waiters.answer()
        with self._driver.working() as machine:
            machine.presence(self._driver.clock()).show_to(
                audience, lambda said: _settle(answer, said), lambda: not answer.done()
            )
        return await answer

    def set_foreground(self, on: bool) -> None:
        with self._driver.working() as machine:
            machine.presence(self._driver.clock()).set_foreground(on)

    def watch(self, accounts: Sequence[int]) -> None:
        with self._driver.working() as machine:
            machine.presence(self._driver.clock()).watch(accounts)

    def typing(self, to: int) -> None:
        with self._driver.working() as machine:
            machine.presence(self._driver.clock()).typing(to)

    def sight(self, account: int) -> Sight | None:
        return self._driver.presence.sight(account)

    def is_typing(self, account: int) -> bool:
        return self._driver.presence.is_typing(account)

    def typing_in(self, group: int) -> list[int]:
        return self._driver.presence.typing_in(group)

    def is_queued(self, message: Message) -> bool:
        """The server has the message, and its recipient may be seen to be offline: it waits for them."""
        sight = self.sight(message.peer) if message.own and message.state is Tick.SENT else None
        return sight is not None and sight.state is PresenceState.OFFLINE


def _settle(answer: asyncio.Future[T], said: T | PresenceRefused) -> None:
    if answer.done():
        return  # the caller does not wait any more
    if isinstance(said, PresenceRefused):
        answer.set_exception(said)
    else:
        answer.set_result(said)
