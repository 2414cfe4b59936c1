"""Everything of a node that holds blobs, put together: the folder, its threads, and what keeps rows and bytes in step.

Knows:   where the folder is.
Touches: it, on threads of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

from nightmail.api.app import MediaService
from nightmail.api.media_limits import MediaLimits
from nightmail.api.media_transfers import Transfers
from nightmail.engine.blobs.folder import FolderBlobs
from nightmail.engine.blobs.keeper import BlobKeeper
from nightmail.engine.desk import LoopDesk
from nightmail.engine.os_errors import cause
from nightmail.engine.ports import EngineError, Post
from nightmail.engine.worker import Job, Worker
from nightmail.model.limits import FoldLimits

from .heart import pace
from .media_settings import MediaSettings

FOLDER = "media"


class NodeMedia:
    def __init__(
        self, settings: MediaSettings, limits: MediaLimits, fold: FoldLimits, data: Path, desk: LoopDesk, post: Post,
        soon: Callable[[], None], pressed: Callable[[], bool],
    ) -> None:  # fmt: skip
        """Raises EngineError if the folder cannot be used."""
        folder = Path(settings.folder) if settings.folder else data / FOLDER
        with ExitStack() as parts:
            workers = [Worker(post, "media") for _ in range(settings.threads)]
            for worker in workers:
                parts.callback(worker.close)
            turns = cycle(workers)

            def execute(job: Job) -> None:
                next(turns)(job)

            try:
                blobs = FolderBlobs(folder, post=post, execute=execute, reserve_bytes=settings.reserve_bytes)
            except OSError as error:
                raise EngineError(f"the media folder {folder} cannot be used: {cause(error.errno)}") from None
            self._parts = parts.pop_all()
        self.keeper = BlobKeeper(desk, blobs, pace, soon, settings.sweep_ms)
        most = min(fold.media_bytes, max(fold.media_quota_bytes, fold.backup_quota_bytes))
        self.service = MediaService(blobs, desk, limits, most, Transfers(limits, pressed))

    def close(self) -> None:
        self._parts.close()
