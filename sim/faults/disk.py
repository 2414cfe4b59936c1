"""A disk that forgets what was not synced, sector by sector, when its power is cut.

Knows:   for each file what a process sees and what would be there after a power cut.
Touches: memory; every choice is made by the seeded randomness it was given.
Never:   tears a sector: it is old or new. What was synced stays, in a folder that was synced.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

SECTOR = 512
Before = Callable[[str, str], None]
"""Called with (operation, path) before each. May raise PowerCut, or an OSError that the operation then has."""


class PowerCut(BaseException):
    """Nobody who only expects errors catches it, as nobody survives it."""


class Killed(PowerCut):
    """Only the process dies: the kernel keeps what it was given, durable or not."""


class _Content:
    """One file, whatever its name: two versions and the sectors in which they may differ."""

    __slots__ = ("dirty", "durable", "view")

    def __init__(self, size: int = 0) -> None:
        self.view = bytearray(size)
        self.durable = bytearray()
        self.dirty: set[int] = set()

    def write(self, offset: int, data: bytes) -> None:
        view, end = self.view, offset + len(data)
        if end > len(view):
            # What lies between is zeros that nobody wrote: they, too, are new.
            self.dirty.update(range(len(view) // SECTOR, offset // SECTOR))
            view.extend(bytes(end - len(view)))
        view[offset:end] = data
        self.dirty.update(range(offset // SECTOR, (end + SECTOR - 1) // SECTOR))

    def truncate(self, size: int) -> None:
        if size < len(self.view):
            self.dirty.update(range(size // SECTOR, (len(self.view) + SECTOR - 1) // SECTOR))
            del self.view[size:]
        elif size > len(self.view):
            self.write(len(self.view), bytes(size - len(self.view)))

    def sync(self) -> None:
        view, durable = self.view, self.durable
        _resize(durable, len(view))
        for sector in self.dirty:
            start = sector * SECTOR
            durable[start : start + SECTOR] = view[start : start + SECTOR]
        self.dirty.clear()

    def settle(self, chance: Random, kept: float) -> None:
        """Each sector that was not synced is there, or is what it was before."""
        if not self.dirty and len(self.view) == len(self.durable):
            return
        view, durable = self.view, self.durable
        old, new = len(durable), len(view)
        between = min(max(chance.randint(old // SECTOR, new // SECTOR) * SECTOR, old), new) if old < new else new
        _resize(durable, chance.choice((old, new, between)))
        for sector in sorted(self.dirty):
            start = sector * SECTOR
            if chance.random() < kept and start < min(len(durable), new):
                part = view[start : min(start + SECTOR, len(durable))]
                durable[start : start + len(part)] = part
        self.dirty.clear()


class Disk:
    def __init__(self, chance: Random, before: Before = lambda operation, path: None) -> None:
        self.before = before
        self.hit: Callable[[str], None] = lambda what: None
        """Told of what is worth counting."""
        self.operations = 0
        self._chance = chance
        self._on = True
        self._life = 0
        """Counts the power cuts: a handle belongs to one life."""
        self._names: dict[str, _Content] = {}
        self._durable_names: dict[str, _Content] = {}
        self._changes: list[tuple[str, _Content | None]] = []
        """Names made and removed that no sync of their folder has made durable, in order."""

    # --- power ---

    def power_cut(self) -> None:
        """Now. Until `power_on` everything fails; handles opened before it fail for ever."""
        chance = self._chance
        for path, content in self._changes:
            if chance.random() < 0.5:
                _name(self._durable_names, path, content)
        kept = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        for _, content in sorted(self._durable_names.items()):
            content.settle(chance, kept)
            content.view = bytearray(content.durable)
        self._names = dict(self._durable_names)
        self._changes.clear()
        self._on = False
        self._life += 1

    def kill(self) -> None:
        """The process dies, not the machine: its handles are gone, the kernel keeps what was written."""
        self._life += 1

    def power_on(self) -> None:
        self._on = True

    # --- what a kernel does ---

    def check(self, operation: str, path: str) -> None:
        if not self._on:
            raise OSError(errno.EIO, "the power is off")
        self.operations += 1
        try:
            self.before(operation, path)
        except Killed:
            self.kill()
            self._on = False  # The dying touch nothing.
            raise
        except PowerCut:
            self.power_cut()
            raise

    def names(self, folder: str) -> list[str]:
        self.check("names", folder)
        start = folder + "/"
        return sorted(path.removeprefix(start) for path in self._names if path.startswith(start))

    def exists(self, path: str) -> bool:
        self.check("exists", path)
        return path in self._names

    def create(self, path: str) -> DiskFile:
        self.check("create", path)
        if path in self._names:
            raise FileExistsError(errno.EEXIST, path)
        content = self._names[path] = _Content()
        self._changes.append((path, content))
        return DiskFile(self, path, content)

    def open(self, path: str) -> DiskFile:
        self.check("open", path)
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, path)
        return DiskFile(self, path, self._names[path])

    def remove(self, path: str) -> None:
        self.check("remove", path)
        if self._names.pop(path, None) is None:
            raise FileNotFoundError(errno.ENOENT, path)
        self._changes.append((path, None))

    def sync_folder(self, folder: str) -> None:
        self.check("sync_folder", folder)
        start = folder + "/"
        for path, content in self._changes:
            if path.startswith(start):
                _name(self._durable_names, path, content)
        self._changes = [change for change in self._changes if not change[0].startswith(start)]

    @property
    def is_on(self) -> bool:
        return self._on

    @property
    def life(self) -> int:
        return self._life

    def fail_sync(self, content: _Content) -> None:
        """What was to be synced is there or not, and from now on nobody can tell."""
        shown, at_stake = bytearray(content.view), bool(content.dirty)
        content.settle(self._chance, self._chance.choice((0.0, 0.5, 1.0)))
        # Some file systems go on showing what they could not write; but they will not write it again.
        content.view = shown if self._chance.random() < 0.5 else bytearray(content.durable)
        if at_stake:
            self.hit("failed sync kept the data" if content.durable == shown else "failed sync lost data")

    def fail_write(self, content: _Content, offset: int, data: bytes) -> None:
        """Some of it, from the front."""
        content.write(offset, data[: self._chance.randrange(len(data) // SECTOR + 1) * SECTOR])

    def files(self, folder: str) -> DiskFiles:
        return DiskFiles(self, folder)


class DiskFile:
    """A `File`, and what SQLite needs beyond it."""

    def __init__(self, disk: Disk, path: str, content: _Content) -> None:
        self._disk, self._path, self._content = disk, path, content
        self._open = True
        self._life = disk.life

    def _check(self, operation: str) -> _Content:
        if not self._open:
            raise OSError(errno.EBADF, "the file is closed")
        if self._life != self._disk.life:
            raise OSError(errno.EIO, "the power was cut since this file was opened")
        self._disk.check(operation, self._path)
        return self._content

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._check("read").view[offset : offset + size])

    def write(self, offset: int, data: bytes) -> None:
        try:
            self._check("write").write(offset, data)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                self._disk.fail_write(self._content, offset, data)
            raise

    def truncate(self, size: int) -> None:
        self._check("truncate").truncate(size)

    def sync(self) -> None:
        try:
            self._check("sync").sync()
        except OSError:
            if self._open and self._life == self._disk.life:
                self._disk.fail_sync(self._content)
            raise

    def size(self) -> int:
        return len(self._check("size").view)

    def close(self) -> None:
        self._open = False


class DiskFiles:
    """One folder of it, as `Files`."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk, self._folder = disk, folder

    def names(self) -> list[str]:
        return self._disk.names(self._folder)

    def create(self, name: str, size: int) -> DiskFile:
        file = self._disk.create(f"{self._folder}/{name}")
        try:
            file.truncate(size)
            file.sync()
            self._disk.sync_folder(self._folder)
        except OSError:
            self._disk.remove(f"{self._folder}/{name}")
            raise
        return file

    def open(self, name: str) -> DiskFile:
        return self._disk.open(f"{self._folder}/{name}")

    def remove(self, name: str) -> None:
        self._disk.remove(f"{self._folder}/{name}")


def _resize(data: bytearray, size: int) -> None:
    if len(data) < size:
        data.extend(bytes(size - len(data)))
    else:
        del data[size:]


def _name(names: dict[str, _Content], path: str, content: _Content | None) -> None:
    if content is None:
        names.pop(path, None)
    else:
        names[path] = content
