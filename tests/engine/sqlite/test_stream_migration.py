from __future__ import annotations

from pathlib import Path

import apsw
import msgspec
import pytest

from nightmail.core.ring import answer_again
from nightmail.engine.ports import Damaged
from nightmail.engine.sqlite import FILE_NAME, SqliteRows, schema
from nightmail.engine.sqlite.stream_migration import SOME
from nightmail.model.answers import Accepted
from nightmail.model.records import Sent, Voided
from nightmail.model.rows import Stream
from nightmail.model.words import Kind, Lane

BEFORE = schema.STEPS[: schema.STEPS.index(schema.pack_streams)]
AFTER = schema.STEPS[: len(BEFORE) + 1]
TAG = b"sixteen bytes, 1"


def test_streams_of_an_older_schema_answer_as_they_did(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "rows.db"))
    schema.migrate(db, bytes, BEFORE)
    normal = [9, 8, {8: Accepted("eight", TAG, 500, 3), 9: Accepted("nine", b"", 501, 0)}]
    old = msgspec.msgpack.encode([501, [normal, [0, 1, {}]]])
    db.executemany("INSERT INTO stream (a, b, version, value) VALUES (?, 7, 1, ?)", [(a, old) for a in range(SOME + 1)])
    schema.migrate(db, bytes, AFTER)
    values = {row[0] for row in db.execute("SELECT value FROM stream")}
    db.close()
    assert len(values) == 1
    stream = msgspec.msgpack.decode(values.pop(), type=Stream)
    assert (stream.at, [(numbers.low, numbers.last) for numbers in stream.lanes]) == (501, [(8, 9), (1, 0)])
    again = Sent(7, Lane.NORMAL, 8, 8, 0, "eight", TAG, Kind.TEXT, None, 0, 3, (), ())
    assert answer_again(stream.lanes[0], again) == Accepted("eight", TAG, 500, 3)
    assert answer_again(stream.lanes[0], Voided(7, Lane.NORMAL, 9, 8, "nine")) == Accepted("nine", b"", 501, 0)


WRONG = {
    "no row at all": b"\xc1",
    "another row": msgspec.msgpack.encode([1, 2]),
    "an answer too few": msgspec.msgpack.encode([501, [[9, 8, {8: Accepted("eight", TAG, 500, 3)}], [0, 1, {}]]]),
    "a tag too long": msgspec.msgpack.encode([501, [[1, 1, {1: Accepted("one", TAG + b"!", 500, 3)}], [0, 1, {}]]]),
    "a stamp before all time": msgspec.msgpack.encode([501, [[1, 1, {1: Accepted("one", TAG, -1, 3)}], [0, 1, {}]]]),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
def test_a_stream_that_is_damaged_is_named_and_nothing_is_changed(tmp_path: Path, wrong: bytes) -> None:
    db = apsw.Connection(str(tmp_path / FILE_NAME))
    schema.migrate(db, bytes, BEFORE)
    right = msgspec.msgpack.encode([501, [[0, 1, {}], [0, 1, {}]]])
    db.executemany("INSERT INTO stream (a, b, version, value) VALUES (?, 7, 1, ?)", [(1, right), (2, wrong)])
    before = db.execute("SELECT * FROM stream").fetchall()
    with pytest.raises(Damaged, match=r"^the row STREAM 2 7 is stored, but cannot be read$"):
        SqliteRows(tmp_path, post=lambda post: post(), execute=lambda job: job(), entropy=bytes)
    assert db.execute("SELECT * FROM stream").fetchall() == before
    assert schema.number(db, "user_version") == len(BEFORE)
    db.close()
