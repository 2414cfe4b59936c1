"""The schema of the client's database, its migrations, and how it is opened.

Knows:   every table ever shipped, as a list of steps; the number in `user_version` counts them.
Never:   changes a database that is not ours or that a newer Nightmail wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import apsw

from nightmail.client.errors import ClientError, ProfileDamaged, ProfileError, ProfileTooNew
from nightmail.model.words import Kind

from .search import TOKENIZER, indexed, text_in

APPLICATION = 0x4E474D43
"""`application_id`: "NGMC". Another program's database, or the server's, is not taken for a profile."""

BUSY_MS = 5_000

_FIRST = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE stream (
    peer INTEGER NOT NULL, lane INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (peer, lane)
) STRICT, WITHOUT ROWID;
CREATE TABLE outgoing (
    peer INTEGER NOT NULL, lane INTEGER NOT NULL, n INTEGER NOT NULL, row BLOB NOT NULL, PRIMARY KEY (peer, lane, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE message (
    row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    peer INTEGER NOT NULL, by INTEGER NOT NULL, own INTEGER NOT NULL, at INTEGER NOT NULL,
    body BLOB NOT NULL, kind INTEGER NOT NULL, life_ms INTEGER NOT NULL,
    state INTEGER NOT NULL, reason TEXT NOT NULL, places BLOB,
    shown_at INTEGER NOT NULL, id_at INTEGER NOT NULL, id_sequence INTEGER NOT NULL
) STRICT;
CREATE INDEX message_shown ON message (peer, shown_at, id_at, id_sequence, id);
CREATE TABLE numbered (
    by INTEGER NOT NULL, peer INTEGER NOT NULL, lane INTEGER NOT NULL, n INTEGER NOT NULL,
    id TEXT NOT NULL, mark INTEGER NOT NULL, PRIMARY KEY (by, peer, lane, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX numbered_mark ON numbered (mark, by, lane, n) WHERE mark > 0;
CREATE TABLE conversation (peer INTEGER PRIMARY KEY, handle TEXT NOT NULL, seen INTEGER NOT NULL) STRICT;
CREATE TABLE unopened (lane INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (lane, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE early (
    by INTEGER NOT NULL, peer INTEGER NOT NULL, lane INTEGER NOT NULL, device INTEGER NOT NULL,
    state INTEGER NOT NULL, reason TEXT NOT NULL, at INTEGER NOT NULL, numbers BLOB NOT NULL,
    UNIQUE (by, peer, lane, device, state, reason)
) STRICT;
CREATE TABLE list (account INTEGER PRIMARY KEY, version INTEGER NOT NULL, devices BLOB NOT NULL) STRICT;
"""

_SEARCH = """
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3');
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
CREATE TABLE contact (
    account INTEGER PRIMARY KEY, handle TEXT NOT NULL, name TEXT NOT NULL, blocked INTEGER NOT NULL
) STRICT;
"""
"""The index holds no text, only which word is in which row of `message`; what is deleted leaves it at once."""

_SEALED = """
CREATE TABLE peer (device INTEGER PRIMARY KEY, state BLOB NOT NULL) STRICT;
CREATE TABLE trusted (account INTEGER PRIMARY KEY, row BLOB NOT NULL) STRICT;
CREATE TABLE claim (device INTEGER PRIMARY KEY, request INTEGER NOT NULL) STRICT;
CREATE TABLE missed (id TEXT PRIMARY KEY, by INTEGER NOT NULL, at INTEGER NOT NULL, healed INTEGER NOT NULL) STRICT;
CREATE TABLE orphan (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE errand (name TEXT PRIMARY KEY, state BLOB NOT NULL) STRICT, WITHOUT ROWID;
"""

_WORDS = f"""
DROP TABLE words;
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = '{" ".join(TOKENIZER)}', prefix = '2 3');
"""


def index_again(db: apsw.Connection) -> None:
    """Scripts without spaces are indexed in pairs from here on (unspaced_scripts.py)."""
    db.execute(_WORDS)
    db.execute("INSERT INTO words (words, rank) VALUES ('secure-delete', 1)")
    for row, body in db.execute("SELECT row, body FROM message WHERE kind = ?", (Kind.TEXT,)):
        if text := text_in(Kind.TEXT, body):
            db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row, indexed(text)))


_DEADLINES = """
ALTER TABLE message ADD COLUMN deadline INTEGER NOT NULL DEFAULT 0;
UPDATE message SET deadline = 1 WHERE life_ms > 0 AND (state = 3 OR own AND (at > 0 OR state = 4));
CREATE INDEX message_deadline ON message (deadline) WHERE deadline > 0;
CREATE INDEX message_change ON message (peer, shown_at, id_at, id_sequence, id) WHERE kind = 3 AND state <> 4;
"""
"""Messages with a timer that were read (state 3), sent or failed (4) before anybody counted it: `UNCOUNTED`."""

