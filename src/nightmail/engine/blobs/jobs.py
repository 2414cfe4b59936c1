"""A blocking job of a store: done on one of its threads, answered on the loop's.

Knows:   which errors are the store's, and not mistakes of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from nightmail.engine.ports import Post
from nightmail.engine.worker import Execute

from .port import BlobFailed

T = TypeVar("T")


class BlobJobs:
    def __init__(
        self, post: Post, execute: Execute, errors: tuple[type[Exception], ...], say: Callable[[Exception], BlobFailed]
    ) -> None:
        """`say`: what one of these errors means."""
        self._post, self._execute, self._errors, self._say = post, execute, errors, say

    def run(self, job: Callable[[], T], done: Callable[[T | BlobFailed], None]) -> None:
        def run() -> None:
            try:
                found = job()
            except self._errors as error:
                found = self._say(error)
            self._post(lambda: done(found))

        self._execute(run)
