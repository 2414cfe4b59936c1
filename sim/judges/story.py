"""The story of a failure, for the person who has to understand it.

Knows:   which messages a broken promise speaks of, what became of each, and which faults fell into their time.
Never:   tells more than fits on two screens.
"""

from __future__ import annotations

import re
from itertools import islice

from nightmail.model.ids import account_of
from sim.world.world import World

from .history import History, Message

MESSAGES = 3
FATES = 16
"""Lines about one message: its first and its last ones, if there are more."""
FAULTS = 20
LAST_LINES = 24
"""Of everything that was told."""
BEFORE_MS = 1_000
"""A fault may matter that came a little before the message was written."""


def tell_story(world: World, history: History, broken: str) -> list[str]:
    """What became of the messages that `broken` names, with the faults of their time; then how it ended."""
    about = list(islice((m for m in history.messages.values() if m.id in broken or str(m.key) in broken), MESSAGES))
    lines: list[str] = []
    for message in about:
        lines += [f"what became of {message.id}:", *_fate(world, history, message)]
    since = min((history.fates[message.id][0].when for message in about), default=0) - BEFORE_MS
    faults = [
        world.line(fault.at_ms + world.start, fault.who, fault.what + _times(fault.times))
        for fault in world.faults
        if fault.at_ms + world.start >= since
    ]
    if faults:
        lines += ["faults in that time:", *_some(faults, FAULTS)]
    lines += ["the last that happened:", *list(world.story)[-LAST_LINES:]]
    return [_named(history, line) for line in lines]


def _fate(world: World, history: History, message: Message) -> list[str]:
    fates = list(history.fates[message.id])
    for device in sorted(message.addressed):
        # What it was told is gone without ever having been handed out may have been this one.
        if message.key not in history.of(device).arrived:
            fates += [gap for gap in history.gaps.get(device, ()) if gap.when >= fates[0].when]
    fates.sort(key=lambda fate: fate.when)
    return _some([world.line(f.when, history.name(f.device), f.what + _times(f.times)) for f in fates], FATES)


def _named(history: History, line: str) -> str:
    """Devices and accounts by their names, except in the ids of messages, which one looks for elsewhere."""
    for device, name in history.names.items():
        for number, word in ((device, name), (account_of(device), name.partition(".")[0])):
            line = re.sub(rf"\b{number:x}\b(?!:)", word, line)
    return line


def _times(times: int) -> str:
    return f" ({times} times)" if times > 1 else ""


def _some(lines: list[str], most: int) -> list[str]:
    if len(lines) <= most:
        return lines
    first = most // 2
    return [*lines[:first], f"          … {len(lines) - most} more", *lines[first - most :]]
