"""The tables of the database, and the migration of an older one.

Knows:   every table ever shipped, as a list of steps; `user_version` counts them.
Touches: the connection that it is given; all missing steps run in one transaction.
Never:   changes a database that is not Nightmail's or that a newer Nightmail wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

import apsw

from nightmail.engine.ports import Damaged, TooNew

from .row_sums import add_sums, sum_meta
from .stream_migration import pack_streams

Entropy: TypeAlias = Callable[[int], bytes]
"""That many unpredictable bytes (os.urandom, or a seeded stand-in)."""

APPLICATION = 0x4E474D4C
"""`application_id`: "NGML". Tells our databases from others."""

IDENTITY_BYTES = 8

_FIRST = """
CREATE TABLE row (
    kind INTEGER NOT NULL, a INTEGER NOT NULL, b INTEGER NOT NULL,
    version INTEGER NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (kind, a, b)
) STRICT, WITHOUT ROWID;
CREATE TABLE entry (
    queue INTEGER NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (queue, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE note (
    upto INTEGER PRIMARY KEY, at INTEGER NOT NULL, devices BLOB NOT NULL, lines BLOB NOT NULL
) STRICT;
-- Time only grows, so this index too is only ever appended to.
CREATE INDEX note_at ON note (at);
CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('pointer', 0);
"""

# A row of more than a few hundred bytes fills the inner pages of a WITHOUT ROWID tree, too: with six
# rows to a page it takes six pages to find one of 400,000. So the kinds that change with every message
# have trees whose inner pages hold numbers only. Each kind has its own tree, because the few bytes
# that change often are then close together, and a checkpoint writes few pages for many of them.
_TREES_OF_THEIR_OWN = """
CREATE TABLE account (a INTEGER PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL) STRICT;
CREATE TABLE mailbox (a INTEGER PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL) STRICT;
CREATE TABLE changes (a INTEGER PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL) STRICT;
CREATE TABLE stream (
    id INTEGER PRIMARY KEY, a INTEGER NOT NULL, b INTEGER NOT NULL, version INTEGER NOT NULL, value BLOB NOT NULL,
    UNIQUE (a, b)
) STRICT;
INSERT INTO account SELECT a, version, value FROM row WHERE kind = 1 AND b = 0;
INSERT INTO mailbox SELECT a, version, value FROM row WHERE kind = 3 AND b = 0;
INSERT INTO changes SELECT a, version, value FROM row WHERE kind = 4 AND b = 0;
INSERT INTO stream (a, b, version, value) SELECT a, b, version, value FROM row WHERE kind = 2;
DELETE FROM row WHERE kind = 2 OR (kind IN (1, 3, 4) AND b = 0);
"""

# Up to 180 KiB each: among them, other rows would not share pages with their neighbours.
_KEYS = """
CREATE TABLE keys (a INTEGER PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL) STRICT;
INSERT INTO keys SELECT a, version, value FROM row WHERE kind = 8 AND b = 0;
DELETE FROM row WHERE kind = 8 AND b = 0;
"""

# A block of the delivery log may have 120,000 lines, and a trace reads and decodes them a piece at a time.
# The first piece is in `note`; a block that is small, or was written before this step, has no other.
_PIECES = """
CREATE TABLE piece (
    upto INTEGER NOT NULL, nth INTEGER NOT NULL, lines BLOB NOT NULL,
    PRIMARY KEY (upto, nth)
) STRICT;
"""

# What other shards were told and do not have for certain. A node alone has one shard, and none of these.
_FORWARDS = """
CREATE TABLE forward (
    shard INTEGER NOT NULL, k INTEGER NOT NULL, record BLOB NOT NULL,
    PRIMARY KEY (shard, k)
) STRICT;
"""

Step: TypeAlias = str | Callable[[apsw.Connection], None]

STEPS: tuple[Step, ...] = (_FIRST, _TREES_OF_THEIR_OWN, _KEYS, pack_streams, _PIECES, _FORWARDS, add_sums)
"""Step n turns version n into n + 1. Shipped steps never change; only ever add."""

SUMMED = STEPS.index(add_sums) + 1
"""From this version on, rows and pages have checksums."""


def number(db: apsw.Connection, pragma: str) -> int:
    value = db.execute(f"PRAGMA {pragma}").get
    assert isinstance(value, int), (pragma, value)
    return value


def check(db: apsw.Connection, path: str, steps: tuple[Step, ...] = STEPS) -> None:
    """Raises Damaged or TooNew if this database is not for us to open. Reads only."""
    version, application = number(db, "user_version"), number(db, "application_id")
    tables = db.execute("SELECT count(*) FROM sqlite_schema").get
    if application != APPLICATION and (version or tables):
        raise Damaged(f"{path} is a database, but not one of Nightmail's")
    if version > len(steps):
        raise TooNew(f"{path} has schema {version}; this version of Nightmail knows schemas up to {len(steps)}")


def migrate(db: apsw.Connection, entropy: Entropy, steps: tuple[Step, ...] = STEPS) -> None:
    """Run the missing steps, all or nothing. A new database also gets its identity."""
    version = number(db, "user_version")
    if version == len(steps):
        return
    with db:  # a savepoint, and so a transaction
        for step in steps[version:]:
            db.execute(step) if isinstance(step, str) else step(db)
        if version == 0:
            db.execute("INSERT INTO meta VALUES ('log', ?)", (entropy(IDENTITY_BYTES),))
        if version < SUMMED <= len(steps):
            pointer, identity = _read(db, "pointer"), _read(db, "log")
            assert isinstance(pointer, int)
            assert isinstance(identity, bytes)
            db.execute("UPDATE meta SET value = ? WHERE key = 'sum'", (sum_meta(pointer, identity),))
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {len(steps)}")


def read_identity(db: apsw.Connection) -> bytes:
    identity = _read(db, "log")
    if not isinstance(identity, bytes) or len(identity) != IDENTITY_BYTES:
        raise Damaged(f"{db.filename} does not say which log it belongs to")
    return identity


def read_pointer(db: apsw.Connection) -> int:
    pointer = _read(db, "pointer")
    if not isinstance(pointer, int):
        raise Damaged(f"{db.filename} does not say which checkpoint it holds")
    if number(db, "user_version") >= SUMMED and _read(db, "sum") != sum_meta(pointer, read_identity(db)):
        raise Damaged(f"{db.filename} says that it holds checkpoint {pointer}, but that is not what was written")
    return pointer


def _read(db: apsw.Connection, key: str) -> apsw.SQLiteValue:
    return cast("apsw.SQLiteValue", db.execute("SELECT value FROM meta WHERE key = ?", (key,)).get)
