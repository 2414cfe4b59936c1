"""What an operator can do to a data folder: each gets one clear sentence, and nothing is lost."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from nightmail.engine.data_folder import LOCK_NAME
from nightmail.engine.filelog.segment import name_of
from nightmail.engine.loop import LoopLimits
from nightmail.engine.ports import Damaged, EngineError, InUse, TooNew
from nightmail.engine.saver import SaverLimits
from nightmail.engine.sqlite import FILE_NAME
from nightmail.model.answers import Accepted, Done
from nightmail.model.records import Acked
from nightmail.model.refusals import DiskFull
from nightmail.model.words import Lane
from sim.faults.disk import Disk
from sim.faults.disk_vfs import DiskVfs
from tests.embedded import Server, live
from tests.engine.rig import PHONE, TABLET, a_message
from tests.engine.sqlite.editing import sum_again

ROOT = Path(__file__).parent.parent
MESSAGES = 60


class Data:
    """A folder in which a server has lived, and what must be found in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        server = Server(folder)
        self.texts = live(server, MESSAGES)
        server.close()
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}

    @property
    def segments(self) -> list[str]:
        return sorted(name for name in self.files if name.startswith("log-"))

    @property
    def holding(self) -> list[str]:
        """Those that the rows still need. The last one is the spare."""
        return self.segments[-4:-1]

    def put(self, name: str, data: bytes) -> None:
        (self.folder / name).write_bytes(data)

    def restore(self) -> None:
        for path in self.folder.iterdir():
            path.unlink()
        for name, data in self.files.items():
            self.put(name, data)

    def refused(self, kind: type[EngineError], *names: str) -> str:
        """It cannot be opened, and the one sentence says what is wrong with which file."""
        before = {path.name: path.read_bytes() for path in self.folder.iterdir() if path.name.startswith("log-")}
        with pytest.raises(EngineError) as raised:
            Server(self.folder).close()
        sentence = str(raised.value)
        assert type(raised.value) is kind, sentence
        assert "\n" not in sentence
        assert all(name in sentence for name in names), sentence
        # Nothing of the log was touched.
        assert before == {name: (self.folder / name).read_bytes() for name in before}
        return sentence

    def is_whole(self) -> bool:
        server = Server(self.folder)
        found = server.texts()
        server.close()
        return found == self.texts


@pytest.fixture
def data(tmp_path: Path) -> Data:
    made = Data(tmp_path / "data")
    assert len(made.segments) >= 4
    return made


def test_an_untouched_folder_opens_with_everything_there(data: Data) -> None:
    assert data.is_whole()


# --- the log ----------------------------------------------------------------------------------


def test_a_truncated_segment_is_refused_and_whole_again_when_it_is_put_back(data: Data) -> None:
    for name in data.holding:
        for size in (0, 100, 512, 2_000, len(data.files[name]) - 1):
            data.put(name, data.files[name][:size])
            data.refused(Damaged, name)
            data.restore()
    assert data.is_whole()


def test_a_spare_that_was_truncated_is_refused_or_made_anew(data: Data) -> None:
    spare = data.segments[-1]
    for size in (512, 2_000, len(data.files[spare]) - 1):
        data.put(spare, data.files[spare][:size])
        data.refused(Damaged, spare)
        data.restore()
    data.put(spare, b"")
    assert data.is_whole()


