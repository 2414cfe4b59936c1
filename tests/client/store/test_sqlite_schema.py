"""A profile of an older version becomes one of the present version."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from nightmail.client.messages import UNCOUNTED, Message, Tick
from nightmail.client.store.group_rows import GroupRow, GroupStanding
from nightmail.client.store.search import terms_of
from nightmail.client.store.sqlite import NAME, SqliteStore
from nightmail.client.store.sqlite_schema import STEPS, index_again, open_database
from nightmail.e2ee.content import Content, encode_content
from nightmail.model.words import Kind

KEY = bytes(range(32))
BEFORE = STEPS[: STEPS.index(index_again)]
TEXTS = ("我明天去北京大学", "新しいiPhoneを買った", "ไปเชียงใหม่ด้วยกัน", "the old café")


def a_profile_from_before(folder: Path) -> None:
    """As the version wrote it that indexed every text as it was."""
    db = open_database(str(folder / NAME), KEY, BEFORE)
    bodies = [(Kind.TEXT, encode_content(Content(Kind.TEXT, text)), text) for text in TEXTS]
    bodies += [(Kind.CONTROL, b"control", ""), (Kind.TEXT, b"\xff no text", "")]
    for n, (kind, body, text) in enumerate(bodies, 1):
        ident = f"1001:{n}:{n:05d}:abcd"
        db.execute(
            "INSERT INTO message VALUES (?, ?, 2, 1, 1, ?, ?, ?, 0, 0, '', NULL, ?, ?, ?)",
            (n * 10, ident, n, body, kind, n, n, n),
        )
        if text:
            db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (n * 10, text))
    db.close()


def found(store: SqliteStore, typed: str) -> list[str]:
    return [message.text for message in store.search(terms_of(typed), None, 9)]


def words_in(store: SqliteStore) -> list[str]:
    store._db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.seen USING fts5vocab (main, words, row)")
    return [term for (term,) in store._db.execute("SELECT term FROM temp.seen")]


def test_what_was_written_before_is_found_by_any_part_of_it(tmp_path: Path) -> None:
    a_profile_from_before(tmp_path)
    store = SqliteStore(tmp_path, KEY)
    for typed, text in zip(("北京", "iphoneを買", "เชียงใหม่", "cafe"), TEXTS, strict=True):
        assert found(store, typed) == [text]
    assert found(store, "control") == found(store, "no") == []
    store.close()
    store = SqliteStore(tmp_path, KEY)
    assert found(store, "大") == [TEXTS[0]]
    store.close()


def test_what_was_written_before_leaves_no_word_when_it_is_dropped(tmp_path: Path) -> None:
    a_profile_from_before(tmp_path)
    store = SqliteStore(tmp_path, KEY)
    assert {"北京", "iphone", "cafe"} <= set(words_in(store))
    for message in store.history(2, 9):
        store.drop_message(message.id)
    store.commit()
    assert words_in(store) == []
    store.close()


def test_lives_that_a_former_version_did_not_count_are_marked_to_be_counted_from_now_on(tmp_path: Path) -> None:
    before = STEPS[:4]
    db = open_database(str(tmp_path / NAME), KEY, before)
    read, failed, sent, pending, unread, stays = (
        (Tick.READ, 0, 5, 9), (Tick.FAILED, 1, 0, 9), (Tick.SENT, 1, 5, 9), (Tick.PENDING, 1, 0, 9),
        (Tick.SENT, 0, 5, 9), (Tick.READ, 0, 5, 0),
    )  # fmt: skip
    for n, (state, own, at, life_ms) in enumerate((read, failed, sent, pending, unread, stays), 1):
        body = encode_content(Content(Kind.TEXT, f"text {n}"))
        db.execute(
            "INSERT INTO message VALUES (?, ?, 2, 1, ?, ?, ?, ?, ?, ?, '', NULL, ?, ?, ?)",
            (n, f"1001:{n}:{n:05d}:abcd", own, at, body, Kind.TEXT, life_ms, state, n, n, n),
        )
    db.close()
    store = SqliteStore(tmp_path, KEY)
    assert [message.deadline for message in store.history(2, 9)] == [UNCOUNTED] * 3 + [0] * 3
    assert [message.text for message in store.ended(UNCOUNTED)] == ["text 1", "text 2", "text 3"]
    store.close()


def test_what_is_deleted_is_in_no_page_of_the_file_and_of_its_log(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, KEY)
    store.put_message(
        Message(
            id="1001:1:00001:abcd", peer=2, by=1, own=False, at=1,
            body=encode_content(Content(Kind.TEXT, "unmistakable " * 100)),
        )
    )  # fmt: skip
    store.commit()
    assert b"unmistakable" in pages(tmp_path)
    store.drop_message("1001:1:00001:abcd")
    store.commit()
    assert (tmp_path / f"{NAME}-wal").stat().st_size == 0
    assert b"unmistakable" not in pages(tmp_path)
    store.close()


def pages(folder: Path) -> bytes:
    """The file and its log as they are, read with the key and written again without it."""
    for name in (NAME, f"{NAME}-wal"):
        (folder / f"copy-{name}").write_bytes((folder / name).read_bytes())
    db = open_database(str(folder / f"copy-{NAME}"), KEY)
    db.pragma("journal_mode", "DELETE")
    db.pragma("rekey", "")
    db.close()
    return (folder / f"copy-{NAME}").read_bytes()


def test_a_step_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    a_profile_from_before(tmp_path)

    def fails(db: apsw.Connection) -> None:
        index_again(db)
        raise apsw.FullError

    with pytest.raises(apsw.FullError):
        open_database(str(tmp_path / NAME), KEY, (*BEFORE, fails))
    db = open_database(str(tmp_path / NAME), KEY, BEFORE)
    assert db.execute("SELECT count(*) FROM words WHERE words MATCH 'cafe'").get == 1
    db.close()


def test_a_profile_from_before_groups_keeps_its_messages_and_takes_groups(tmp_path: Path) -> None:
    db = open_database(str(tmp_path / NAME), KEY, STEPS[:5])
    body = encode_content(Content(Kind.TEXT, "between two"))
    db.execute(
        "INSERT INTO message VALUES (1, '1001:1:00001:abcd', 3, 1, 1, 5, ?, 1, 0, 1, '', NULL, 5, 1, 1, 0)", (body,)
    )
    db.close()
    store = SqliteStore(tmp_path, KEY)
    (message,) = store.history(3, 9)
    assert (message.text, message.group_seq, message.group) == ("between two", 0, None)
    assert store.groups() == []
    store.put_group(GroupRow(group=4, standing=GroupStanding.JOINED, name="Friends"))
    store.commit()
    store.close()
    store = SqliteStore(tmp_path, KEY)
    assert store.groups() == [GroupRow(group=4, standing=GroupStanding.JOINED, name="Friends")]
    store.close()
