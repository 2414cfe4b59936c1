"""Several listeners at one desk.

Knows:   the order in which they are told.
Never:   stands between the desk and a single listener.
"""

from __future__ import annotations

from nightmail.model.words import Lane

from .ports import Listener


def together(*listeners: Listener) -> Listener:
    """One listener that tells all of them, each batch in the order given. A single one is returned as it is."""
    return listeners[0] if len(listeners) == 1 else _All(listeners)


class _All:
    def __init__(self, listeners: tuple[Listener, ...]) -> None:
        self._listeners = listeners

    def grew(self, device: int, lane: Lane) -> None:
        for listener in self._listeners:
            listener.grew(device, lane)

    def changed(self, device: int) -> None:
        for listener in self._listeners:
            listener.changed(device)

    def dismissed(self, device: int) -> None:
        for listener in self._listeners:
            listener.dismissed(device)

    def low(self, device: int) -> None:
        for listener in self._listeners:
            listener.low(device)

    def settled(self) -> None:
        for listener in self._listeners:
            listener.settled()
