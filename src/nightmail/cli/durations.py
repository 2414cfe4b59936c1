"""Lengths of time, as people type and read them: 30s, 5m, 1h, 7d, off."""

from __future__ import annotations

import re

import click

from nightmail.client.errors import Misused
from nightmail.model.roster import TIMER_MS_MAX, TIMER_MS_MIN

UNITS = {"s": ("second", 1_000), "m": ("minute", 60_000), "h": ("hour", 3_600_000), "d": ("day", 86_400_000)}
OFF = "off"
_TYPED = re.compile(r"(\d{1,6})([smhd])", re.ASCII)


class Duration(click.ParamType[int]):
    """Milliseconds; 0 for off."""

    name = "duration"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return duration_ms(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def duration_ms(typed: str) -> int:
    """Raises ValueError, with a sentence."""
    if typed.strip().lower() == OFF:
        return 0
    found = _TYPED.fullmatch(typed.strip().lower())
    if found is None or not int(found[1]):
        raise ValueError(f"{typed!r} is no length of time: write 30s, 5m, 1h, 7d, or off.")
    return int(found[1]) * UNITS[found[2]][1]


def duration_words(ms: int) -> str:
    """In the largest unit that divides it."""
    for name, size in reversed(UNITS.values()):
        if ms >= size and not ms % size:
            count = ms // size
            return f"{count} {name}" + ("s" if count != 1 else "")
    return f"{ms / 1_000:g} seconds"


def timer_words(life_ms: int) -> str:
    """How messages of a conversation disappear, as the end of a sentence."""
    return f"disappear {duration_words(life_ms)} after they were read" if life_ms else "do not disappear"


def check_timer(life_ms: int) -> None:
    """Raises Misused."""
    if life_ms and not TIMER_MS_MIN <= life_ms <= TIMER_MS_MAX:
        raise Misused("a message disappears after 30 seconds to 7 days, or never")


def life_differs(said_ms: int, sealed_ms: int) -> str:
    """The server says another life of a message than its author sealed."""
    said, sealed = (f"after {duration_words(ms)}" if ms else "never" for ms in (said_ms, sealed_ms))
    return f"The author says that a message disappears {sealed}, the server says {said}. The shorter time counts."
