"""A conversation as lines: days, messages with their ticks, notices, and where the unread messages begin.

Knows:   messages, notices, and the reader's time zone.
Never:   reads a clock: today is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, tzinfo
from typing import TypeAlias

from msgspec import Struct

from nightmail.client.messages import Message, Tick

from .files import FileLine


class Day(Struct, frozen=True):
    words: str


class UnreadMarker(Struct, frozen=True):
    """The messages below were unread when the conversation was opened."""


class Notice(Struct, frozen=True):
    """An event in the conversation, for example a changed security code."""

    at: int
    text: str
    grave: bool = False


class MessageLine(Struct, frozen=True):
    id: str
    own: bool
    text: str
    clock: str
    """Empty if the server has not accepted the message yet."""
    tick: Tick
    reason: str = ""
    quote: str = ""
    """The first line of the message that it answers."""
    turn: bool = False
    """True if the message before it has another author."""
    queued: bool = False
    """It waits at the server for somebody who is offline."""
    author: str = ""
    """In a group, who wrote it, if the message before it has another author; empty for own messages."""
    seen: str = ""
    """Of an own message in a group: how many have it, or have read it."""
    file: FileLine | None = None


class LaterLine(Struct, frozen=True):
    """An own message that is delivered later. It cannot be answered yet."""

    id: str
    text: str
    when: str


Line: TypeAlias = Day | UnreadMarker | Notice | MessageLine | LaterLine


class ShownMessage(Struct, frozen=True):
    """A message with its decoded text."""

    message: Message
    text: str
    reply_to: str = ""
    is_notice: bool = False
    """It is an event in the conversation, and nobody's words."""
    is_queued: bool = False
    author: str = ""
    """In a group, who wrote it; empty for own messages."""
    seen: str = ""
    file: FileLine | None = None


def lines_of(
    messages: Sequence[ShownMessage],
    notices: Sequence[Notice],
    today: date,
    zone: tzinfo | None = None,
    new_from: str = "",
) -> list[Line]:
    """The lines in display order: that of the messages, which is the same on every device."""
    texts = {each.message.id: each.text for each in messages}
    waiting = sorted(notices, key=lambda notice: notice.at)
    lines: list[Line] = []
    day: date | None = None
    before = ""
    """The author of the message before, if it is the line before."""
    for each in messages:
        message = each.message
        while waiting and message.at and waiting[0].at < message.at:
            lines.append(waiting.pop(0))
        then = _local(message.at, zone) if message.at else None
        if (on := then.date() if then else today) != day:
            day = on
            lines.append(Day(_day(on, today)))
        if message.id == new_from:
            lines.append(UnreadMarker())
        if each.is_notice:
            failed = message.state is Tick.FAILED
            lines.append(Notice(message.at, f"{each.text} This was not sent." if failed else each.text))
            continue
        quote = texts.get(each.reply_to, "an earlier message") if each.reply_to else ""
        clock = f"{then:%H:%M}" if then else ""
        follows = bool(lines) and isinstance(lines[-1], MessageLine)
        is_same = isinstance(lines[-1], MessageLine) and lines[-1].own == message.own and before == each.author
        author, before = "" if follows and is_same else each.author, each.author
        state, reason, turn = message.state, message.reason, follows and not is_same
        lines.append(MessageLine(
            message.id, message.own, each.text, clock, state, reason, _first_line(quote), turn, each.is_queued, author,
            each.seen, each.file,
        ))  # fmt: skip
    return [*lines, *waiting]


def _local(at_ms: int, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, zone) if zone else datetime.fromtimestamp(at_ms / 1000).astimezone()


def _day(day: date, today: date) -> str:
    match (today - day).days:
        case 0:
            return "Today"
        case 1:
            return "Yesterday"
        case days if 1 < days < 7:
            return f"{day:%A}"
        case _:
            return f"{day:%A}, {day.day} {day:%B %Y}"


def _first_line(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    return f"{first} …" if rest else first
