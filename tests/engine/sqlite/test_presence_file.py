"""Last seen and audiences, on disk."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from nightmail.engine.ports import Damaged, EngineError, TooNew
from nightmail.engine.sqlite.presence_file import PRESENCE_NAME, PersonKept, PresenceFile, copy_presence
from nightmail.model.ids import device_id
from nightmail.model.words import Audience

ADA, BEN, CAROL = 11, 13, 15
PHONE, LAPTOP = device_id(ADA, 1), device_id(ADA, 2)


def test_what_was_stored_is_there_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / PRESENCE_NAME)
    with closing(PresenceFile(path)) as file:
        file.put_last_seen({ADA: 1_000, BEN: 2_000}, {PHONE: 1_500, LAPTOP: 2_500})
        file.put_audience(BEN, Audience.NOBODY)
        file.put_audience(CAROL, Audience.EVERYONE)
        file.put_last_seen({ADA: 3_000}, {PHONE: 3_500})
    with closing(PresenceFile(path)) as file:
        assert file.read([ADA, BEN, CAROL, 17]) == {
            ADA: PersonKept(3_000, Audience.CONTACTS),
            BEN: PersonKept(2_000, Audience.NOBODY),
            CAROL: PersonKept(0, Audience.EVERYONE),
        }
        assert file.read_devices([PHONE, LAPTOP, 17]) == {PHONE: 3_500, LAPTOP: 2_500}


def test_what_was_stored_is_durable_before_the_call_returns(tmp_path: Path) -> None:
    with closing(PresenceFile(str(tmp_path / PRESENCE_NAME))) as file:
        file.put_audience(ADA, Audience.NOBODY)
        # Another process would see it, too; and a commit is synced before it returns.
        with closing(apsw.Connection(str(tmp_path / PRESENCE_NAME))) as other:
            assert other.execute("SELECT account, audience FROM person").fetchall() == [(ADA, 3)]
            assert other.execute("PRAGMA journal_mode").get == "wal"


def test_an_account_that_is_removed_leaves_nothing_behind(tmp_path: Path) -> None:
    number = 0x1367E18D9B02F
    with closing(PresenceFile(str(tmp_path / PRESENCE_NAME))) as file:
        file.put_last_seen({number: 1_000}, {device_id(number, 1): 1_000, PHONE: 1_000})
        file.remove(number)
        left = b"".join(path.read_bytes() for path in tmp_path.iterdir() if not path.name.endswith("-shm"))
        assert (file.read([number]), number.to_bytes(7, "big").lstrip(b"\0") in left) == ({}, False)
        assert file.read_devices([device_id(number, 1), PHONE]) == {PHONE: 1_000}


def test_a_device_that_is_removed_is_forgotten(tmp_path: Path) -> None:
    with closing(PresenceFile(str(tmp_path / PRESENCE_NAME))) as file:
        file.put_last_seen({}, {PHONE: 1_000, LAPTOP: 2_000})
        file.remove_device(PHONE)
        assert file.read_devices([PHONE, LAPTOP]) == {LAPTOP: 2_000}


def test_a_file_of_the_first_version_is_taken_over(tmp_path: Path) -> None:
    path = str(tmp_path / PRESENCE_NAME)
    with closing(PresenceFile(path)) as file:
        file.put_audience(ADA, Audience.NOBODY)
    with closing(apsw.Connection(path)) as db:
        db.execute("DROP TABLE device; PRAGMA user_version = 1")
    for _ in range(2):
        with closing(PresenceFile(path)) as file:
            file.put_last_seen({}, {PHONE: 1_000})
            found = file.read([ADA]), file.read_devices([PHONE])
        assert found == ({ADA: PersonKept(0, Audience.NOBODY)}, {PHONE: 1_000})


def test_thousands_are_read_at_once(tmp_path: Path) -> None:
    with closing(PresenceFile(str(tmp_path / PRESENCE_NAME))) as file:
        file.put_last_seen({account: account for account in range(1, 3_001)}, {})
        assert file.read(range(1, 3_001)) == {
            account: PersonKept(account, Audience.CONTACTS) for account in range(1, 3_001)
        }


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / PRESENCE_NAME)
    PresenceFile(path).close()
    with closing(apsw.Connection(path)) as db:
        db.execute("PRAGMA user_version = 3")
    with pytest.raises(TooNew, match="schema 3"):
        PresenceFile(path)


@pytest.mark.parametrize("damage", ["another program's", "no database"])
def test_what_is_no_file_of_ours_is_refused_in_a_sentence(tmp_path: Path, damage: str) -> None:
    path = tmp_path / PRESENCE_NAME
    if damage == "no database":
        path.write_bytes(b"not a database" * 1_000)
    else:
        with closing(apsw.Connection(str(path))) as db:
            db.execute("CREATE TABLE theirs (a)")
    with pytest.raises(Damaged, match=PRESENCE_NAME):
        PresenceFile(str(path))


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no such folder"):
        PresenceFile(str(tmp_path / "no such folder" / PRESENCE_NAME))


def test_a_copy_of_a_file_in_use_holds_everything_committed(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    with closing(PresenceFile(str(tmp_path / PRESENCE_NAME))) as file:
        file.put_audience(ADA, Audience.NOBODY)
        copy_presence(tmp_path, tmp_path / "copy")
    with closing(PresenceFile(str(tmp_path / "copy" / PRESENCE_NAME))) as copy:
        assert copy.read([ADA]) == {ADA: PersonKept(0, Audience.NOBODY)}
