"""What an app is told of files."""

from __future__ import annotations

from msgspec import Struct

from .media.rows import FileState


class FileChanged(Struct, frozen=True):
    """Something became of a message's file on this device. Durable; what becomes of the message is told besides."""

    message_id: str
    conversation_id: str
    state: FileState
    reason: str = ""


class FileProgress(Struct, frozen=True):
    """How much of a file is at the server, or here. Not durable."""

    message_id: str
    done: int
    total: int
    """Bytes of the sealed file, which is a little larger."""
