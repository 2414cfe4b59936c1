"""Draws the lines of a conversation, and the rows of the list, at a given width.

Knows:   ticks and their colours; own messages are on the right.
Never:   prints control characters of other people's text, or treats it as markup.
"""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from nightmail.cli.errors import REASONS
from nightmail.cli.output import TICKS, plain, plain_body
from nightmail.client.messages import Tick

from .files import drawn
from .lines import Day, LaterLine, Line, MessageLine, Notice, UnreadMarker
from .model import ConversationSummary

_STYLES = {Tick.READ: "bold #4fb3ff", Tick.FAILED: "bold light_coral"}
_OWN, _THEIRS = "grey93 on #17405c", "grey93 on #2a2f36"
_SHARE = 0.78
"""The largest share of the width that one message takes."""


def draw(line: Line, width: int) -> RenderableType:
    match line:
        case Day():
            return Rule(Text(line.words, style="dim"), style="dim", characters="─")
        case UnreadMarker():
            return Rule(Text("new", style="bold cyan"), style="cyan", characters="─")
        case Notice():
            style = "bold yellow" if line.grave else "italic dim"
            return Text(plain(line.text), style=style, justify="center")
        case MessageLine():
            return _bubble(line, width)
        case LaterLine():
            waiting = MessageLine(line.id, own=True, text=line.text, clock="", tick=Tick.PENDING, seen=line.when)
            return _bubble(waiting, width)


def _bubble(said: MessageLine, width: int) -> RenderableType:
    room = max(12, int(width * _SHARE)) - 2
    parts: list[Text] = []
    if said.author:
        parts.append(Text(plain(said.author), style="bold #7fd1b9", no_wrap=True, overflow="ellipsis"))
        parts[-1].truncate(room, overflow="ellipsis")
    if said.quote:
        quote = Text(f"▏{plain(said.quote)}", style="italic grey66", no_wrap=True, overflow="ellipsis")
        quote.truncate(room, overflow="ellipsis")
        parts.append(quote)
    body = Text(plain_body(said.text))
    body.append(f"  {said.clock}" if said.clock else " ", style="grey66")
    if said.own:
        told = said.seen or ("queued" if said.queued else "")
        body.append(f" {TICKS[said.tick]}{f' {told}' if told else ''}", style=_STYLES.get(said.tick, "grey66"))
    parts.append(body)
    if said.file is not None:
        parts += drawn(said.file)
    if said.own and said.tick is Tick.FAILED:
        why = REASONS.get(said.reason, said.reason)
        parts.append(Text(f"Failed: {why}." if why else "Failed.", style="light_coral"))
    widest = min(room, max(cell_len(row) for part in parts for row in part.plain.split("\n")))
    bubble = Padding(Group(*parts), (0, 1), style=_OWN if said.own else _THEIRS)
    rest = max(0, width - widest - 2)
    return Padding(bubble, (int(said.turn), 0, 0, rest) if said.own else (int(said.turn), rest, 0, 0))


def draw_summary(summary: ConversationSummary, width: int, clock: str) -> RenderableType:
    """Two lines: name and time, then the newest message and the number of unread ones."""
    mark = " ⚠" if summary.held else " ✔" if summary.verified else ""
    style = "bold" if summary.unread else ""
    name = _shortened(plain(summary.name), width - len(clock) - len(mark) - 1)
    top = _between(Text(name + mark, style=style), Text(clock, style="dim"), width)
    badge = Text(f" {summary.unread} ", style="bold reverse cyan") if summary.unread else Text()
    preview = Text("blocked" if summary.blocked else plain_body(summary.preview).replace("\n", " "), style="dim")
    if summary.failed:
        preview = Text.assemble((f"{TICKS[Tick.FAILED]} ", _STYLES[Tick.FAILED]), preview)
    return Group(top, _between(preview, badge, width))


def _shortened(name: str, room: int) -> str:
    """Cut out of the middle: names often differ at the end, for example by the handle that tells two apart."""
    if cell_len(name) <= room:
        return name
    tail = name[-min(10, room // 2) :]
    return f"{set_cell_size(name, max(0, room - cell_len(tail) - 1))}…{tail}"


def _between(left: Text, right: Text, width: int) -> Text:
    room = max(1, width - right.cell_len - 1)
    left.truncate(room, overflow="ellipsis")
    line = left.copy()
    line.append(" " * (width - left.cell_len - right.cell_len))
    line.append_text(right)
    line.no_wrap = True
    return line
