"""Everything of a node that holds blobs, put together: the store, its threads, and what keeps rows and bytes in step.

Knows:   where the folder is, and whether there is a bucket.
Touches: them, on threads of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

from nightmail.api.app import MediaService
from nightmail.api.media.limits import MediaLimits
from nightmail.api.media.transfers import Transfers
from nightmail.engine.blobs.folder import FolderBlobs
from nightmail.engine.blobs.keeper import BlobKeeper
from nightmail.engine.blobs.port import BlobFailed, Blobs
from nightmail.engine.cluster.desk import ClusterDesk
from nightmail.engine.desk import LoopDesk
from nightmail.engine.os_errors import cause
from nightmail.engine.ports import EngineError, Post
from nightmail.engine.worker import Execute, Job, Worker
from nightmail.model.blobs import BlobId
from nightmail.model.limits import FoldLimits

from .heart import pace
from .media_settings import MediaSettings
from .observe import log

FOLDER = "media"


class NodeMedia:
    def __init__(
        self, settings: MediaSettings, limits: MediaLimits, fold: FoldLimits, data: Path, desk: LoopDesk | ClusterDesk,
        post: Post, soon: Callable[[], None], pressed: Callable[[], bool],
    ) -> None:  # fmt: skip
        """Raises EngineError if the folder cannot be used."""
        folder = Path(settings.folder) if settings.folder else data / FOLDER
        with ExitStack() as parts:
            execute = _threads(parts, post, settings.threads)
            try:
                in_folder = FolderBlobs(folder, post=post, execute=execute, reserve_bytes=settings.reserve_bytes)
            except OSError as error:
                raise EngineError(f"the media folder {folder} cannot be used: {cause(error.errno)}") from None
            blobs: Blobs = in_folder
            if settings.s3_bucket:
                # Threads of their own: a bucket that does not answer must not hold up what grows in the folder.
                blobs = _in_bucket(settings, in_folder, post, _threads(parts, post, settings.threads))
            self._parts = parts.pop_all()
        self.keeper = BlobKeeper(desk, blobs, pace, soon, settings.sweep_ms)
        if settings.s3_bucket:
            blobs.names(None, 1, _told)
        most = min(fold.media_bytes, max(fold.media_quota_bytes, fold.backup_quota_bytes))
        self.service = MediaService(blobs, desk, limits, most, Transfers(limits, pressed))

    def close(self) -> None:
        self._parts.close()


def _threads(parts: ExitStack, post: Post, count: int) -> Execute:
    workers = [Worker(post, "media") for _ in range(count)]
    for worker in workers:
        parts.callback(worker.close)
    turns = cycle(workers)

    def execute(job: Job) -> None:
        next(turns)(job)

    return execute


def _in_bucket(settings: MediaSettings, growing: FolderBlobs, post: Post, execute: Execute) -> Blobs:
    """Raises EngineError if the package for it is missing."""
    try:
        from nightmail.engine.blobs.s3 import S3Access, S3Blobs  # noqa: PLC0415 (an extra: not everybody has it)
    except ModuleNotFoundError as missing:
        if missing.name != "obstore":
            raise
        raise EngineError("media.s3_bucket is set, and obstore is missing: install nightmail[s3]") from None
    access = S3Access(
        settings.s3_bucket, settings.s3_endpoint, settings.s3_region, settings.s3_key_id, settings.s3_secret_key
    )
    return S3Blobs(access, growing, post=post, execute=execute)


def _told(found: Sequence[BlobId] | BlobFailed) -> None:
    """A bucket that is away is no reason not to start: messages do not need it."""
    if isinstance(found, BlobFailed):
        log.warning("blobs can be neither finished nor fetched until S3 serves", extra={"why": found.why})
