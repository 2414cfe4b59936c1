"""A profile folder: private, held by one process, ours or refused; and how a new device comes to have one."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from nightmail.client.errors import (
    Misused,
    ProfileDamaged,
    ProfileError,
    ProfileInUse,
    ProfileTooNew,
    StoreFailed,
)
from nightmail.client.own_devices import link_request
from nightmail.client.profile.profile import Profile
from nightmail.client.store.rows import Cursors
from nightmail.client.store.sqlite import NAME, SqliteStore
from nightmail.client.store.sqlite_schema import open_database
from nightmail.model.ids import account_id, device_id
from tests.client.profile_files import MARKER, bytes_of, write_marker

KEY = bytes(range(32))

HOLD = """
import sys
from pathlib import Path
from nightmail.client.profile.profile import Profile
profile = Profile(Path(sys.argv[1]))
profile.store.put_cursors(profile.store.cursors().__class__(1, 2, 3))
profile.store.commit()
profile.store.put_cursors(profile.store.cursors().__class__(9, 9, 9))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_profile_is_readable_by_nobody_else(tmp_path: Path) -> None:
    profile = Profile(tmp_path / "deep" / "profile")
    assert stat.S_IMODE(profile.path.stat().st_mode) == 0o700
    profile.close()
    profile.close()


def test_two_processes_cannot_open_one_profile_and_a_killed_one_lets_go_of_it(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(ProfileInUse, match=f"in use by process {other.pid}"):
            Profile(tmp_path)
        other.kill()
        other.wait()
        profile = Profile(tmp_path)
        # Committed before the kill: there. Not committed: gone.
        assert profile.store.cursors() == Cursors(1, 2, 3)
        profile.close()


def test_the_database_is_synced_at_every_commit(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, KEY)
    pragmas = [store._db.pragma(name) for name in ("journal_mode", "synchronous", "secure_delete", "temp_store")]
    assert pragmas == ["wal", 2, 1, 2]
    store.close()


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / NAME))
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(ProfileDamaged):
        SqliteStore(tmp_path, KEY)
    with pytest.raises(ProfileDamaged, match="never sealed"):
        Profile(tmp_path)
    assert (tmp_path / NAME).read_bytes() == before


def test_a_database_under_our_key_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    db = open_database(str(tmp_path / NAME), KEY)
    db.pragma("application_id", 1)
    db.close()
    with pytest.raises(ProfileDamaged, match="not a Nightmail profile"):
        SqliteStore(tmp_path, KEY)


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"not a database" * 1_000)
    with pytest.raises(ProfileDamaged):
        SqliteStore(tmp_path, KEY)


def test_a_newer_profile_is_refused(tmp_path: Path) -> None:
    db = open_database(str(tmp_path / NAME), KEY)
    db.pragma("user_version", 99)
    db.close()
    with pytest.raises(ProfileTooNew):
        SqliteStore(tmp_path, KEY)


def test_a_profile_that_cannot_be_made_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ProfileError, match="cannot be used as a profile"):
        Profile(tmp_path / "file" / "profile")


def test_after_a_failed_write_nothing_more_is_taken_until_it_is_opened_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, KEY)
    store.put_cursors(Cursors(1))
    store.commit()
    store._db.pragma("query_only", 1)
    with pytest.raises(StoreFailed):
        store.put_cursors(Cursors(2))
    store._db.pragma("query_only", 0)
    with pytest.raises(StoreFailed):
        store.put_cursors(Cursors(3))
    with pytest.raises(StoreFailed):
        store.commit()
    store.close()
    again = SqliteStore(tmp_path, KEY)
    assert again.cursors() == Cursors(1)
    again.close()


def test_a_new_device_chooses_its_token_once_and_shows_only_its_digest(tmp_path: Path) -> None:
    request = link_request.begin(tmp_path, "alice", "laptop")
    assert link_request.begin(tmp_path, "alice", "laptop") == request
    link_request.finish(tmp_path, device_id(account_id("alice"), 2))
    profile = Profile(tmp_path)
    identity = profile.store.identity()
    assert identity is not None
    assert (identity.device, link_request.token_digest(identity)) == (
        device_id(account_id("alice"), 2),
        request.token_digest,
    )
    assert identity.token.hex() not in repr(request)
    profile.close()


def test_a_profile_becomes_no_device_that_it_did_not_ask_for(tmp_path: Path) -> None:
    with pytest.raises(Misused):
        link_request.finish(tmp_path, 5)
    link_request.begin(tmp_path, "alice")
    with pytest.raises(Misused):
        link_request.finish(tmp_path, device_id(account_id("bob"), 2))
    link_request.finish(tmp_path, device_id(account_id("alice"), 2))
    with pytest.raises(Misused):
        link_request.begin(tmp_path, "alice")


FIGHT = """
import sys
from pathlib import Path
from nightmail.client.errors import ProfileInUse
from nightmail.client.profile.profile import Profile
won = 0
for _ in range(40):
    try:
        profile = Profile(Path(sys.argv[1]))
    except ProfileInUse:
        continue
    profile.store.next_sequence()
    profile.store.commit()
    profile.close()
    won += 1
print(won)
"""


def test_processes_that_fight_for_a_profile_take_turns_and_harm_nothing(tmp_path: Path) -> None:
    crowd = [
        subprocess.Popen([sys.executable, "-c", FIGHT, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    said = [each.communicate(timeout=60) for each in crowd]
    assert [errors for _, errors in said] == [b""] * 4
    profile = Profile(tmp_path)
    assert profile.store.next_sequence() == sum(int(won) for won, _ in said) + 1
    profile.close()


def test_nothing_that_was_written_can_be_read_in_any_file_of_the_folder(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    write_marker(profile)
    open_files = bytes_of(tmp_path)
    assert len(open_files[f"{NAME}-wal"]) > 0  # the write-ahead log is one of them
    profile.close()
    for files in (open_files, bytes_of(tmp_path)):
        for name, content in files.items():
            for readable in (MARKER, b"sentence", b"CREATE TABLE", b"SQLite format"):
                assert readable not in content, name


def test_a_changed_byte_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    write_marker(profile, 200)
    profile.close()
    database = tmp_path / NAME
    whole = database.read_bytes()
    pages = range(0, len(whole), 4096)
    for offset in [page + inside for page in pages for inside in (0, 20, 2_000, 4_070, 4_095)]:
        damaged = bytearray(whole)
        damaged[offset] ^= 1
        database.write_bytes(damaged)
        with pytest.raises((ProfileDamaged, StoreFailed)):
            _read_all(tmp_path)
    database.write_bytes(whole)
    assert _read_all(tmp_path) == ["ok"]


def _read_all(folder: Path) -> list[str]:
    profile = Profile(folder)
    try:
        rows = profile.store._read("PRAGMA integrity_check")
        return [row[0] for row in rows]
    finally:
        profile.close()


def test_a_page_put_in_place_of_another_is_noticed(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    write_marker(profile, 200)
    profile.close()
    database = tmp_path / NAME
    whole = bytearray(database.read_bytes())
    last = len(whole) - 4096
    whole[last:], whole[last - 4096 : last] = whole[last - 4096 : last], whole[last:]
    database.write_bytes(whole)
    with pytest.raises((ProfileDamaged, StoreFailed)):
        _read_all(tmp_path)