def test_a_flipped_bit_is_refused_or_changes_nothing(data: Data) -> None:
    chance, complaints = Random(7), list[tuple[int, str]]()
    for nth, name in enumerate(data.segments):
        for _ in range(25):
            bit = chance.randrange(len(data.files[name]) * 8)
            flipped = bytearray(data.files[name])
            flipped[bit // 8] ^= 1 << bit % 8
            data.put(name, bytes(flipped))
            try:
                assert data.is_whole()
            except Damaged as error:
                complaints.append((nth, str(error)))
            data.restore()
    assert len(complaints) > 20
    for nth, sentence in complaints:
        # Named is the file, or the one before it, whose offsets should go on in it.
        assert any(name in sentence for name in data.segments[max(nth - 1, 0) : nth + 1]), sentence
    assert data.is_whole()


def test_a_segment_of_another_folder_is_refused(data: Data, tmp_path: Path) -> None:
    other = Data(tmp_path / "other")
    last = data.segments[-1]
    data.put(last, other.files[last])
    assert "is foreign: it belongs to data folder" in data.refused(Damaged, last)
    data.restore()
    assert data.is_whole()


def test_a_segment_that_is_something_else_altogether_is_refused(data: Data) -> None:
    last = data.segments[-1]
    data.put(last, b"#!/bin/sh\necho hello\n" * 400)
    data.refused(Damaged, last)
    data.restore()
    assert data.is_whole()


def test_a_segment_that_was_removed_is_missed(data: Data) -> None:
    middle = data.segments[-2]
    (data.folder / middle).unlink()
    data.refused(Damaged, middle)
    for name in data.segments:
        (data.folder / name).unlink(missing_ok=True)
    assert "segments are missing" in data.refused(Damaged)
    data.restore()
    assert data.is_whole()


def test_files_that_are_not_ours_are_left_alone(data: Data) -> None:
    data.put("notes.txt", b"mine")
    data.put("log-1.seg", b"mine")
    data.put("log-00000001.seg.bak", b"mine")
    assert data.is_whole()
    assert (data.folder / "notes.txt").read_bytes() == b"mine"


# --- the rows ---------------------------------------------------------------------------------


def in_database(data: Data, statement: str) -> None:
    db = apsw.Connection(str(data.folder / FILE_NAME))
    db.execute(statement).fetchall()
    db.close()


def test_a_database_of_a_newer_version_is_refused_and_left_as_it_was(data: Data) -> None:
    in_database(data, "PRAGMA user_version = 99")
    before = (data.folder / FILE_NAME).read_bytes()
    assert "has schema 99" in data.refused(TooNew, str(data.folder / FILE_NAME))
    assert (data.folder / FILE_NAME).read_bytes() == before
    data.restore()
    assert data.is_whole()


def test_what_is_not_a_database_is_refused(data: Data) -> None:
    data.put(FILE_NAME, b"not a database " * 1_000)
    data.refused(Damaged, str(data.folder / FILE_NAME), "is not a database")
    data.restore()
    assert data.is_whole()


def test_a_database_of_somebody_else_is_refused(data: Data) -> None:
    (data.folder / FILE_NAME).unlink()
    in_database(data, "CREATE TABLE theirs (x)")
    data.refused(Damaged, str(data.folder / FILE_NAME), "not one of Nightmail's")
    data.restore()
    assert data.is_whole()


@pytest.mark.parametrize("left", [None, b""], ids=["gone", "empty"])
def test_without_its_database_a_log_is_refused_and_no_new_database_is_made(data: Data, left: bytes | None) -> None:
    (data.folder / FILE_NAME).unlink()
    if left is not None:
        data.put(FILE_NAME, left)
    assert "is missing, but its log is there" in data.refused(Damaged, data.segments[-1])
    data.restore()
    assert data.is_whole()


def test_a_database_of_an_earlier_time_is_refused_alone_and_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    server = Server(tmp_path)
    live(server, 10)
    server.close()
    old = {path.name: path.read_bytes() for path in tmp_path.glob(f"{FILE_NAME}*")}
    server = Server(tmp_path)
    for n in range(11, 60):
        server.say(PHONE, a_message(n, text="x" * 300))
    server.loop.save(at_once=True)
    server.close()
    new = {path.name: path.read_bytes() for path in tmp_path.glob(f"{FILE_NAME}*")}
    (tmp_path / FILE_NAME).write_bytes(old[FILE_NAME])
    with pytest.raises(Damaged, match=r"rows\.db holds checkpoint 7, but its checksums are of 61: "):
        Server(tmp_path)
    for name, data in old.items():
        (tmp_path / name).write_bytes(data)
    # The log does not reach back that far.
    with pytest.raises(Damaged, match=r"^log-\d{8}\.seg begins at offset \d+: offsets from 8 to \d+ are missing$"):
        Server(tmp_path)
    for name, data in new.items():
        (tmp_path / name).write_bytes(data)
    server = Server(tmp_path)
    assert len(server.texts()) == 59
    server.close()


def test_a_damaged_page_that_only_a_later_read_meets_is_told_to_the_operator(data: Data) -> None:
    page = 4_096  # the rows begin on the second one
    before = data.files[FILE_NAME]
    data.put(FILE_NAME, before[:page] + b"\xff" * page + before[2 * page :])
    data.refused(Damaged, f"{FILE_NAME} is damaged at byte {page}: page 2 is not as written")
    sum_again(data.folder)  # as if it happened after the start
    server = Server(data.folder)
    for _ in range(50):
        server.now += 100
        server.loop.tick()
    ready, troubles = server.loop.ready, server.troubles
    server.close()
    assert not ready
    assert [str(data.folder / FILE_NAME) in trouble for trouble in troubles] == [True]


# --- the folder -------------------------------------------------------------------------------


def asked(what: str, folder: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.embedded", what, str(folder), *options]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def opened(folder: Path, *options: str) -> dict[str, Any]:
    """What another process says when it opens the folder."""
    process = asked("open", folder, *options)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return json.loads(said)


def test_a_second_process_is_refused_and_told_who_has_the_folder(data: Data) -> None:
    holder = asked("hold", data.folder)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        with pytest.raises(InUse) as raised:
            Server(data.folder)
        assert str(raised.value) == f"{data.folder} is in use by process {holder.pid}"
    finally:
        holder.kill()
        holder.communicate(timeout=60)
    assert data.is_whole()


def test_a_server_that_runs_is_not_disturbed_by_a_second_one(data: Data) -> None:
    server = Server(data.folder)
    assert opened(data.folder) == {
        "refused": "InUse",
        "because": f"{data.folder} is in use by process {os.getpid()}",
    }
    assert isinstance(server.say(PHONE, a_message(MESSAGES + 1, text="one more")), Accepted)
    server.close()
    data.texts.append("one more")
    assert opened(data.folder)["texts"] == data.texts


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that anybody can reach: those of pytest are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="nightmail-"))
    folder.chmod(0o755)
    yield folder / "data"
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("kept_from", "names"),
    [
        ("", ("data", "cannot be used as the data folder: Permission denied")),
        (FILE_NAME, (FILE_NAME,)),
        ("log-", ("log-", ".seg", "Permission denied")),
    ],
    ids=["folder", "database", "segments"],
)
def test_what_may_only_be_read_is_refused(open_to_all: Path, kept_from: str, names: tuple[str, ...]) -> None:
    data = Data(open_to_all)
    if not kept_from:
        (data.folder / LOCK_NAME).unlink()
    for path in data.folder.iterdir():
        path.chmod(0o444 if path.name.startswith(kept_from) else 0o666)
    data.folder.chmod(0o777 if kept_from else 0o555)
    said = opened(data.folder, "--as-nobody")
    assert said.get("refused") == "Unwritable", said
    assert all(name in said["because"] for name in names), said
    data.folder.chmod(0o755)
    for path in data.folder.iterdir():
        path.chmod(0o600)
    assert data.is_whole()


