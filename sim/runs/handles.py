"""Lookalikes and twins that register at the same time: never two accounts with one look, never one id with two handles.

Knows:   what a registration does, step by step: it reads, claims, registers, and may crash in between.
Touches: one loop in memory. Each step of each registration is a turn of its own, in an order drawn from the seed.

A request ends after seconds, and a handle is kept for days. So here, too, a registration that takes longer than a
handle is kept does not go on.

    python -m sim.runs.handles --seeds 200
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from random import Random

from nightmail.engine.loop import Loop
from nightmail.engine.memory import MemoryLog, MemoryRows
from nightmail.model.answers import Done, Joined, Said
from nightmail.model.effects import Answer, Effect
from nightmail.model.ids import SERVER, account_ids
from nightmail.model.limits import FoldLimits
from nightmail.model.records import AnyBody, Closed, HandleClaimed, Record, Registered
from nightmail.model.words import Platform

from . import seeded_suite

LOOKS = {
    "ada": 11, "\u0430da": 11, "ad\u0430": 11, "bob": 13, "b\u043eb": 13, "carol": 15, "car\u043el": 15,
    "user6988202": 17, "user21267976": 19,
}  # fmt: skip
"""Handle → the number of its look. The last two have one id."""
KEPT_MS = 1_000
TURNS = 400
UNDER_WAY = 6


class Broken(Exception):
    """A promise about handles did not hold."""


class Names:
    def __init__(self, seed: int) -> None:
        self._chance, self._now = Random(seed), 1_700_000_000_000
        self._said: list[Said] = []
        self._loop = Loop(MemoryLog(), MemoryRows(), lambda: self._now, self._heard)
        self._loop.recover()
        while not self._loop.adopt(2, FoldLimits(handle_kept_ms=KEPT_MS)):
            pass
        self._owners: dict[int, str] = {}
        """Account → the first handle that it had."""
        self._closed: dict[int, int] = {}
        """Account → when it was closed."""
        self._tokens = 0

    def _heard(self, effects: Sequence[Effect]) -> None:
        self._said += [effect.said for effect in effects if isinstance(effect, Answer)]

    def _do(self, body: AnyBody) -> Said:
        self._said.clear()
        self._loop.submit(Record(SERVER, 1, body))
        self._loop.flush()
        return self._said[0]

    def run(self) -> None:
        under_way: list[tuple[int, Generator[None]]] = []
        for _ in range(TURNS):
            self._now += self._chance.choice((1, 1, 10, KEPT_MS // 4))
            if self._chance.random() < 0.1:
                self._close()
            while len(under_way) < UNDER_WAY:
                under_way.append((self._now, self._register(self._chance.choice(list(LOOKS)))))
            began, steps = one = self._chance.choice(under_way)
            # A crash: the rest of this registration never happens.
            is_over = self._chance.random() < 0.05 or self._now - began >= KEPT_MS
            if is_over or next(steps, self) is self:
                under_way.remove(one)
            self._check()

    def _register(self, handle: str) -> Generator[None]:
        rows, self._tokens = self._loop.state.accounts.rows, self._tokens + 1
        token, look = self._tokens.to_bytes(32, "big"), LOOKS[handle]
        for account in account_ids(handle):
            row = rows.get(account)
            if row is not None and row.handle != handle:
                continue
            index, is_open = (row.next_index, bool(row.devices) and not row.closed) if row else (1, False)
            yield
            if not is_open and self._do(HandleClaimed(look, handle, account, index)) != Done():
                return
            yield
            said = self._do(Registered(account, handle, 7, token, "phone", Platform.CLI, claim=look))
            if isinstance(said, Joined):
                self._joined(account, handle)
            if (row := rows.get(account)) is None or row.handle == handle:
                return  # Otherwise another handle took this id meanwhile: the next probe.

    def _joined(self, account: int, handle: str) -> None:
        if self._owners.setdefault(account, handle) != handle:
            raise Broken(f"account {account:x} of {self._owners[account]!r} was given to {handle!r}")
        closed = self._closed.pop(account, None)
        if closed is not None and self._now < closed + KEPT_MS:
            raise Broken(f"{handle!r} was given away {self._now - closed} ms after it was closed")

    def _close(self) -> None:
        if open_ones := [account for account in self._owners if account not in self._closed]:
            account = self._chance.choice(open_ones)
            self._do(Closed(account))
            self._closed[account] = self._now

    def _check(self) -> None:
        """Also a handle that is kept has its look to itself."""
        held: dict[int, str] = {}
        for account, handle in self._owners.items():
            if self._now < self._closed.get(account, self._now) + KEPT_MS:
                other = held.setdefault(LOOKS[handle], handle)
                if other != handle:
                    raise Broken(f"{other!r} and {handle!r} look alike, and both are registered")


def run(seed: int) -> None:
    Names(seed).run()


if __name__ == "__main__":
    seeded_suite.main("handles", __doc__, run)
