"""A thread that runs blocking jobs, one after the other.

Knows:   the order of its jobs.
Touches: what the jobs touch.
Never:   looks into a job; a job catches what it expects and posts its own outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import NoReturn, TypeAlias

from nightmail.engine.ports import Post

Job: TypeAlias = Callable[[], None]
Execute: TypeAlias = Callable[[Job], None]
"""Run this after all earlier jobs: on a thread of its own, at once, or when a test says so."""


class Worker:
    """An `Execute` with a thread. `close` returns when all jobs are done."""

    def __init__(self, post: Post, name: str = "log writer") -> None:
        self._post = post
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def __call__(self, job: Job) -> None:
        self._jobs.put(job)

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except BaseException as mistake:  # noqa: BLE001
                # A bug, not a disk error. The loop must stop with it instead of waiting for ever.
                self._post(_raiser(mistake))


def _raiser(mistake: BaseException) -> Job:
    def fail() -> NoReturn:
        raise mistake

    return fail
