"""Names and types of files: what may leave this device, and what may be written to its disk.

Knows:   that a name from a peer is a text, and never a path (`e2ee/streams/media.py` refuses those that could be one).
Never:   makes a hidden file, one that a program could take for an option, or one whose name means a device.
"""

from __future__ import annotations

import mimetypes
import re
from pathlib import Path

from nightmail.e2ee.streams.media import ANY_TYPE, NAME_BYTES_MAX, is_file_name, is_media_type

NAMELESS = "file"
_UNFIT = re.compile(r'[/\\:*?"<>|]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\..*)?", re.IGNORECASE)
"""Names that mean devices on some systems, with any ending."""
TRIES = 1_000


def sendable_name(name: str) -> str:
    """The name under which a file is sent: its own, without what no reader would take."""
    plain = "".join(each if each.isprintable() else "_" for each in _UNFIT.sub("_", name))
    while len(plain.encode()) > NAME_BYTES_MAX:
        stem, dot, ending = plain.rpartition(".")
        plain = stem[:-1] + dot + ending if stem and len(ending) < 16 else plain[:-1]
    plain = plain.strip().rstrip(". ")
    return plain if is_file_name(plain) else NAMELESS


def local_name(name: str) -> str:
    """The name under which a peer's file is saved."""
    return f"_{name}"[:NAME_BYTES_MAX] if name[0] in ".-~" or _RESERVED.fullmatch(name) else name


def type_of(name: str) -> str:
    """The media type that a name lets expect."""
    guessed = (mimetypes.guess_type(name, strict=False)[0] or ANY_TYPE).lower()
    return guessed if is_media_type(guessed) else ANY_TYPE


def free_path(folder: Path, name: str) -> Path:
    """A path in a folder that nothing has yet: `picture.jpg`, `picture (2).jpg`, …"""
    plain = Path(local_name(name))
    for number in range(2, TRIES):
        path = folder / plain
        if not path.exists() and not path.is_symlink():
            return path
        plain = Path(f"{Path(local_name(name)).stem} ({number}){Path(name).suffix}")
    return folder / plain
