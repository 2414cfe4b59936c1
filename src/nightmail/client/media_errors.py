"""What can go wrong with a file.

    MediaError
    ├── FileRefused        what the server handed out is not what the author sealed; nothing of it was written
    │   ├── OtherBlob      another stream: its size or its key is not the one that the message names
    │   ├── ChunkRefused   a chunk that was changed, swapped, repeated, left out or put elsewhere
    │   └── DigestDiffers  every chunk opens, and it is not the stream that the message names
    ├── FileGone           the server has it no more: everybody had it, its time was over, or its author took it back
    ├── FileAltered        the file on this disk changed while it was being sent
    └── FileUnusable       a file on this disk cannot be read or written
No text in this tree holds a key or content.
"""

from __future__ import annotations

from .errors import ClientError


class MediaError(ClientError):
    reason = ""
    """A word for it, as it stands in `Message.reason` and `FileState.reason`."""


class FileRefused(MediaError):
    reason = "refused"


class OtherBlob(FileRefused):
    reason = "other_blob"

    def __init__(self, why: str) -> None:
        super().__init__(f"the server handed out another file than the message names: {why}")


class ChunkRefused(FileRefused):
    reason = "chunk_refused"

    def __init__(self, index: int) -> None:
        self.index = index
        super().__init__(f"chunk {index} of the file is not what its author sealed")


class DigestDiffers(FileRefused):
    reason = "digest_differs"

    def __init__(self) -> None:
        super().__init__("the file is not the one that the message names")


class FileGone(MediaError):
    reason = "gone"

    def __init__(self) -> None:
        super().__init__("the server no longer has this file")


class FileAltered(MediaError):
    reason = "file_changed"

    def __init__(self) -> None:
        super().__init__("the file changed while it was being sent")


class FileUnusable(MediaError):
    reason = "file_unusable"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name} cannot be used: {why}")