def test_something_else_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"a file")
    said = opened(tmp_path / "data")
    assert said == {
        "refused": "Unwritable",
        "because": f"{tmp_path / 'data'} cannot be used as the data folder: File exists",
    }
    assert (tmp_path / "data").read_bytes() == b"a file"


# --- a full disk ------------------------------------------------------------------------------


def test_a_disk_too_full_to_begin_is_refused_and_the_folder_can_be_used_later(tmp_path: Path) -> None:
    said = opened(tmp_path / "data", "--file-bytes", "4096")
    assert said["refused"] in ("Unwritable", "EngineError")
    assert FILE_NAME in said["because"] or name_of(1) in said["because"], said
    assert Data(tmp_path / "data").is_whole()


def test_a_log_that_cannot_be_begun_names_its_file(tmp_path: Path) -> None:
    Server(tmp_path).close()
    for path in tmp_path.glob("log-*"):
        path.unlink()
    said = opened(tmp_path, "--file-bytes", "65536", "--segment-bytes", "1048576")
    assert said["refused"] == "Unwritable"
    assert name_of(1) in said["because"], said
    assert Data(tmp_path).is_whole()


def test_a_segment_that_cannot_be_written_names_its_file_and_keeps_what_it_holds(tmp_path: Path) -> None:
    segment = 1 << 20
    server = Server(tmp_path, segment_bytes=segment)
    texts = live(server, 200)
    server.close()
    said = opened(tmp_path, "--file-bytes", "65536", "--segment-bytes", str(segment))
    assert said.get("refused") == "Unwritable", said
    assert said["because"].startswith(f"{name_of(1)} cannot be written: "), said
    assert opened(tmp_path, "--segment-bytes", str(segment))["texts"] == texts


