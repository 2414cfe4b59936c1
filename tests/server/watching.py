"""The system calls of a real process, watched by strace, and what they must show.

    python -m tests.server.watching PLANT FOLDER      a server with a bug: `none` has none

Knows:   strace's lines: a call that is interrupted by another thread's ends in a second line.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

STRACE = shutil.which("strace")
CALLS = (
    "openat,pwrite64,write,writev,sendto,sendmsg,fdatasync,fsync,fallocate,"
    "rename,renameat,renameat2,mkdir,mkdirat,?link,linkat"
)
_LINE = re.compile(r"^(\d+) +(?:<\.\.\. )?(\w+)(?:\(| resumed>)(.*)$")
_BATCH = '"NMB\\1'


class Call(NamedTuple):
    """One call; `begun` and `ended` are places in the one order of all calls."""

    name: str
    text: str
    begun: int
    ended: int

    @property
    def file(self) -> str:
        """What its first descriptor names."""
        found = re.match(r"\d+<([^>]*)>", self.text)
        return found[1] if found else ""

    @property
    def failed(self) -> bool:
        return "= -1 " in self.text


def watch(command: Sequence[str], trace: Path) -> list[str]:
    """The command, watched."""
    assert STRACE
    return [STRACE, "-f", "-y", "-s", "32", "-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(trace), *command]


def calls_of(trace: Path) -> list[Call]:
    under_way: dict[tuple[str, str], tuple[int, str]] = {}
    found: list[Call] = []
    for at, line in enumerate(trace.read_text("utf8", "replace").splitlines()):
        if not (match := _LINE.match(line)):
            continue
        thread, name, text = match.groups()
        if text.endswith("<unfinished ...>"):
            under_way[thread, name] = at, text.removesuffix("<unfinished ...>")
            continue
        begun, before = under_way.pop((thread, name), (at, "")) if "resumed>" in line else (at, "")
        found.append(Call(name, before + text, begun, at))
    return [call for call in found if not call.failed]


def judge_answers(calls: Iterable[Call]) -> int:
    """Returns how many batches were synced before anything was sent. Raises AssertionError."""
    batches = [call for call in calls if call.name == "pwrite64" and ".seg" in call.file and _BATCH in call.text]
    syncs = [call for call in calls if call.name == "fdatasync" and ".seg" in call.file]
    sends = [call for call in calls if call.name in _SENDS and call.file.startswith("socket:")]
    assert len(sends) >= len(batches) > 0
    for batch in batches:
        sent = min((send.begun for send in sends if send.begun > batch.begun), default=None)
        synced = [sync for sync in syncs if sync.file == batch.file and sync.begun > batch.ended]
        ended = min((sync.ended for sync in synced), default=None)
        assert ended is not None, f"never synced: {batch}"
        assert sent is None or ended < sent, f"answered before it was synced: {batch}"
    return len(batches)


_SENDS = ("write", "writev", "sendto", "sendmsg")


def judge_segments(calls: Sequence[Call]) -> int:
    """A segment has its space, and a durable name, before its first batch. Returns how many were made."""
    made = [call for call in calls if call.name == "openat" and ".seg" in call.text and "O_CREAT" in call.text]
    for opened in made:
        path = _result(opened)
        batch = min((call.begun for call in calls if call.file == path and _BATCH in call.text), default=1 << 62)
        between = [call for call in calls if opened.ended < call.begun and call.ended < batch]
        assert any(call.name == "fallocate" and call.file == path for call in between), f"no space reserved: {path}"
        assert any(call.name == "fsync" and call.file == path for call in between), f"not synced: {path}"
        assert _folder_synced(between, path), f"its name is not durable: {path}"
    return len(made)


def judge_names(calls: Sequence[Call], made: Iterable[Path], renamed: Iterable[Path]) -> None:
    """After a folder or file is made or renamed, the folder it is in is synced."""
    for path in made:
        ends = [call.ended for call in calls if _makes(call, path)]
        assert ends, f"never made: {path}"
        assert _folder_synced([call for call in calls if call.begun > ends[0]], str(path)), f"not durable: {path}"
    for path in renamed:
        ends = [call.ended for call in calls if call.name.startswith("rename") and f'"{path}"' in call.text]
        assert ends, f"never renamed: {path}"
        assert _folder_synced([call for call in calls if call.begun > ends[0]], str(path)), f"not durable: {path}"


def _makes(call: Call, path: Path) -> bool:
    if call.name.startswith("mkdir"):
        return f'"{path}"' in call.text
    return call.name == "openat" and "O_CREAT" in call.text and _result(call) == str(path)


def _result(opened: Call) -> str:
    found = re.search(r"= \d+<([^>]*)>$", opened.text)
    return found[1] if found else ""


def _folder_synced(calls: Iterable[Call], path: str) -> bool:
    folder = path.rpartition("/")[0]
    return any(call.name in ("fsync", "fdatasync") and call.file == folder for call in calls)


# --- servers with a bug -----------------------------------------------------------------------


def _no_sync() -> None:
    from nightmail.engine.filelog.files import OsFile  # noqa: PLC0415

    OsFile.sync = lambda self: None


def _late_sync() -> None:
    from nightmail.engine.filelog.files import OsFile  # noqa: PLC0415

    right_sync, right_write, late = OsFile.sync, OsFile.write, list[OsFile]()

    def write(self: OsFile, offset: int, data: bytes) -> None:
        # Before the next write: behind it, a sync of the same file would be in time for what it writes.
        while late:
            right_sync(late.pop(0))
        right_write(self, offset, data)

    def sync(self: OsFile) -> None:
        late.append(self)

    OsFile.sync, OsFile.write = sync, write


def _no_folder_sync() -> None:
    from nightmail.engine import data_folder, durable  # noqa: PLC0415
    from nightmail.engine.filelog import files  # noqa: PLC0415
    from nightmail.server import secret_files  # noqa: PLC0415

    for module in (durable, files, secret_files):
        vars(module)["sync_folder"] = lambda path: None
    assert data_folder.make_folder is durable.make_folder


def _no_space() -> None:
    import os  # noqa: PLC0415

    os.posix_fallocate = lambda descriptor, offset, size: os.ftruncate(descriptor, size)


PLANTS: dict[str, Callable[[], None]] = {
    "none": lambda: None,
    "no sync": _no_sync,
    "late sync": _late_sync,
    "no folder sync": _no_folder_sync,
    "no space": _no_space,
}


def served(plant: str, folder: Path, trace: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.server.watching", plant, str(folder)]
    return subprocess.Popen(watch(command, trace), stdout=subprocess.PIPE, text=True, start_new_session=True)


def main() -> None:
    from tests.server.serve import main as serve  # noqa: PLC0415

    plant = sys.argv.pop(1)
    PLANTS[plant]()
    serve()


if __name__ == "__main__":
    main()
