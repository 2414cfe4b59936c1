"""A commit whose outcome nobody knows: rows are shown as of the pointer that the loop knows, or not at all (law L2)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from nightmail.engine.ports import Checkpoint, Failed, Found, Overtaken, RowKey, saving
from nightmail.engine.sqlite import SqliteRows, connect
from nightmail.model.rows import Kept

SHARD = RowKey(Kept.SHARD, 0)
OLD, NEW = (Checkpoint(upto, upto, rows=[saving(SHARD, upto, b"%d" % upto)]) for upto in (1, 2))


class Threads:
    """The saver's thread and the loop's: each does what it has to do when a test says so."""

    def __init__(self, folder: Path) -> None:
        self.jobs: list[Callable[[], None]] = []
        self.posts: list[Callable[[], None]] = []
        self.rows = SqliteRows(folder, post=self.posts.append, execute=self.jobs.append, entropy=bytes)

    def save(self, checkpoint: Checkpoint) -> list[Overtaken | Failed | None]:
        """The list that the outcome will come to."""
        outcomes: list[Overtaken | Failed | None] = []
        self.rows.save(checkpoint, outcomes.append)
        return outcomes

    def saver(self) -> None:
        while self.jobs:
            self.jobs.pop(0)()

    def loop(self) -> None:
        while self.posts:
            self.posts.pop(0)()

    def seen(self) -> tuple[object, int]:
        """The shard's row, or None if it cannot be read; and what it is said to be as of."""
        answers: list[Found | Overtaken | Failed] = []
        self.rows.load([SHARD], answers.append)
        (found,) = answers
        assert not isinstance(found, Overtaken)
        return None if isinstance(found, Failed) else found[0], self.rows.pointer


@pytest.fixture
def threads(tmp_path: Path) -> Iterator[Threads]:
    made = Threads(tmp_path)
    first = made.save(OLD)
    made.saver()
    made.loop()
    assert (first, made.seen()) == ([None], (b"1", 1))
    yield made
    made.rows.close()


def commits_unheard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next commit takes, and is answered with an error."""
    right = connect.transaction

    @contextmanager
    def broken(db: apsw.Connection) -> Generator[None]:
        monkeypatch.setattr(connect, "transaction", right)
        with right(db):
            yield
        raise apsw.IOError("disk I/O error")

    monkeypatch.setattr(connect, "transaction", broken)


def cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor can it be opened, once."""
    right = connect.open_writer

    def closed(*_: Any) -> apsw.Connection:
        monkeypatch.setattr(connect, "open_writer", right)
        raise apsw.CantOpenError("unable to open database file")

    monkeypatch.setattr(connect, "open_writer", closed)


def test_what_is_opened_anew_is_not_read_before_the_loop_knows_what_it_is(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits_unheard(monkeypatch)
    outcome = threads.save(NEW)
    threads.saver()
    assert (outcome, threads.seen()) == ([], (None, 1))
    threads.loop()
    assert (outcome, threads.seen()) == ([None], (b"2", 2))


def test_whoever_rebuilds_while_it_is_opened_anew_starts_from_what_is_there(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits_unheard(monkeypatch)
    cannot_be_opened(monkeypatch)
    outcome = threads.save(NEW)
    threads.saver()
    threads.loop()
    assert isinstance(outcome[0], Failed)
    assert threads.seen() == (None, 1), "there is no connection, and one is asked for"
    threads.saver()
    assert threads.seen() == (None, 1), "there is one, and the loop does not know yet"
    threads.loop()
    assert threads.seen() == (b"2", 2)


def test_a_save_that_had_taken_is_not_made_again_when_the_disk_is_full(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits_unheard(monkeypatch)
    cannot_be_opened(monkeypatch)
    threads.save(NEW)
    threads.saver()
    threads.loop()

    @contextmanager
    def full(_: apsw.Connection) -> Generator[None]:
        raise apsw.FullError("database or disk is full")
        yield

    monkeypatch.setattr(connect, "transaction", full)
    again = threads.save(NEW)
    threads.saver()
    threads.loop()
    assert (again, threads.seen()) == ([None], (b"2", 2))


def test_a_save_that_had_not_taken_is_made_again(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    right = connect.transaction

    @contextmanager
    def lost(_: apsw.Connection) -> Generator[None]:
        monkeypatch.setattr(connect, "transaction", right)
        raise apsw.IOError("disk I/O error")
        yield

    monkeypatch.setattr(connect, "transaction", lost)
    cannot_be_opened(monkeypatch)
    threads.save(NEW)
    threads.saver()
    threads.loop()
    again = threads.save(NEW)
    threads.saver()
    assert threads.seen() == (b"1", 1)
    threads.loop()
    assert (again, threads.seen()) == ([None], (b"2", 2))
