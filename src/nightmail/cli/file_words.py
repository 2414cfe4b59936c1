"""Files in words and as JSON, and a bar that shows how far one has come.

Never:   prints a key: what opens a file stays in the profile.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from nightmail.client import Client, MediaPointer
from nightmail.client.media.rows import FileState
from nightmail.client.media_client import SharedFile
from nightmail.client.media_events import FileChanged, FileProgress

UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")

STATE_WORDS = {
    FileState.ABSENT: "not here",
    FileState.UPLOADING: "being sent",
    FileState.UPLOADED: "sent from here",
    FileState.WANTED: "being fetched",
    FileState.KEPT: "in the profile",
    FileState.SAVED: "saved",
    FileState.GONE: "no longer on the server",
    FileState.REFUSED: "refused: not what its author sealed",
    FileState.FAILED: "not sent",
}


def size_words(size: int) -> str:
    """684 KiB, 1.2 MiB: three digits are enough."""
    value, unit = float(size), 0
    while value >= 1_000 and unit < len(UNITS) - 1:
        value, unit = value / 1_024, unit + 1
    return f"{value:.1f} {UNITS[unit]}" if unit and value < 100 else f"{value:.0f} {UNITS[unit]}"


def about_file(pointer: MediaPointer) -> str:
    return f"({pointer.type}, {size_words(pointer.size)})"


def pointer_json(pointer: MediaPointer) -> dict[str, Any]:
    shape = {"name": pointer.name, "type": pointer.type, "size": pointer.size}
    return {**shape, "thumbnail_bytes": len(pointer.thumbnail)} if pointer.thumbnail else shape


def file_json(file: SharedFile) -> dict[str, Any]:
    """What `nightmail media` says of a file, besides its message."""
    more = {"reason": file.reason, "path": file.path}
    return {"state": file.state.name.lower(), **{name: value for name, value in more.items() if value}}


def file_event_json(event: FileChanged | FileProgress) -> dict[str, Any]:
    if isinstance(event, FileProgress):
        return {"type": "file_progress", "message_id": event.message_id, "done": event.done, "total": event.total}
    shape = {
        "type": "file", "message_id": event.message_id, "conversation_id": event.conversation_id,
        "state": event.state.name.lower(),
    }  # fmt: skip
    return {**shape, "reason": event.reason} if event.reason else shape


@contextmanager
def progress_shown(client: Client, *, as_json: bool) -> Generator[None]:
    """A bar on standard error, if that is a terminal; nothing in a pipe."""
    page = Console(stderr=True)
    if as_json or not page.is_terminal or not sys.stdout.isatty():
        yield
        return
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn()
    bars: dict[str, TaskID] = {}
    with Progress(*columns, console=page, transient=True) as progress:

        def show(event: FileProgress) -> None:
            file = client.file(event.message_id)
            if event.message_id not in bars and file is not None:
                bars[event.message_id] = progress.add_task(file.pointer.name.replace("[", r"\["), total=event.total)
            progress.update(bars[event.message_id], completed=event.done)

        client.on(FileProgress)(show)
        yield
