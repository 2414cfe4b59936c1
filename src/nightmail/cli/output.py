"""What commands print: lines for people, and one JSON object per line for scripts (shapes in `json_shapes`).

Knows:   that text from other people may hold terminal control sequences, invisible marks that reverse the direction of
         writing, and line breaks. None of them may imitate a line of ours.
Touches: standard output.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from nightmail.client.messages import Message, Tick

from .durations import timer_words
from .file_words import about_file

TICKS = {Tick.PENDING: "🕓", Tick.SENT: "✓", Tick.DELIVERED: "✓✓", Tick.READ: "✓✓", Tick.FAILED: "✗"}
TICK_STYLES = {Tick.READ: "not dim blue", Tick.FAILED: "not dim red"}


def console() -> Console:
    """For people. Long lines are not broken, so that they can be copied and searched."""
    return Console(highlight=False, soft_wrap=True)


def print_json(value: dict[str, Any]) -> None:
    """Print one object on one line, and flush."""
    click.echo(json.dumps(value, ensure_ascii=False))
    sys.stdout.flush()


def as_json_option(command: Any) -> Any:
    return click.option("--json", "as_json", is_flag=True, help="One JSON object per line, for scripts.")(command)


def clock(at_ms: int) -> str:
    """The local time of day, with the date unless it is today."""
    then = datetime.fromtimestamp(at_ms / 1000).astimezone()
    today = datetime.now().astimezone().date()
    return f"{then:%H:%M:%S}" if then.date() == today else f"{then:%Y-%m-%d %H:%M:%S}"


INDENT = " " * 10
"""Before every line of a message but its first: lines of ours begin with a time or a word."""
_KEPT = {"\n": "\n", "\t": " ", "\r": " ", "\u200c": "\u200c", "\u200d": "\u200d"}
"""Characters of a message that are not printable, and needed: line breaks, and what joins letters and emoji."""


def plain(text: str) -> str:
    """A name from another person, made safe to print on one line: control and direction characters become �."""
    return "".join(char if char.isprintable() else "�" for char in text)


def plain_body(text: str) -> str:
    """The text of a message, made safe to print. It has as many characters as before, and may have several lines."""
    return "".join(char if char.isprintable() else _KEPT.get(char, "�") for char in text)


def hanging(page: Console, line: Text) -> Text:
    """The line with every further line of it indented, also where a terminal would wrap it to the first column."""
    lines = line.split("\n", allow_blank=True)
    if page.is_terminal:
        room = max(20, page.width - len(INDENT))
        lines = [piece for each in lines for piece in (each.wrap(page, room) if each else [each])]
    return Text(f"\n{INDENT}").join(lines)


def command_line(*words: str) -> str:
    """A command line to copy: with the path by which `nightmail` was called, and quoted for a shell."""
    return " ".join([_program(), *(shlex.quote(word) for word in words)])


def _program() -> str:
    called = Path(sys.argv[0])
    if called.name != "nightmail":
        return "nightmail" if shutil.which("nightmail") else f"{_short(Path(sys.executable))} -m nightmail"
    found = shutil.which("nightmail")
    if found and Path(found).resolve() == called.resolve():
        return "nightmail"
    return _short(called)


def _short(path: Path) -> str:
    """Relative to the current folder, if that is shorter."""
    path = path if path.is_absolute() else Path.cwd() / path
    return min(str(path), os.path.relpath(path), key=len)


def message_line(
    message: Message, name: str, text: str | None, spans: Sequence[tuple[int, int]] = ()
) -> Text:  # fmt: skip
    """Time, sender, text, and the tick of an own message. `spans` of the text are highlighted."""
    line = Text(f"{clock(message.at) if message.at else '':8}  ", style="dim")
    line.append(f"→ {name}: " if message.own else f"{name}: ", style="dim" if message.own else "bold cyan")
    said = Text(plain_body(text) if text is not None else f"({_no_text(message)})", style="not dim")
    for start, end in spans:
        said.stylize("bold reverse", start, end)
    line.append_text(said)
    if (pointer := message.media) is not None:
        line.append(f"  {about_file(pointer)}", style="dim")
    if message.own:
        line.append(f"  {TICKS[message.state]}", style=TICK_STYLES.get(message.state, "dim"))
    return line


def _no_text(message: Message) -> str:
    """What a message is that has no text."""
    if message.is_erased:
        return "disappeared"
    timer_ms = message.timer_ms
    return message.kind.name.lower() if timer_ms is None else f"set the timer: messages {timer_words(timer_ms)}"


def changed_line(at: int) -> Text:
    """Marks the place in a conversation where the contact's key changed."""
    return Text(f"{clock(at)}  the security code has changed", style="yellow")


def digit_groups(number: str) -> str:
    """60 digits in twelve groups of five, four groups to a line, to be read aloud."""
    groups = [number[at : at + 5] for at in range(0, len(number), 5)]
    return "\n".join("  ".join(groups[at : at + 4]) for at in range(0, len(groups), 4))
