"""How often an account may be said to be typing in one conversation, over all its connections."""

from __future__ import annotations


class TypingLimits:
    """Time is an argument, in ms."""

    def __init__(self, every_ms: int) -> None:
        self._every_ms = every_ms
        self._said: dict[tuple[int, int], int] = {}
        """(account, conversation) → when it was last passed on; oldest first."""

    def __len__(self) -> int:
        return len(self._said)

    def take(self, account: int, to: int, now: int) -> bool:
        """Whether it may be passed on."""
        while self._said:
            oldest, at = next(iter(self._said.items()))
            if now - at < self._every_ms:
                break
            del self._said[oldest]
        if (account, to) in self._said:
            return False
        self._said[account, to] = now
        return True
