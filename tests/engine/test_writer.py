"""The writer: one job after the other, on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from nightmail.engine.writer import Writer


def test_jobs_are_done_in_order_on_another_thread() -> None:
    done: list[tuple[int, int]] = []
    writer = Writer(lambda _: None)
    for n in range(100):
        writer(lambda n=n: done.append((n, threading.get_ident())))
    writer.close()
    assert [n for n, _ in done] == list(range(100))
    assert threading.get_ident() not in {thread for _, thread in done}


def test_giving_a_job_does_not_wait_for_it() -> None:
    gate, done = threading.Event(), list[str]()
    writer = Writer(lambda _: None)
    writer(lambda: done.append("first") if gate.wait(timeout=60) else None)
    writer(lambda: done.append("second"))
    assert done == []
    gate.set()
    writer.close()
    assert done == ["first", "second"]


def test_closing_returns_when_everything_given_before_is_done() -> None:
    done: list[int] = []
    writer = Writer(lambda _: None)
    for n in range(1_000):
        writer(lambda n=n: done.append(n))
    writer.close()
    assert len(done) == 1_000


def test_a_mistake_in_a_job_falls_on_the_loop_and_the_next_jobs_are_done() -> None:
    posted: SimpleQueue[Callable[[], None]] = SimpleQueue()
    done: list[str] = []
    writer = Writer(posted.put, name="saver")
    writer(lambda: {}["a mistake"])
    writer(lambda: done.append(threading.current_thread().name))
    writer.close()
    assert done == ["saver"]
    with pytest.raises(KeyError, match="a mistake"):
        posted.get(timeout=60)()
    assert posted.empty()


def test_nothing_is_posted_for_a_job_that_is_done() -> None:
    posted: SimpleQueue[Callable[[], None]] = SimpleQueue()
    writer = Writer(posted.put)
    writer(lambda: None)
    writer.close()
    assert posted.empty()
