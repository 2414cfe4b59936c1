"""The fold with devices that sleep: what a waker would hear, and what it would say."""

from __future__ import annotations

from typing import Any

from nightmail.core.pushes.reading import needs_push, push_seen
from nightmail.model.answers import Said
from nightmail.model.effects import Wake
from nightmail.model.ids import SERVER, account_of
from nightmail.model.push_rows import PushSeen, PushTarget
from nightmail.model.records import Pushed, PushOutcome, PushSet
from nightmail.model.rows import Kept
from nightmail.model.words import PushPlatform

from .world import World

TOKEN = "https://push.example/bob"


class PushWorld(World):
    def set_token(self, device: int, token: str = TOKEN) -> Said | None:
        return self.do(device, PushSet(PushPlatform.UNIFIEDPUSH, token))

    def woken(self) -> list[int]:
        """The devices that the last record, or the time that passed, asks to wake."""
        return [effect.device for effect in self.effects if isinstance(effect, Wake)]

    def seen(self, device: int) -> PushSeen | None:
        """What a push to the device would need."""
        node = self.of(account_of(device))
        node.load(lambda state: needs_push(state, device))
        return push_seen(node.state, device)

    def push(self, device: int) -> PushSeen:
        seen = self.seen(device)
        assert seen is not None
        return seen

    def end(self, seen: PushSeen, outcome: PushOutcome, error: str = "", retry_after_ms: int = 0) -> Said | None:
        """The outlet says what became of a push."""
        return self.do(
            SERVER, Pushed(seen.device, seen.since, seen.woke_at, seen.attempt, outcome, error, retry_after_ms)
        )

    def target(self, device: int) -> PushTarget | None:
        found: Any = self.of(account_of(device)).row(Kept.PUSH, device)
        return found
