"""Presence and typing, for an app: the methods of `Client` that are about them. Nothing of it is stored."""

from __future__ import annotations

from abc import abstractmethod

from nightmail.client.link.driver import Driver
from nightmail.model.words import Audience

from .events import Sight
from .messages import Message
from .presence import People
from .waiters import Waiters


class PresenceClient:
    """A part of `Client`."""

    _waiters: Waiters

    @abstractmethod
    def _open_driver(self) -> Driver: ...

    @abstractmethod
    def _account(self, peer: str | int) -> int: ...

    async def presence(self, *people: str | int) -> list[Sight]:
        """Whether these people are online, or when they were last seen; in this order. An answer is used for 30 s.

        Waits until the client is connected. Raises PresenceRefused if the server was asked too often.
        """
        return await self._presence.sights([self._account(person) for person in people])

    def watch(self, *people: str | int) -> None:
        """Hear of the presence of these people (`PresenceChanged`), and of no others. Meant for open conversations."""
        self._presence.watch([self._account(person) for person in people])

    def sight(self, person: str | int) -> Sight | None:
        """What is known of a person's presence now; None: nothing, as of somebody who is not watched."""
        return self._presence.sight(self._account(person))

    def is_queued(self, message: Message) -> bool:
        """Whether an own message waits at the server for somebody who may be seen to be offline."""
        return self._presence.is_queued(message)

    def set_foreground(self, on: bool) -> None:
        """Say whether a person is looking at the app. Only then does this device count as online."""
        self._presence.set_foreground(on)

    def typing(self, to: str | int) -> None:
        """The person is writing to somebody. Call it at each key: it is said every 3 s at most, and never later."""
        self._presence.typing(self._account(to))

    def is_typing(self, person: str | int) -> bool:
        """Whether a person was writing to this account in the last 5 s."""
        return self._presence.is_typing(self._account(person))

    def typing_in(self, group: int) -> list[int]:
        """The accounts that were writing in this group in the last 5 s."""
        return self._presence.typing_in(group)

    async def show_presence_to(self, audience: Audience | None = None) -> Audience:
        """Choose who may see when this account is online and was last seen; without an argument only tell who may.

        Who shows it to nobody sees nobody's. Raises PresenceRefused.
        """
        return await self._presence.show_to(audience)

    @property
    def _presence(self) -> People:
        return People(self._open_driver(), self._waiters)
