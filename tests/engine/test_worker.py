"""The worker: one job after the other, on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from nightmail.engine.worker import Worker


def test_jobs_are_done_in_order_on_another_thread() -> None:
    done: list[tuple[int, int]] = []
    worker = Worker(lambda _: None)
    for n in range(100):
        worker(lambda n=n: done.append((n, threading.get_ident())))
    worker.close()
    assert [n for n, _ in done] == list(range(100))
    assert threading.get_ident() not in {thread for _, thread in done}


def test_giving_a_job_does_not_wait_for_it() -> None:
    gate, done = threading.Event(), list[str]()
    worker = Worker(lambda _: None)
    worker(lambda: done.append("first") if gate.wait(timeout=60) else None)
    worker(lambda: done.append("second"))
    assert done == []
    gate.set()
    worker.close()
    assert done == ["first", "second"]


def test_closing_returns_when_everything_given_before_is_done() -> None:
    done: list[int] = []
    worker = Worker(lambda _: None)
    for n in range(1_000):
        worker(lambda n=n: done.append(n))
    worker.close()
    assert len(done) == 1_000


def test_a_mistake_in_a_job_falls_on_the_loop_and_the_next_jobs_are_done() -> None:
    posted: SimpleQueue[Callable[[], None]] = SimpleQueue()
    done: list[str] = []
    worker = Worker(posted.put, name="saver")
    worker(lambda: {}["a mistake"])
    worker(lambda: done.append(threading.current_thread().name))
    worker.close()
    assert done == ["saver"]
    with pytest.raises(KeyError, match="a mistake"):
        posted.get(timeout=60)()
    assert posted.empty()


def test_nothing_is_posted_for_a_job_that_is_done() -> None:
    posted: SimpleQueue[Callable[[], None]] = SimpleQueue()
    worker = Worker(posted.put)
    worker(lambda: None)
    worker.close()
    assert posted.empty()
