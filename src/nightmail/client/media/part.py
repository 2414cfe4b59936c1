"""Files in the machine: what is being sent, what is to be fetched, and whom a blob is for.

Knows:   the order of things: blob durable at the server, whole, its audience named, and only then its message. What
         goes over HTTP, the worker does (`worker.py`), after the machine has committed why.
Touches: messages that carry a file, before they are numbered; the errands of `rows.py`.
Never:   lets a message be sealed for a device that its blob is not for.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from nightmail.client.machine.context import Context
from nightmail.client.media_events import FileChanged
from nightmail.client.messages import Message, Tick, conversation_id
from nightmail.client.outbox.outbox import Outbox
from nightmail.client.outbox.sending import Sending
from nightmail.client.outbox.ticks import Ticks
from nightmail.client.store.rows import Outgoing
from nightmail.client.timers.lives import left_ms
from nightmail.e2ee.content import decode_content, encode_content
from nightmail.e2ee.streams.media import MediaPointer, encode_pointer
from nightmail.e2ee.streams.stream import KEY_BYTES
from nightmail.model.ids import MessageId, account_of
from nightmail.model.words import Kind, Lane

from .addressing import Addressing, AudienceWanted
from .rows import ENDING, ERASING, SAVING, VERIFIED, FileRow, FileState, MediaRows, UploadRow
from .sealed_file import LocalFile


class Media:
    def __init__(self, context: Context, outbox: Outbox, sending: Sending, ticks: Ticks) -> None:
        self._context, self._outbox, self._sending, self._ticks = context, outbox, sending, ticks
        self.rows = MediaRows(context.store)
        self._named: dict[str, set[int]] = {}
        """Message → devices that its blob is for. Naming one again does no harm, so a restart may forget it."""
        self._wanted: dict[str, set[int]] = {}
        self._gone: set[str] = set()

    # --- sending: until the blob is whole -------------------------------------------------------

    def begin(self, to: int, body: bytes, life_ms: int, lane: Lane, file: LocalFile) -> Message:
        """A file to be sent, and its message, whose pointer names no blob yet. Raises TooLarge."""
        message = self._outbox.draft(to, body, Kind.MEDIA, life_ms)
        key = self._context.secrets.draw(KEY_BYTES)
        upload = UploadRow(path=file.path, size=file.size, changed_ns=file.changed_ns, key=key, lane=lane)
        self.rows.put_upload(message.id, upload)
        self._put(message, FileRow(FileState.UPLOADING, path=file.path))
        return message

    def begun(self, message_id: str, blob: str) -> bool:
        """The server has begun a blob for it; False if it was given up meanwhile."""
        if (upload := self.rows.upload(message_id)) is None:
            self.rows.put_due(ENDING, blob)
            return False
        self.rows.put_upload(message_id, replace(upload, blob=blob))
        return True

    def sealed(self, message_id: str, first: int, digests: bytes) -> None:
        """Chunks were sealed, and are about to leave: no other content may be sealed in their places."""
        self.rows.put_digests(message_id, first, digests)

    def begin_again(self, message_id: str) -> None:
        """The server has lost the upload, or ended it. Under another key nothing is sealed twice."""
        if (upload := self.rows.upload(message_id)) is not None:
            self.rows.drop_digests(message_id)
            key = self._context.secrets.draw(KEY_BYTES)
            self.rows.put_upload(message_id, replace(upload, blob="", key=key))

    def completed(self, message_id: str, blob: tuple[int, bytes], digest: bytes) -> None:
        """The blob is whole: the message names it now, and is sent."""
        message, upload = self._context.store.message(message_id), self.rows.upload(message_id)
        if message is None or upload is None:
            return
        content = decode_content(message.body)
        assert message.media is not None
        owner, secret = blob
        pointer = message.media._replace(owner=owner, blob=secret, key=upload.key, digest=digest)
        message = replace(message, body=encode_content(content._replace(data=encode_pointer(pointer))))
        self._context.store.put_message(message)
        self.rows.drop_upload(message_id)
        self._put(message, FileRow(FileState.UPLOADED, path=upload.path))
        self._outbox.number(message, upload.lane)

    def failed(self, message_id: str, reason: str) -> None:
        """It will not be sent."""
        message, upload = self._context.store.message(message_id), self.rows.upload(message_id)
        if upload is None:
            return
        self.rows.drop_upload(message_id)
        if upload.blob:
            self.rows.put_due(ENDING, upload.blob)
        if message is not None:
            self._put(message, FileRow(FileState.FAILED, reason, upload.path))
            self._ticks.failed(message_id, reason)

    def give_up(self, message_id: str) -> bool:
        """Whether it was still being uploaded."""
        if self.rows.upload(message_id) is None:
            return False
        self.failed(message_id, "given_up")
        return True

    def is_too_old(self, message_id: str) -> bool:
        return self._context.now - MessageId.parse(message_id).at_ms > self._context.limits.lifetime_ms

    # --- sending: whom the blob is for ----------------------------------------------------------

    def addressing(self, row: Outgoing, devices: Collection[int]) -> Addressing:
        """Before a row is sealed for these devices. If it must wait, they are named, and its stream goes on."""
        message = self._context.store.message(row.original)
        if message is None or not self._is_own_blob(message):
            return Addressing.NAMED
        if message.id in self._gone:
            # Who could not open it gets the message all the same: it says what the file was.
            was_sealed = row.reseal or row.envelopes or row.ciphertext
            return Addressing.NAMED if was_sealed else Addressing.GONE
        missing = set(devices) - self._named.get(message.id, set())
        if not missing:
            return Addressing.NAMED
        wanted = self._wanted.setdefault(message.id, set())
        if not missing <= wanted:
            wanted |= missing
            self._tell(message, FileRow(FileState.UPLOADED))
        return Addressing.WAITING

    def wanted(self) -> list[AudienceWanted]:
        """What is to be named now."""
        found: list[AudienceWanted] = []
        for message_id, devices in self._wanted.items():
            message = self._context.store.message(message_id)
            if message is not None and message.media is not None:
                # A message that is sealed again has only the rest of its life; so has its file.
                life_ms = left_ms(self._context, message) if message.life_ms else 0
                found.append(AudienceWanted(message_id, message.media.blob_id, tuple(sorted(devices)), life_ms))
        return found

    def named(self, wanted: AudienceWanted) -> None:
        self._named.setdefault(wanted.message_id, set()).update(wanted.devices)
        self._settle(wanted)

    def not_named(self, wanted: AudienceWanted) -> None:
        """The server has no such blob, or takes no more devices for it."""
        self._gone.add(wanted.message_id)
        self._settle(wanted)

    def _settle(self, wanted: AudienceWanted) -> None:
        left = self._wanted.get(wanted.message_id, set()) - set(wanted.devices)
        if left:
            self._wanted[wanted.message_id] = left
        else:
            self._wanted.pop(wanted.message_id, None)
        if (message := self._context.store.message(wanted.message_id)) is not None:
            self._sending.go_on(message.peer)

    # --- receiving ------------------------------------------------------------------------------

    def message_stored(self, message: Message) -> None:
        """A message arrived. If its file is small, it is fetched."""
        if (pointer := message.media) is None:
            return
        if pointer.owner != account_of(message.by):
            self._put(message, FileRow(FileState.REFUSED, "other_owner"))
            return
        is_small = pointer.size <= self._context.limits.fetch_bytes
        self._put(message, FileRow(FileState.WANTED if is_small else FileState.ABSENT))

    def want(self, message: Message) -> None:
        """The person wants the file."""
        row = self.rows.file(message.id)
        if row.state not in (FileState.WANTED, FileState.KEPT):
            self._put(message, replace(row, state=FileState.WANTED, reason=""))

    def kept(self, message: Message, pointer: MediaPointer) -> None:
        """All of it was verified, and is durable here: the server may know."""
        self.rows.put_due(VERIFIED, pointer.blob_id)
        self._put(message, replace(self.rows.file(message.id), state=FileState.KEPT, reason=""))

    def saved(self, message: Message, path: str, *, is_kept: bool) -> None:
        """It was saved outside the profile; `is_kept`: its sealed copy stays."""
        row = self.rows.file(message.id)
        state = FileState.KEPT if is_kept else FileState.SAVED
        if message.media is not None and not is_kept:
            self.rows.put_due(ERASING, message.media.blob_id)
        self._put(message, replace(row, state=row.state if row.state is FileState.UPLOADED else state, path=path))

    def saving(self, message: Message, part: str) -> str:
        """It is being saved, without a copy in the profile, and this much of it will lie open on the disk. What lies
        elsewhere of an earlier attempt; empty: nothing."""
        former = self.rows.due_state(SAVING, message.id)
        self.rows.put_due(SAVING, message.id, part)
        return former if former != part else ""

    def saved_directly(self, message: Message, pointer: MediaPointer, path: str) -> None:
        """All of it was verified, and is durable outside the profile: the server may know."""
        self.rows.put_due(VERIFIED, pointer.blob_id)
        self.rows.drop_due(SAVING, message.id)
        self.saved(message, path, is_kept=False)

    def not_fetched(self, message: Message, state: FileState, reason: str) -> None:
        self.rows.drop_due(SAVING, message.id)
        self._put(message, replace(self.rows.file(message.id), state=state, reason=reason))

    # --- the end of a message -------------------------------------------------------------------

    def message_ended(self, message: Message) -> None:
        """Its life is over: its file goes with it, and what opens it is gone with its row."""
        if message.kind is not Kind.MEDIA:
            return
        self.rows.drop_file(message.id)
        self.rows.drop_upload(message.id)
        if message.media is not None:
            self.rows.put_due(ERASING, message.media.blob_id, self.rows.due_state(SAVING, message.id))
            self.rows.drop_due(SAVING, message.id)
            self._tell(message, FileRow(FileState.GONE))
        self._forget(message.id)

    def message_failed(self, message: Message) -> None:
        """Nobody will be told of the blob, unless the server turns out to have the message."""
        if self._is_own_blob(message) and message.media is not None:
            self.rows.put_due(ENDING, message.media.blob_id, message.id)
            self._tell(message, FileRow(FileState.FAILED))

    def is_to_end(self, blob: str) -> bool | None:
        """Whether an own blob is to be removed now; None: that is not certain yet."""
        message_id = self.rows.due_state(ENDING, blob)
        if not message_id:
            return True
        if any(row.original == message_id for row in self._context.store.outgoing()):
            return None
        message = self._context.store.message(message_id)
        return message is None or message.state is Tick.FAILED

    def _is_own_blob(self, message: Message) -> bool:
        pointer = message.media
        return pointer is not None and pointer.is_placed and pointer.owner == self._context.identity.account

    def _forget(self, message_id: str) -> None:
        self._named.pop(message_id, None)
        self._wanted.pop(message_id, None)
        self._gone.discard(message_id)

    def _put(self, message: Message, row: FileRow) -> None:
        self.rows.put_file(message.id, row)
        self._tell(message, row)

    def _tell(self, message: Message, row: FileRow) -> None:
        conversation = conversation_id(self._context.identity.account, message.peer)
        self._context.tell(FileChanged(message.id, conversation, row.state, row.reason))
