"""Files in the chat: what stands below their names, how far they have come, and a preview in coloured half blocks.

Knows:   what is known of progress while the window is open.
Never:   shows more of a file than its message says.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from msgspec import Struct
from rich.text import Text

from nightmail.cli.file_words import STATE_WORDS, about_file
from nightmail.cli.output import plain
from nightmail.client import Client
from nightmail.client.events import Event
from nightmail.client.media.rows import FileState
from nightmail.client.media.thumbnails import pixels_of
from nightmail.client.media_events import FileChanged, FileProgress
from nightmail.client.messages import Message

COLUMNS, ROWS = 28, 20
"""Pixels of a preview: a character shows two, one above the other."""
BAR = 20
UNDER_WAY = (FileState.UPLOADING, FileState.WANTED)


class FileLine(Struct, frozen=True):
    about: str
    """Type, size, and where it is."""
    share: float | None = None
    """How much of it has come or gone, from 0 to 1; None: nothing is under way."""
    thumbnail: bytes = b""

    def __repr__(self) -> str:
        return f"<file: {self.about}>"


class ChatFiles:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._progress: dict[str, FileProgress] = {}

    def take(self, event: Event) -> None:
        if isinstance(event, FileProgress):
            self._progress[event.message_id] = event
        elif isinstance(event, FileChanged) and event.state not in UNDER_WAY:
            self._progress.pop(event.message_id, None)

    def line(self, message: Message) -> FileLine | None:
        """None: it has no file."""
        if message.media is None or (file := self._client.file(message)) is None:
            return None
        where = f"saved as {plain(Path(file.path).name)}" if file.state is FileState.SAVED else STATE_WORDS[file.state]
        share = None
        if file.state in UNDER_WAY:
            progress = self._progress.get(message.id)
            share = progress.done / max(1, progress.total) if progress else 0.0
        return FileLine(f"{about_file(file.pointer)} {where}", share, file.pointer.thumbnail)

    async def save(self, message_id: str, path: str) -> Path:
        return await self._client.save_file(message_id, path)


def drawn(file: FileLine) -> list[Text]:
    """What stands below a message with a file."""
    lines = list(_preview(file.thumbnail))
    lines.append(Text(file.about, style="grey66"))
    if file.share is not None:
        full = round(BAR * file.share)
        lines.append(Text.assemble(("━" * full, "#4fb3ff"), ("━" * (BAR - full), "grey37"), f" {file.share:4.0%}"))
    return lines


@lru_cache(maxsize=64)
def _preview(thumbnail: bytes) -> tuple[Text, ...]:
    """Each character is the lower half of a cell: its colour is the lower pixel's, its background the upper one's."""
    pixels = pixels_of(thumbnail, COLUMNS, ROWS)
    lines: list[Text] = []
    for at in range(0, len(pixels) - 1, 2):
        line = Text(no_wrap=True)
        for upper, lower in zip(pixels[at], pixels[at + 1], strict=True):
            line.append("▄", style=f"{_colour(lower)} on {_colour(upper)}")
        lines.append(line)
    return tuple(lines)


def _colour(pixel: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*pixel)
