"""What a running client does with files, one errand each: upload, fetch, say whom a blob is for, tidy up.

Knows:   for each errand, what must be committed before which request, and what each refusal means.
Touches: the machine, on the event loop's thread; files and requests on others.
Never:   lets a chunk leave before the digest of what is in its place is durable here; says that this device has a
         file before it is durable here.

Each job may be ended at any await, by a crash, too: the next one begins with what the store says.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nightmail.client.errors import HttpError
from nightmail.client.events import Event
from nightmail.client.limits import ClientLimits
from nightmail.client.link.driver import Driver
from nightmail.client.media_errors import (
    DigestDiffers,
    FileAltered,
    FileGone,
    FileRefused,
    FileUnusable,
    MediaError,
    OtherBlob,
)
from nightmail.client.media_events import FileProgress
from nightmail.client.messages import Message
from nightmail.client.store.port import Store
from nightmail.client.threads import in_thread
from nightmail.e2ee.streams.media import MediaPointer, parse_blob_id
from nightmail.e2ee.streams.stream import SEALED_CHUNK_BYTES

from .addressing import AudienceWanted
from .blob_http import BlobHttp, passes
from .opened_file import KeptFiles
from .rows import ENDING, ERASING, VERIFIED, FileState, MediaRows, UploadRow
from .saved_file import SavingFile, drop_part, part_path
from .sealed_file import DIGEST_BYTES, LocalFile, SealedFile, chunk_at
from .transfers import Report, download, upload


class MediaJobs:
    def __init__(
        self, store: Store, driver: Driver, http: BlobHttp, kept: KeptFiles, limits: ClientLimits,
        tell: Callable[[Event], None],
    ) -> None:  # fmt: skip
        self._store, self._driver, self._http, self._kept, self._limits = store, driver, http, kept, limits
        self._tell = tell
        self.rows = MediaRows(store)

    # --- sending --------------------------------------------------------------------------------

    async def send(self, message_id: str) -> None:
        """UploadRow a file, then let its message go. Raises what passes; whatever does not is the message's failure."""
        if (row := self.rows.upload(message_id)) is None:
            return
        try:
            with self._driver.working() as machine:
                if machine.media(self._driver.clock()).is_too_old(message_id):
                    raise _TooOld
            await self._upload(message_id, row)
        except (FileGone, OtherBlob):
            with self._driver.working() as machine:
                machine.media(self._driver.clock()).begin_again(message_id)
            await self._driver.committed()
            raise
        except (FileAltered, FileUnusable, _TooOld) as error:
            await self._failed(message_id, error.reason)
        except HttpError as error:
            if passes(error):
                raise
            await self._failed(message_id, getattr(error, "code", "") or "refused")

    async def _upload(self, message_id: str, row: UploadRow) -> None:
        sealed = SealedFile(LocalFile(row.path, row.size, row.changed_ns), row.key)
        blob = row.blob
        if not blob:
            blob = await in_thread(lambda: self._http.begin(sealed.size))
            with self._driver.working() as machine:
                is_wanted = machine.media(self._driver.clock()).begun(message_id, blob)
            await self._driver.committed()
            if not is_wanted:
                return
        digests = bytearray(self.rows.digests(message_id))

        async def source(offset: int, most: int) -> bytearray:
            if (first := chunk_at(offset)) is None:
                raise OtherBlob("the server stopped inside a chunk")
            piece = await in_thread(lambda: sealed.piece(first, max(1, most // SEALED_CHUNK_BYTES)))
            await self._remember(message_id, digests, first, piece.digests)
            return piece.data

        await upload(self._http, blob, sealed.size, source, self._limits, self._report(message_id))
        with self._driver.working() as machine:
            digest = sealed.digest(bytes(digests))
            machine.media(self._driver.clock()).completed(message_id, parse_blob_id(blob), digest)
        await self._driver.committed()

    async def _remember(self, message_id: str, known: bytearray, first: int, digests: bytes) -> None:
        """What is in the places of these chunks, before they leave. Raises FileAltered if something else was."""
        before = known[first * DIGEST_BYTES : first * DIGEST_BYTES + len(digests)]
        if not digests.startswith(before) or first * DIGEST_BYTES > len(known):
            raise FileAltered
        if new := digests[len(before) :]:
            with self._driver.working() as machine:
                machine.media(self._driver.clock()).sealed(message_id, len(known) // DIGEST_BYTES, new)
            known += new
            await self._driver.committed()

    async def _failed(self, message_id: str, reason: str) -> None:
        with self._driver.working() as machine:
            machine.media(self._driver.clock()).failed(message_id, reason)
        await self._driver.committed()

    async def address(self, wanted: AudienceWanted) -> None:
        """Name devices that a blob is for; then its message can be sealed for them."""
        is_named = True
        try:
            await in_thread(lambda: self._http.address(wanted.blob, wanted.devices, wanted.life_ms))
        except (FileGone, HttpError) as error:
            if isinstance(error, HttpError) and passes(error):
                raise
            is_named = False
        with self._driver.working() as machine:
            media = machine.media(self._driver.clock())
            media.named(wanted) if is_named else media.not_named(wanted)

    # --- receiving ------------------------------------------------------------------------------

    async def fetch(self, message_id: str) -> None:
        """Fetch the file of a message, and tell the server once it is durable here. Raises what passes, FileUnusable.
        Refused and gone files are remembered as such."""
        message = self._store.message(message_id)
        if message is None or (pointer := message.media) is None:
            return
        try:
            if not self._kept.has(pointer.blob_id):
                with self._kept.arriving(pointer) as arriving:
                    try:
                        await self._download(message_id, pointer, arriving.first, arriving.take)
                        await in_thread(arriving.finish)
                    except (FileRefused, FileGone):
                        arriving.drop()
                        raise
        except (FileRefused, FileGone) as error:
            await self._not_fetched(message, error)
            raise
        with self._driver.working() as machine:
            media = machine.media(self._driver.clock())
            if self._store.message(message_id) is None:
                self.rows.put_due(ERASING, pointer.blob_id)  # its life ended meanwhile
            else:
                media.kept(message, pointer)
        await self._driver.committed()

    async def _download(
        self, message_id: str, pointer: MediaPointer, first: int, take: Callable[[bytes], None]
    ) -> None:
        size, report = pointer.sealed_bytes, self._report(message_id)
        await download(self._http, pointer.blob_id, first, size, take, self._limits, report)

    async def _not_fetched(self, message: Message, error: FileRefused | FileGone) -> None:
        state = FileState.GONE if isinstance(error, FileGone) else FileState.REFUSED
        with self._driver.working() as machine:
            machine.media(self._driver.clock()).not_fetched(message, state, error.reason)
        await self._driver.committed()

    async def save(self, message_id: str, to: Path, *, overwrite: bool) -> Path:
        """Open the kept file of a message outside the profile."""
        message, pointer = self._with_file(message_id)
        path = await in_thread(lambda: self._kept.save(pointer, to, overwrite=overwrite))
        with self._driver.working() as machine:
            is_kept = pointer.size <= self._limits.fetch_bytes
            machine.media(self._driver.clock()).saved(message, str(path), is_kept=is_kept)
        await self._driver.committed()
        return path

    async def save_directly(self, message_id: str, to: Path, *, overwrite: bool) -> Path:
        """Fetch the file of a message to where the person wants it, without a copy in the profile, and tell the server
        once it is durable there. Raises as `fetch` does. What came of it stays where it is if that may pass."""
        message, pointer = self._with_file(message_id)
        with self._driver.working() as machine:
            former = machine.media(self._driver.clock()).saving(message, str(part_path(pointer.blob_id, to)))
        await self._driver.committed()
        await in_thread(lambda: drop_part(pointer.blob_id, former))
        try:
            path = await self._fetch_to(message_id, pointer, to, overwrite=overwrite)
        except (FileRefused, FileGone) as error:
            await self._not_fetched(message, error)
            raise
        with self._driver.working() as machine:
            machine.media(self._driver.clock()).saved_directly(message, pointer, str(path))
        await self._driver.committed()
        return path

    async def _fetch_to(self, message_id: str, pointer: MediaPointer, to: Path, *, overwrite: bool) -> Path:
        with SavingFile.begun(pointer, to) as saving:
            try:
                first = await in_thread(saving.go_on)
                try:
                    await self._download(message_id, pointer, first, saving.take)
                except DigestDiffers:
                    if not first:
                        raise
                    # What was left of an earlier attempt may have been changed since.
                    await in_thread(saving.begin_again)
                    await self._download(message_id, pointer, 0, saving.take)
                self._with_file(message_id)
                return await in_thread(lambda: saving.finish(overwrite=overwrite))
            except MediaError:
                saving.drop()
                raise

    def _with_file(self, message_id: str) -> tuple[Message, MediaPointer]:
        """Raises FileGone if its life is over."""
        message = self._store.message(message_id)
        if message is None or (pointer := message.media) is None:
            raise FileGone
        return message, pointer

    # --- tidying up -----------------------------------------------------------------------------

    async def say_verified(self, blob: str) -> None:
        await self._settle(VERIFIED, blob, lambda: self._http.verified(blob))

    async def end(self, blob: str) -> None:
        """Remove an own blob that no message names, unless the server turned out to have the message."""
        with self._driver.working() as machine:
            is_to_end = machine.media(self._driver.clock()).is_to_end(blob)
        await self._settle(ENDING, blob, (lambda: self._http.remove(blob)) if is_to_end else lambda: None)

    async def erase(self, blob: str) -> None:
        part = self.rows.due_state(ERASING, blob)

        def erase() -> None:
            self._kept.erase(blob)
            drop_part(blob, part)

        await self._settle(ERASING, blob, erase)

    async def _settle(self, what: str, blob: str, work: Callable[[], None]) -> None:
        """Do what is due, and forget it. What the server no longer has is settled."""
        try:
            await in_thread(work)
        except FileGone:
            pass
        except HttpError as error:
            if passes(error):
                raise
        with self._driver.working():
            self.rows.drop_due(what, blob)

    def _report(self, message_id: str) -> Report:
        """Tells each hundredth, so that a listener which is slow is not flooded."""
        told = -1

        def report(done: int, total: int) -> None:
            nonlocal told
            if (hundredth := 100 * done // max(total, 1)) != told:
                told = hundredth
                self._tell(FileProgress(message_id, done, total))

        return report


class _TooOld(MediaError):
    reason = "too_old"