def test_a_disk_too_full_to_go_on_is_refused_and_loses_nothing(data: Data) -> None:
    said = opened(data.folder, "--file-bytes", "1024")
    assert said.get("refused") in ("Unwritable", "EngineError"), said
    assert any(name in said["because"] for name in (FILE_NAME, *data.segments)), said
    assert data.is_whole()


class FullDisk:
    """A simulated disk on which no space is left for some files."""

    def __init__(self) -> None:
        self.full = ""
        """The beginning of their names."""
        self.disk = Disk(Random(1), self._before)
        self.vfs = DiskVfs("full-disk", self.disk, Random(1))

    def _before(self, operation: str, path: str) -> None:
        # The space of a segment is reserved when it is made, so writing to it goes on.
        takes_space = operation == "create" or (operation == "write" and not path.startswith("data/log-"))
        if self.full and takes_space and path.startswith(f"data/{self.full}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def server(self, limits: LoopLimits) -> Server:
        return Server(Path("data"), vfs="full-disk", files=self.disk.files("data"), limits=limits)


@pytest.fixture
def full() -> Iterator[FullDisk]:
    made = FullDisk()
    yield made
    made.vfs.unregister()


SOON = LoopLimits(saver=SaverLimits(checkpoint_ms=100))


def test_a_log_without_space_refuses_sends_takes_acks_and_goes_on_when_there_is_some(full: FullDisk) -> None:
    server = full.server(SOON)
    texts = live(server, 10)
    full.full = "log-"
    said = [server.say(PHONE, a_message(n, text=f"filling {n} {'x' * 300}")) for n in range(11, 60)]
    taken = sum(isinstance(answer, Accepted) for answer in said)
    assert 0 < taken < 30
    assert said[taken:] == [DiskFull()] * (49 - taken)
    waiting = server.texts()
    assert (waiting[:10], len(waiting)) == (texts, 10 + taken)
    assert server.say(TABLET, Acked(Lane.NORMAL, 10)) == Done()
    full.full = ""
    server.now += 1_000
    server.loop.tick()
    assert not server.log.tight
    assert isinstance(server.say(PHONE, a_message(11 + taken, text="at last")), Accepted)
    server.close()
    again = full.server(SOON)
    assert again.texts() == [*waiting[10:], "at last"]
    again.close()


def test_rows_without_space_tell_the_operator_and_lose_nothing(full: FullDisk) -> None:
    server = full.server(SOON)
    texts = live(server, 10)
    full.full = "rows.db"
    for _ in range(60):
        server.now += 100
        server.loop.tick()
    (trouble,) = server.troubles
    assert trouble == "no space is left to write data/rows.db"
    assert isinstance(server.say(PHONE, a_message(11, text="while full")), Accepted)
    texts.append("while full")
    assert server.texts() == texts
    server.close()
    full.full = ""
    again = full.server(SOON)
    assert again.texts() == texts
    for _ in range(3):
        again.now += 1_000
        again.loop.tick()
    assert (again.rows.pointer, again.troubles) == (again.log.last, [])
    again.close()
