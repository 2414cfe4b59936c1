"""Last seen, and who may see it: a small database beside the rows.

Knows:   one row for each account that was seen, or has chosen an audience; one for each device that was connected.
Touches: one file and its write-ahead log, on one thread at a time.
Never:   holds anything that the fold reads.

It is no part of a checkpoint, because it is no part of the log: a heartbeat each half minute from every device would be
most of what is logged.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from nightmail.engine.ports import Damaged, TooNew
from nightmail.model.ids import DEVICE_BITS
from nightmail.model.words import Audience

from . import schema
from .connect import BUSY_MS, explain, open_reader, transaction
from .database_file import DatabaseFile

PRESENCE_NAME = "presence.db"
VERSION = 2
READ_AT_ONCE = 500
COPY_PAGES = 1_000
CACHE = "cache_size = -512"
"""In KiB: a batch touches few pages, and what is asked for often is kept as rows."""

_TABLES = (
    """
    CREATE TABLE person (
        account INTEGER PRIMARY KEY, last_seen INTEGER NOT NULL DEFAULT 0, audience INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    """,
    "CREATE TABLE device (device INTEGER PRIMARY KEY, last_seen INTEGER NOT NULL) STRICT;",
)
"""What each version added."""


class PersonKept(NamedTuple):
    last_seen: int
    """In milliseconds since 1970; 0: never."""
    audience: Audience


NEVER_SEEN = PersonKept(0, Audience.CONTACTS)
"""Of an account without a row. An audience of 0 in a row means the same: none was chosen."""


class PresenceFile:
    """Raises EngineError, here and in each method: one sentence for the operator."""

    def __init__(self, path: str) -> None:
        """`:memory:` keeps nothing."""
        self._path = path
        with self._explained():
            self._db = apsw.Connection(path)
        try:
            with self._explained():
                self._open()
        except BaseException:
            self._db.close(True)
            raise

    def _open(self) -> None:
        db = self._db
        db.set_busy_timeout(BUSY_MS)
        version, application = schema.number(db, "user_version"), schema.number(db, "application_id")
        if version > VERSION:
            raise TooNew(f"{self._path} has schema {version}; this version of Nightmail knows schemas up to {VERSION}")
        if application != schema.APPLICATION and (version or db.execute("SELECT count(*) FROM sqlite_schema").get):
            raise Damaged(f"{self._path} is a database, but not one of Nightmail's")
        if (found := db.execute("PRAGMA quick_check(1)").get) != "ok":
            raise Damaged(f"{self._path} is damaged: {found}")
        for pragma in (
            "journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "temp_store = MEMORY", CACHE,
        ):  # fmt: skip
            db.execute(f"PRAGMA {pragma}").fetchall()
        if version < VERSION:
            with transaction(db):
                for table in _TABLES[version:]:
                    db.execute(table)
                db.execute(f"PRAGMA application_id = {schema.APPLICATION}")
                db.execute(f"PRAGMA user_version = {VERSION}")

    # --- rows ---------------------------------------------------------------------------------

    def read(self, accounts: Collection[int]) -> dict[int, PersonKept]:
        """Those that have a row."""
        wanted, found = list(accounts), dict[int, PersonKept]()
        with self._explained():
            for first in range(0, len(wanted), READ_AT_ONCE):
                some = wanted[first : first + READ_AT_ONCE]
                marks = ",".join("?" * len(some))
                query = f"SELECT account, last_seen, audience FROM person WHERE account IN ({marks})"  # noqa: S608
                for account, last_seen, audience in self._db.execute(query, some):
                    assert isinstance(account, int)
                    assert isinstance(last_seen, int)
                    found[account] = PersonKept(last_seen, Audience(audience) if audience else NEVER_SEEN.audience)
        return found

    def read_devices(self, devices: Collection[int]) -> dict[int, int]:
        """When each was last connected; those that have a row. For the devices of one account."""
        wanted = list(devices)
        marks = ",".join("?" * len(wanted))
        query = f"SELECT device, last_seen FROM device WHERE device IN ({marks})"  # noqa: S608
        with self._explained():
            return dict(self._db.execute(query, wanted))

    def put_last_seen(self, people: Mapping[int, int], devices: Mapping[int, int]) -> None:
        """Durable when this returns, as is `put_audience`."""
        with self._explained(), transaction(self._db):
            self._db.executemany(
                "INSERT INTO person (account, last_seen) VALUES (?, ?) "
                "ON CONFLICT (account) DO UPDATE SET last_seen = excluded.last_seen",
                people.items(),
            )
            self._db.executemany("INSERT OR REPLACE INTO device VALUES (?, ?)", devices.items())

    def put_audience(self, account: int, audience: Audience) -> None:
        with self._explained(), transaction(self._db):
            self._db.execute(
                "INSERT INTO person (account, audience) VALUES (?, ?) "
                "ON CONFLICT (account) DO UPDATE SET audience = excluded.audience",
                (account, int(audience)),
            )

    def remove(self, account: int) -> None:
        """Leaves no readable bytes behind."""
        with self._explained():
            with transaction(self._db):
                self._db.execute("DELETE FROM person WHERE account = ?", (account,))
                own = account << DEVICE_BITS, (account + 1) << DEVICE_BITS
                self._db.execute("DELETE FROM device WHERE device >= ? AND device < ?", own)
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def remove_device(self, device: int) -> None:
        with self._explained(), transaction(self._db):
            self._db.execute("DELETE FROM device WHERE device = ?", (device,))

    def close(self) -> None:
        self._db.close(True)

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except (apsw.Error, OSError, ValueError) as error:
            raise explain(error, self._path) from error


def copy_presence(folder: Path, to: Path) -> None:
    """Copy the file of a server that is running. Without one, its files can be copied as they are."""
    source = folder / PRESENCE_NAME
    if not source.exists():
        return
    with (
        closing(open_reader(DatabaseFile(str(source)), 64)) as db,
        closing(apsw.Connection(str(to / PRESENCE_NAME))) as copy,
        copy.backup("main", db, "main") as backup,
    ):
        while not backup.done:
            backup.step(COPY_PAGES)