_GROUPS = """
ALTER TABLE message ADD COLUMN group_seq INTEGER NOT NULL DEFAULT 0;
CREATE TABLE chat (number INTEGER PRIMARY KEY, row BLOB NOT NULL, members BLOB) STRICT;
CREATE TABLE sender_chain (number INTEGER PRIMARY KEY, state BLOB NOT NULL) STRICT;
CREATE TABLE holder (
    number INTEGER NOT NULL, device INTEGER NOT NULL, registration INTEGER NOT NULL,
    lacks INTEGER NOT NULL, tries INTEGER NOT NULL, PRIMARY KEY (number, device, registration)
) STRICT, WITHOUT ROWID;
CREATE TABLE receiving_chain (
    number INTEGER NOT NULL, device INTEGER NOT NULL, key_id BLOB NOT NULL, state BLOB NOT NULL,
    PRIMARY KEY (number, device, key_id)
) STRICT, WITHOUT ROWID;
"""
"""`number` is that of the group: the word is SQL's own."""

_LATER = """
CREATE TABLE later (
    id TEXT PRIMARY KEY, serial INTEGER NOT NULL, deliver_at INTEGER NOT NULL, ended INTEGER NOT NULL, row BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX later_open ON later (serial) WHERE ended = 0;
"""
"""Messages that were scheduled: the row says everything."""

_UNSAVED = "CREATE TABLE unsaved (name TEXT PRIMARY KEY, change INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
"""What changed since the last backup, each with the number of its newest change (`sqlite_changes.py`)."""


def index_files(db: apsw.Connection) -> None:
    """Files are found by their names, and by what was written to them, from here on."""
    for row, body in db.execute("SELECT row, body FROM message WHERE kind = ?", (Kind.MEDIA,)):
        if text := text_in(Kind.MEDIA, body):
            db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row, indexed(text)))


Step: TypeAlias = "str | Callable[[apsw.Connection], None]"

STEPS: tuple[Step, ...] = (_FIRST, _SEARCH, _SEALED, index_again, _DEADLINES, _GROUPS, _LATER, _UNSAVED, index_files)
"""Step n turns version n into n + 1. Shipped steps never change; only add new ones."""


CIPHER = "chacha20"
"""ChaCha20-Poly1305 for every page, in the database and in its write-ahead log: a changed page is not read."""


def open_database(path: str, key: bytes, steps: tuple[Step, ...] = STEPS) -> apsw.Connection:
    db = apsw.Connection(path)
    try:
        db.set_busy_timeout(BUSY_MS)
        _unseal(db, path, key)
        _check(db, path, steps)
        _set(db, path, "journal_mode", "WAL", "wal")
        _set(db, path, "synchronous", "FULL", 2)
        # What is deleted is overwritten with zeros, and no temporary file ever holds a copy.
        _set(db, path, "secure_delete", "ON", 1)
        _set(db, path, "temp_store", "MEMORY", 2)
        _migrate(db, steps)
    except BaseException:
        db.close(True)
        raise
    return db


def explain(error: BaseException, path: str) -> ClientError:
    """The error as one sentence, in the class that says what to do about it."""
    if isinstance(error, (apsw.NotADBError, apsw.CorruptError)):
        return ProfileDamaged(f"{path} is not what was written under this profile's key")
    return ProfileError(f"{path} cannot be opened for writing: {error}")


def _unseal(db: apsw.Connection, path: str, key: bytes) -> None:
    """Pass the raw key, without derivation. A SQLite without encryption ignores these pragmas, so read them back."""
    db.pragma("cipher", CIPHER)
    if db.pragma("key", f"raw:{key.hex()}") != "ok" or db.pragma("cipher") != CIPHER:
        raise ProfileError(f"{path} cannot be sealed: this SQLite knows no {CIPHER}")


def _check(db: apsw.Connection, path: str, steps: tuple[Step, ...]) -> None:
    version, application = db.pragma("user_version"), db.pragma("application_id")
    if application != APPLICATION and (version or db.execute("SELECT count(*) FROM sqlite_schema").get):
        raise ProfileDamaged(f"{path} is a database, but not a Nightmail profile")
    if version > len(steps):
        raise ProfileTooNew(f"{path} has schema {version}; this version of Nightmail knows schemas up to {len(steps)}")


def _migrate(db: apsw.Connection, steps: tuple[Step, ...]) -> None:
    """Run the missing steps, all or nothing."""
    version = db.pragma("user_version")
    if version == len(steps):
        return
    with db:
        for step in steps[version:]:
            db.execute(step) if isinstance(step, str) else step(db)
        db.pragma("application_id", APPLICATION)
        db.pragma("user_version", len(steps))


def _set(db: apsw.Connection, path: str, pragma: str, value: str, want: str | int) -> None:
    db.execute(f"PRAGMA {pragma} = {value}").fetchall()
    if (got := db.execute(f"PRAGMA {pragma}").get) != want:
        raise ProfileError(f"{path}: SQLite answers {pragma} = {got} where {want} is needed")
