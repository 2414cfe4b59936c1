"""A start that is refused changes nothing: what was wrong is put right, and everything is there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from nightmail.engine.data_folder import LOCK_NAME
from nightmail.engine.filelog.segment import number_of
from nightmail.engine.ports import Damaged, EngineError
from nightmail.engine.sqlite import FILE_NAME
from tests.embedded import Server, live
from tests.engine.rig import PHONE, a_message

MESSAGES = 60
LONG_AGO_NS = 1_700_000_000 * 10**9

Damage = Callable[[Path, Path], None]
"""Does something to a file, given the same file of another folder."""


def removed(file: Path, _: Path) -> None:
    file.unlink()


def emptied(file: Path, _: Path) -> None:
    file.write_bytes(b"")


def halved(file: Path, _: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def of_another_folder(file: Path, other: Path) -> None:
    shutil.copyfile(other, file) if other.exists() else file.unlink()


def a_folder_instead(file: Path, _: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES: tuple[Damage, ...] = (removed, emptied, halved, of_another_folder, a_folder_instead)


def a_life(folder: Path, copy: Path, messages: int = MESSAGES) -> list[str]:
    """A folder as a killed process leaves it: checkpoints in the write-ahead log, records behind them."""
    server = Server(folder)
    texts = live(server, messages)
    server.close()  # so the database file itself holds something, too
    server = Server(folder)
    server.loop.save(at_once=True)
    more = [f"and {n} {'x' * 300}" for n in range(messages + 1, messages + 60)]
    for n, text in enumerate(more, messages + 1):
        server.say(PHONE, a_message(n, text=text))
    shutil.copytree(folder, copy)
    server.close()
    return texts + more


def put_right(folder: Path, whole: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    for path in folder.iterdir():
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


def everything_in(folder: Path) -> dict[str, tuple[bytes | None, int]]:
    return {
        path.name: (path.read_bytes() if path.is_file() else None, path.stat().st_mtime_ns) for path in folder.iterdir()
    }


def texts_in(folder: Path) -> list[str]:
    server = Server(folder)
    try:
        return server.texts()
    finally:
        server.close()


@pytest.fixture(scope="module", params=["killed", "stopped"])
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[str]]:
    """A folder, another one, and what waits in the first."""
    base = tmp_path_factory.mktemp("lived")
    texts = a_life(base / "a", base / "a killed")
    a_life(base / "b", base / "b killed", 40)
    if request.param == "killed":
        return base / "a killed", base / "b killed", texts
    return base / "a", base / "b", texts


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_refused_start_changes_nothing_and_what_starts_has_everything(
    lived: tuple[Path, Path, list[str]], tmp_path: Path, damage: Damage
) -> None:
    whole, other, texts = lived
    folder, refused = tmp_path / "data", dict[str, str]()
    names = sorted(path.name for path in whole.iterdir() if path.name not in (LOCK_NAME, f"{FILE_NAME}-shm"))
    for name in names:
        put_right(folder, whole)
        damage(folder / name, other / name)
        before = everything_in(folder)
        try:
            found = texts_in(folder)
        except EngineError as error:
            refused[name] = str(error)
            assert everything_in(folder) == before, name
            put_right(folder, whole)
            found = texts_in(folder)
        assert found == texts, name
    assert all("\n" not in sentence for sentence in refused.values())
    # Without these nothing can be whole: the rows, and the last segment with a batch.
    assert FILE_NAME in refused
    assert [name for name in names if number_of(name) is not None][-2] in refused


def test_a_killed_folder_without_its_database_keeps_its_write_ahead_log(tmp_path: Path) -> None:
    texts = a_life(tmp_path / "lived", tmp_path / "data")
    (tmp_path / "data" / FILE_NAME).rename(tmp_path / "aside")
    with pytest.raises(EngineError, match=r"rows\.db is missing, but its write-ahead log is not: put the file back$"):
        Server(tmp_path / "data")
    (tmp_path / "aside").rename(tmp_path / "data" / FILE_NAME)
    assert texts_in(tmp_path / "data") == texts


def test_damage_in_the_middle_of_an_older_segment_is_found_before_anything_is_written(tmp_path: Path) -> None:
    a_life(tmp_path / "lived", folder := tmp_path / "data")
    needed = [path for path in sorted(folder.iterdir()) if number_of(path.name) is not None][-3]
    data = bytearray(needed.read_bytes())
    data[3_000] ^= 1
    needed.write_bytes(data)
    before = everything_in(folder)
    with pytest.raises(EngineError, match=needed.name):
        Server(folder)
    assert everything_in(folder) == before


def test_a_new_folder_is_fine(tmp_path: Path) -> None:
    assert texts_in(tmp_path / "new") == []


FLIPS = {FILE_NAME: 200, f"{FILE_NAME}-wal": 60, f"{FILE_NAME}-sums0": 20, f"{FILE_NAME}-sums1": 20}
"""Single bits to flip in each file."""


def state_in(folder: Path) -> tuple[list[str], dict[str, list[Any]]]:
    """Everything that a server finds there, and every stored row."""
    texts = texts_in(folder)
    with closing(apsw.Connection(str(folder / FILE_NAME))) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return texts, {table: db.execute(f"SELECT * FROM {table}").fetchall() for table in tables}


@pytest.mark.parametrize("name", FLIPS)
def test_a_flipped_bit_never_leads_to_another_state(
    lived: tuple[Path, Path, list[str]], tmp_path: Path, name: str
) -> None:
    whole, _, _ = lived
    put_right(tmp_path / "data", whole)
    good = state_in(tmp_path / "data")
    data, chance, refused = bytearray((whole / name).read_bytes()), Random(name), 0
    for _ in range(FLIPS[name] if data else 0):
        at, bit = chance.randrange(len(data)), 1 << chance.randrange(8)
        put_right(tmp_path / "data", whole)
        data[at] ^= bit
        (tmp_path / "data" / name).write_bytes(data)
        data[at] ^= bit
        before = everything_in(tmp_path / "data")
        try:
            found = state_in(tmp_path / "data")
        except Damaged:
            refused += 1
            assert everything_in(tmp_path / "data") == before
        else:
            # Unused bytes of a page, or a checkpoint that the log repeats.
            assert found == good, (at, bit)
    assert refused or name != FILE_NAME
