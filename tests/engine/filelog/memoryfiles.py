"""A disk in memory, small enough to reason about: what is written, what is durable, what fails next.

Knows:   sectors of 512 bytes, each written whole or not at all.
Touches: nothing outside.
Never:   decides by chance; a test says what a power cut keeps.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

SECTOR = 512

Keeps = Callable[[str, int], bool]
"""Of a sector that was written and not synced: did it reach the disk? (name, sector number)"""


def nothing(_name: str, _sector: int) -> bool:
    return False


def everything(_name: str, _sector: int) -> bool:
    return True


class PowerCut(BaseException):
    """Nothing catches this."""


class MemoryFile:
    def __init__(self, files: MemoryFiles, name: str) -> None:
        self._files, self.name = files, name
        self.closed = False

    def read(self, offset: int, size: int) -> bytes:
        assert not self.closed
        return bytes(self._files.seen[self.name][offset : offset + size])

    def write(self, offset: int, data: bytes) -> None:
        assert not self.closed
        self._files.changes += 1
        if self._files.writes_fail:
            kept = self._files.written_of_a_failed_write
            self._put(offset, data[:kept])
            raise OSError(errno.EIO, "write failed")
        self._put(offset, data)
        self._files.pass_moment()

    def _put(self, offset: int, data: bytes) -> None:
        seen = self._files.seen[self.name]
        assert offset + len(data) <= len(seen), "a segment never grows"
        seen[offset : offset + len(data)] = data
        self._files.dirty |= {(self.name, n) for n in range(offset // SECTOR, -(-(offset + len(data)) // SECTOR))}

    def sync(self) -> None:
        assert not self.closed
        assert self.name not in self._files.doomed, "synced again after a failed sync"
        mine = {sector for sector in self._files.dirty if sector[0] == self.name}
        if self._files.syncs_fail:
            self._files.doomed.add(self.name)
            # As real systems do: shown as before, taken for clean, never tried again.
            self._files.dirty -= mine
            raise OSError(errno.EIO, "sync failed")
        self._files.pass_moment()
        self._files.settle(mine)

    def size(self) -> int:
        return len(self._files.seen[self.name])

    def close(self) -> None:
        assert not self.closed
        self.closed = True
        self._files.open_files.remove(self)


class MemoryFiles:
    def __init__(self, durable: dict[str, bytes] | None = None) -> None:
        self.durable = dict(durable or {})
        self.seen = {name: bytearray(data) for name, data in self.durable.items()}
        self.open_files: list[MemoryFile] = []
        self.dirty: set[tuple[str, int]] = set()
        """Sectors that the next sync will write."""
        self.doomed: set[str] = set()
        self.changes = 0
        self.full = self.writes_fail = self.syncs_fail = self.removals_fail = False
        self.shortage = errno.ENOSPC
        """Why nothing can be created while `full`."""
        self.written_of_a_failed_write = 0
        self.moments_left: int | None = None
        """After so many steps the power is cut."""

    def pass_moment(self) -> None:
        if self.moments_left is not None:
            self.moments_left -= 1
            if self.moments_left == 0:
                raise PowerCut

    def names(self) -> list[str]:
        return sorted(self.seen)

    def create(self, name: str, size: int) -> MemoryFile:
        self.changes += 1
        if self.full:
            raise OSError(self.shortage, "it cannot be made")
        if name in self.seen:
            raise FileExistsError(name)
        self.pass_moment()
        self.seen[name] = bytearray(size)
        self.durable[name] = bytes(size)
        self.pass_moment()
        self.doomed.discard(name)
        return self._opened(name)

    def open(self, name: str) -> MemoryFile:
        if name not in self.seen:
            raise FileNotFoundError(name)
        return self._opened(name)

    def _opened(self, name: str) -> MemoryFile:
        file = MemoryFile(self, name)
        self.open_files.append(file)
        return file

    def remove(self, name: str) -> None:
        self.changes += 1
        if self.removals_fail:
            raise OSError(errno.EIO, "remove failed")
        if name not in self.seen:
            raise FileNotFoundError(name)
        self.pass_moment()
        del self.seen[name], self.durable[name]
        self.dirty = {sector for sector in self.dirty if sector[0] != name}

    def after_power_cut(self, keeps: Keeps = nothing) -> MemoryFiles:
        """What the next boot finds."""
        found = MemoryFiles(self.durable)
        found.seen = self.seen
        found.settle({sector for sector in self.unsettled() if keeps(*sector)})
        return MemoryFiles(found.durable)

    def after_kill(self) -> MemoryFiles:
        """What the next process finds: all that was written, durable or not."""
        found = MemoryFiles(self.durable)
        found.seen = {name: bytearray(data) for name, data in self.seen.items()}
        found.dirty = set(self.dirty)
        return found

    def settle(self, sectors: set[tuple[str, int]]) -> None:
        for name in {name for name, _ in sectors}:
            kept = bytearray(self.durable[name])
            for at in (n * SECTOR for of, n in sectors if of == name):
                kept[at : at + SECTOR] = self.seen[name][at : at + SECTOR]
            self.durable[name] = bytes(kept)
        self.dirty -= sectors

    def unsettled(self) -> list[tuple[str, int]]:
        """Sectors that read otherwise than the disk has them."""
        return [
            (name, at // SECTOR)
            for name, durable in self.durable.items()
            for at in range(0, len(durable), SECTOR)
            if self.seen[name][at : at + SECTOR] != durable[at : at + SECTOR]
        ]
