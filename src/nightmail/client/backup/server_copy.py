"""Bringing the file of a backup to the server, part by part; finding it there, fetching it, having it forgotten.

Knows:   what the profile remembers of its copy on the server.
Touches: the server, through `BlobHttp` on threads; the remembered state, through `save`.
Never:   has the former backup forgotten before the new one is whole there; leaves half a backup that could be taken
         for a whole one: the first part goes first.

What is under way is remembered before a byte is sent, so a crash at any point is gone on from.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias

from msgspec.structs import replace

from nightmail.client.errors import BackupDamaged, BackupError, HttpError, Misused
from nightmail.client.limits import ClientLimits
from nightmail.client.media.blob_http import BlobHttp
from nightmail.client.media.transfers import Report, download, no_report, upload
from nightmail.client.media_errors import FileGone, MediaError
from nightmail.client.threads import in_thread

from .schedule import BackupState, PendingPart, ServerCopy
from .server_parts import HEAD, Part, ServerBackup, head_of_part, part_in, together

FILE = "server.backup"
"""In the folder of the profile: the sealed file whose parts are on the server. Increments are added to it."""
SHORTEST_ID = 4

Change: TypeAlias = Callable[[BackupState], BackupState]
Save: TypeAlias = Callable[[Change], Awaitable[BackupState]]
"""Change what is remembered, durably; what it is then."""


def server_file(folder: Path) -> Path:
    return folder.absolute() / FILE


class ServerCopies:
    def __init__(self, http: BlobHttp, limits: ClientLimits) -> None:
        self._http, self._limits = http, limits

    # --- bringing it there ----------------------------------------------------------------------

    async def push(self, state: BackupState, save: Save, report: Report = no_report) -> BackupState:
        """Send what the server lacks of the file. Raises BackupError; what was sent counts the next time."""
        try:
            while state.server is not None and state.server.sent < state.size:
                copy = state.server
                if copy.pending is None:
                    pending = PendingPart(await self._begin(copy.sent, state.size), copy.sent, state.size)
                    state = await save(_with(pending=pending))
                else:
                    state = await self._send(state, copy, copy.pending, save, report)
            while state.server is not None and state.server.retired:
                await self._remove(state.server.retired[0])
                state = await save(_with(retired=state.server.retired[1:]))
        except (HttpError, MediaError) as error:
            raise BackupError(f"the backup could not be brought to the server: {error}") from error
        return state

    async def _begin(self, start: int, end: int) -> str:
        return await in_thread(lambda: self._http.begin(HEAD.size + end - start, "backup"))

    async def _send(
        self, state: BackupState, copy: ServerCopy, pending: PendingPart, save: Save, report: Report
    ) -> BackupState:
        head, file = head_of_part(copy.id, pending.start), Path(state.file)

        async def source(offset: int, limit: int) -> bytes:
            if offset < HEAD.size:
                return head[offset : offset + limit]
            return await in_thread(lambda: _read(file, pending.start + offset - HEAD.size, limit))

        try:
            await upload(
                self._http, pending.blob, HEAD.size + pending.end - pending.start, source, self._limits, report
            )
        except FileGone:
            # It took longer than an upload may. What was sent of it is gone.
            return await save(_with(pending=None))
        return await save(_with(pending=None, sent=pending.end, blobs=(*copy.blobs, pending.blob)))

    # --- finding it ------------------------------------------------------------------------------

    async def all(self) -> list[ServerBackup]:
        """The account's backups, the newest last. Raises BackupError."""
        try:
            return await in_thread(self._all)
        except (HttpError, MediaError) as error:
            raise BackupError(f"the server's backups could not be listed: {error}") from error

    def _all(self) -> list[ServerBackup]:
        parts: list[Part] = []
        for blob in self._http.backups():
            if blob.size < HEAD.size:
                continue
            try:
                # The connection ends with the iterator, after its first block.
                first = next(self._http.fetch(blob.id, 0, blob.size), b"")
            except FileGone:
                continue  # meanwhile
            if part := part_in(blob, first):
                parts.append(part)
        return together(parts)

    async def named(self, name: str) -> ServerBackup:
        """The backup whose id begins so; the newest one that is whole, for no name. Raises BackupError, Misused."""
        found = await self.all()
        if not name:
            found = [each for each in found if each.size][-1:]
            if not found:
                raise BackupError("the server has no backup of this account")
        elif len(name) < SHORTEST_ID:
            raise Misused(f"a backup is named by {SHORTEST_ID} digits of its id or more")
        else:
            found = [each for each in found if each.id.startswith(name)]
        if len(found) != 1:
            raise Misused("no backup on the server has that id" if not found else "several backups begin so")
        return found[0]

    async def fetch(self, backup: ServerBackup, file: Path, report: Report = no_report) -> None:
        """Put a backup into a new file. Whether it is one, opening it tells. Raises BackupError."""
        if not backup.size:
            raise BackupDamaged("the beginning of this backup is missing on the server")
        done = 0
        try:
            with _new_file(file) as written:
                for part in backup.parts:
                    await download(
                        self._http, part.blob.id, HEAD.size, part.blob.size, lambda block: _put(written, block),
                        self._limits, lambda came, _, before=done: report(before + came - HEAD.size, backup.size),
                    )  # fmt: skip
                    done += part.size
        except (HttpError, MediaError) as error:
            raise BackupError(f"the backup could not be fetched: {error}") from error
        except OSError as error:
            raise BackupError(f"{file} cannot be written: {error.strerror}") from error

    # --- forgetting it ---------------------------------------------------------------------------

    async def forget(self, backup: ServerBackup) -> None:
        """Remove it from the server. Raises BackupError; it is safe to repeat."""
        try:
            for blob in backup.blobs:
                await self._remove(blob)
        except (HttpError, MediaError) as error:
            raise BackupError(f"the backup could not be removed: {error}") from error

    async def _remove(self, blob: str) -> None:
        with suppress(FileGone):
            await in_thread(lambda: self._http.remove(blob))


def without(backup: ServerBackup) -> Change:
    """The server has it no more: the next backup goes there whole."""

    def change(state: BackupState) -> BackupState:
        is_this = state.server is not None and state.server.id.hex() == backup.id
        return replace(state, server=None) if is_this else state

    return change


def _with(**fields: object) -> Change:
    """Change these fields of the copy on the server."""

    def change(state: BackupState) -> BackupState:
        assert state.server is not None
        return replace(state, server=replace(state.server, **fields))

    return change


def _read(file: Path, at: int, limit: int) -> bytes:
    try:
        with file.open("rb") as opened:
            opened.seek(at)
            return opened.read(limit)
    except OSError as error:
        raise BackupError(f"{file} cannot be read: {error.strerror}") from error


def _put(file: BinaryIO, block: bytes) -> None:
    file.write(block)


def _new_file(file: Path) -> BinaryIO:
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
