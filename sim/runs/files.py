"""People who send each other files, while devices die, connections break and the server lies: what is shown can be
fetched, what is kept is what was sent, and no key seals two contents.

Knows:   every byte that left a device, every name of an audience, and what each file was.
Touches: the real client machines, sealer, jobs and fold, in memory; the files are real. The store of blobs is a model.

    python -m sim.runs.files --seeds 200
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, TypeVar, cast

from msgspec import Struct

from nightmail.client.errors import HttpError, Refused, Unreachable
from nightmail.client.limits import ClientLimits
from nightmail.client.link.driver import Driver
from nightmail.client.machine.machine import Machine
from nightmail.client.media import jobs, transfers
from nightmail.client.media.blob_http import BlobHttp, UploadSeen
from nightmail.client.media.jobs import MediaJobs
from nightmail.client.media.opened_file import KeptFiles
from nightmail.client.media.rows import ENDING, ERASING, FETCH, VERIFIED, FileState
from nightmail.client.media.saved_file import part_path
from nightmail.client.media.sealed_file import look_at
from nightmail.client.media_errors import FileGone, MediaError
from nightmail.client.messages import Message
from nightmail.e2ee.content import Content
from nightmail.e2ee.streams.media import MediaPointer, encode_pointer
from nightmail.e2ee.streams.stream import HEAD_BYTES, SEALED_CHUNK_BYTES
from nightmail.model.words import Kind
from sim.faults.lying_about_files import FOUND, LyingAboutFiles
from tests.client.groups.town import a_group
from tests.client.sealed_town import a_town, pass_time, reset
from tests.client.town import Device

from . import seeded_suite

T = TypeVar("T")

ACTS = 45
LIFE_MS = 3_600_000
QUICK = ClientLimits(retry_ms_min=1, retry_ms_max=1)
SAVED_FROM = (FileState.ABSENT, FileState.WANTED, FileState.GONE, FileState.REFUSED)
"""What is not in the profile."""


class Broken(Exception):
    """A promise about files did not hold."""


class Crash(BaseException):
    """The device dies in the middle of a request."""


class Blob(Struct):
    size: int
    data: bytearray
    devices: dict[int, bool]
    ends_at: int = 0

    @property
    def is_whole(self) -> bool:
        return len(self.data) == self.size


class Blobs:
    """The server's blobs, and what must hold of them."""

    def __init__(self, story: Story) -> None:
        self.story, self.there = story, dict[str, Blob]()
        self.was_whole: set[str] = set()
        self.left: dict[tuple[bytes, int], bytes] = {}
        """(Commitment of a key, chunk) → what left a device in that place."""

    def saw(self, name: str, offset: int, piece: bytes) -> None:
        """Chunks left a device, and may get lost: under one key a place has one content, whatever crashed before."""
        if (blob := self.there.get(name)) is None and offset:
            return
        whole = bytes(blob.data[:offset] if blob else b"") + piece
        for at in range(HEAD_BYTES, len(whole), SEALED_CHUNK_BYTES):
            chunk = whole[at : at + SEALED_CHUNK_BYTES]
            if self.left.setdefault((whole[:HEAD_BYTES], at), chunk) != chunk:
                raise Broken("two contents were sealed in one place under one key")


class Line(BlobHttp):
    """One device's requests, which may be lost, answered in vain, or interrupted by its death."""

    def __init__(self, blobs: Blobs, device: Device) -> None:
        super().__init__([], "", None, QUICK)
        self._blobs, self._device, self._chance = blobs, device, blobs.story.chance

    @contextmanager
    def _request(self, name: str = "") -> Generator[Blob]:
        fate = self._chance.random()
        if fate < 0.05:
            raise Unreachable("lost on its way")
        if fate > 0.95:
            raise Crash
        if name and name not in self._blobs.there:
            raise FileGone
        yield self._blobs.there[name] if name else Blob(0, bytearray(), {})
        if fate < 0.12:
            raise Crash
        if fate < 0.18:
            raise Unreachable("the answer was lost")

    def begin(self, size: int, purpose: str = "media") -> str:
        with self._request():
            name = f"{self._device.me.account:013x}-{self._chance.randbytes(16).hex()}"
            self._blobs.there[name] = Blob(size, bytearray(), {})
        return name

    def look(self, blob: str) -> UploadSeen:
        with self._request(blob) as there:
            return UploadSeen(len(there.data), there.size)

    def append(self, blob: str, offset: int, piece: bytes | bytearray, checksum: str = "") -> int:
        self._blobs.saw(blob, offset, bytes(piece))
        with self._request(blob) as there:
            if offset != len(there.data):
                raise Refused(409, "another part comes next", code="wrong_offset")
            there.data += piece
            if there.is_whole:
                self._blobs.was_whole.add(blob)
            return len(there.data)

    def address(self, blob: str, devices: Sequence[int], life_ms: int = 0) -> None:
        with self._request(blob) as there:
            if not there.is_whole:
                raise Broken("the audience of a blob was named that is not whole")
            now = self._blobs.story.town.now
            until = self._blobs.story.lives.get(blob, 0)
            if until and now + life_ms > until:
                raise Broken("a blob was named for longer than its message lives")
            for device in devices:
                there.devices.setdefault(device, False)

    def verified(self, blob: str) -> None:
        self._blobs.story.check_kept(self._device, blob)
        with self._request(blob) as there:
            if self._device.me.device not in there.devices:
                raise FileGone
            there.devices[self._device.me.device] = True
            if all(there.devices.values()):
                del self._blobs.there[blob]

    def remove(self, blob: str) -> None:
        with self._request(blob):
            del self._blobs.there[blob]

    def fetch(self, blob: str, first: int, size: int) -> Generator[bytes]:
        with self._request(blob) as there:
            others = [bytes(each.data) for each in self._blobs.there.values()]
            data = self._blobs.story.liar.told(blob, bytes(there.data), others)
        for at in range(first, len(data), 50_000):
            yield data[at : at + 50_000]
            if self._chance.random() < 0.1:
                raise Unreachable("the connection broke")
        if len(data) < size:
            raise Unreachable("the connection ended before its time")


class Wheel:
    """Drives a device's machine for its jobs: what is not committed is lost when it dies."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def clock(self) -> int:
        return self._device.town.now

    @contextmanager
    def working(self) -> Generator[Machine]:
        yield self._device.machine

    async def committed(self) -> None:
        self._device.look()


class Story:
    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = Random(sha256(f"files {seed}".encode()).digest())
        self.town, (self.ada, self.bob, self.cleo) = a_town("ada", "bob", "cleo", seed=seed)
        self.laptop = self.town.pair(self.ada)
        self.laptop.connect()
        self.town.settle()
        self.group = a_group(self.town, self.ada, self.bob, self.cleo)
        self.devices = [self.ada, self.bob, self.cleo, self.laptop]
        self.folder, self.blobs = folder, Blobs(self)
        self.contents: dict[str, bytes] = {}
        """Message → its file."""
        self.lives: dict[str, int] = {}
        """Blob → until when the server keeps its message, which it has."""
        self.changes = 0.6
        """How often a file is changed while its device is dead."""
        self.liar = LyingAboutFiles(self.chance, folder, self._pointers)
        self._shown = {device.me.device: 0 for device in self.devices}

    # --- what happens ---------------------------------------------------------------------------

    def act(self) -> None:
        match self.chance.choices(range(9), (6, 16, 4, 4, 3, 3, 3, 1, 6))[0]:
            case 0:
                self._send()
            case 1:
                self.work(self.chance.choice(self.devices))
            case 2:
                self._crash(self.chance.choice(self.devices))
            case 3:
                self.liar.begin()
            case 4 if self.blobs.there:
                name = self.chance.choice(sorted(self.blobs.there))
                if not self.blobs.there[name].is_whole:
                    del self.blobs.there[name]  # an upload that lasted too long
            case 5 if self.cleo.plugged:
                self.cleo.cut()
            case 6 if not self.cleo.plugged:
                self._replace_cleo()
            case 8:
                self._save(self.chance.choice(self.devices))
            case _:
                reader = self.chance.choice((self.bob, self.cleo))
                reader.read(self.ada)
                pass_time(self.town, self.chance.choice((10, 1_000)))
        self.town.settle()
        self.check_shown()

    def _replace_cleo(self) -> None:
        """She has another device, or the same again."""
        if self.chance.random() < 0.5:
            self.devices.remove(self.cleo)
            self.cleo.connect()
            self.cleo = reset(self.town, self.cleo)
            self.devices.append(self.cleo)
            self._shown[self.cleo.me.device] = 0
        self.cleo.connect()
        pass_time(self.town, 1_000, 10_000)

    def _send(self) -> None:
        by = self.chance.choice((self.ada, self.bob))
        to = self.chance.choice((self.cleo.me.account, self.group))
        life_ms = LIFE_MS if self.chance.random() < 0.6 and to != self.group else 0
        data = self.chance.randbytes(self.chance.choice((10, 70_000, 200_000)))
        path = self.folder / f"file {len(self.contents)}"
        path.write_bytes(data)
        pointer = MediaPointer(by.me.account, bytes(16), bytes(32), bytes(32), len(data), path.name)
        content = Content(Kind.MEDIA, None, None, encode_pointer(pointer))
        message = by.machine.send_file(to, content, self.town.now, file=look_at(path), life_ms=life_ms)
        by.look()
        self.contents[message.id] = data

    def work(self, device: Device) -> None:
        """Everything that its worker would begin."""
        work, media = self._jobs(device), device.machine.media(self.town.now)
        rows = media.rows
        due: list[Coroutine[Any, Any, None]] = [work.address(each) for each in media.wanted()]
        for wanted in media.wanted():
            message = device.store.message(wanted.message_id)
            if message is not None and message.life_ms and message.at:
                self.lives[wanted.blob] = message.at + message.life_ms
        due += [work.send(each) for each in rows.uploads()]
        due += [work.fetch(each) for each in rows.due(FETCH)]
        due += [work.say_verified(each) for each in rows.due(VERIFIED)]
        due += [work.end(each) for each in rows.due(ENDING) if media.is_to_end(each) is not None]
        due += [work.erase(each) for each in rows.due(ERASING)]
        try:
            for job in due:
                with suppress(HttpError, MediaError):
                    asyncio.run(job)
                device.look()
        except Crash:
            self._crash(device)
        finally:
            for job in due:
                job.close()

    def _save(self, device: Device) -> None:
        """A person wants a file somewhere, and not in the profile."""
        rows = device.machine.media(self.town.now).rows
        found = [each for each in rows.files() if rows.file(each).state in SAVED_FROM]
        if not found:
            return
        message_id, to = self.chance.choice(found), self._saved(device) / self.chance.choice(("here", "there"))
        to.mkdir(parents=True, exist_ok=True)
        for part in sorted(to.glob(".*.part")):
            if self.chance.random() < 0.3:
                part.write_bytes(bytes(part.stat().st_size))
        try:
            with suppress(HttpError, MediaError):
                path = asyncio.run(self._jobs(device).save_directly(message_id, to, overwrite=False))
                if self.contents[message_id] and path.read_bytes() != self.contents[message_id]:
                    raise Broken("a file that was saved is not the one that was sent")
            device.look()
        except Crash:
            self._crash(device)

    def _saved(self, device: Device) -> Path:
        return self.folder / f"saved {device.me.device:x}"

    def _jobs(self, device: Device) -> MediaJobs:
        return MediaJobs(
            device.store, cast("Driver", Wheel(device)), Line(self.blobs, device), self._kept(device), QUICK,
            lambda _: None,
        )  # fmt: skip

    def _kept(self, device: Device) -> KeptFiles:
        return KeptFiles(self.folder / f"{device.me.device:x}")

    def _crash(self, device: Device) -> None:
        """It dies, and comes back; meanwhile a file may have been changed by somebody who hides it."""
        was_plugged = device.plugged
        device.crash()
        for message_id in device.machine.media(self.town.now).rows.uploads():
            if self.chance.random() < self.changes:
                self._change(device, message_id)
        if was_plugged:
            device.connect()
            self.town.settle()

    def _change(self, device: Device, message_id: str) -> None:
        row = device.machine.media(self.town.now).rows.upload(message_id)
        assert row is not None
        data = self.chance.randbytes(row.size)
        Path(row.path).write_bytes(data)
        os.utime(row.path, ns=(row.changed_ns, row.changed_ns))
        self.contents[message_id] = b""  # what was sent of it, is sent; nobody knows what is in it

    def _pointers(self) -> Iterator[MediaPointer]:
        for device in self.devices:
            for message_id in device.machine.media(self.town.now).rows.files():
                message = device.store.message(message_id)
                if message is not None and message.media is not None:
                    yield message.media

    # --- what must hold -------------------------------------------------------------------------

    def check_shown(self) -> None:
        """A message that is shown has a blob that was whole, and that is for the device."""
        for device in self.devices:
            events = device.events[self._shown[device.me.device] :]
            self._shown[device.me.device] = len(device.events)
            for message in events:
                if isinstance(message, Message) and message.kind is Kind.MEDIA and message.media is not None:
                    self._check_message(device, message, message.media)

    def _check_message(self, device: Device, message: Message, pointer: MediaPointer) -> None:
        blob = self.blobs.there.get(pointer.blob_id)
        if pointer.blob_id not in self.blobs.was_whole:
            raise Broken("a message was shown whose blob was never whole")
        if blob is not None and device.me.device not in blob.devices:
            raise Broken("a message was shown on a device that its blob is not for")

    def check_kept(self, device: Device, blob: str) -> None:
        """Before the server hears that a device has a file, all of it is there, under its name."""
        rows = device.machine.media(self.town.now).rows
        is_saved = any(
            rows.file(each).state is FileState.SAVED and Path(rows.file(each).path).exists()
            for each in rows.files()
            if (message := device.store.message(each)) and message.media and message.media.blob_id == blob
        )
        if not self._kept(device).has(blob) and not is_saved:
            raise Broken("the server was told of a file that is not here")

    def check_files(self) -> None:
        for device in self.devices:
            media = device.machine.media(self.town.now)
            for message_id in media.rows.files():
                message = device.store.message(message_id)
                state = media.rows.file(message_id)
                if message is None or message.media is None or state.state is not FileState.KEPT:
                    continue
                self._check_told(device, message.media.blob_id)
                data = b"".join(self._kept(device).contents(message.media))
                if self.contents[message_id] and data != self.contents[message_id]:
                    raise Broken("a file that was kept is not the one that was sent")
            self._check_refusals(device)

    def _check_told(self, device: Device, blob: str) -> None:
        """What is kept, the server knows of, or will hear of."""
        there = self.blobs.there.get(blob)
        is_owed = there is not None and there.devices.get(device.me.device) is False
        if is_owed and blob not in device.machine.media(self.town.now).rows.due(VERIFIED):
            raise Broken("the server does not hear that a device has a file")

    def _check_refusals(self, device: Device) -> None:
        """Each lie is found where it shows first, and nothing is refused without one."""
        rows = device.machine.media(self.town.now).rows
        for message_id in rows.files():
            message, row = device.store.message(message_id), rows.file(message_id)
            if message is None or message.media is None or row.state is not FileState.REFUSED:
                continue
            if not FOUND[row.reason] & self.liar.lied.get(message.media.blob_id, set()):
                raise Broken(f"a file was refused as {row.reason}, and that was not its fault")

    # --- the end --------------------------------------------------------------------------------

    def finish(self) -> None:
        """Everybody is honest and awake: all files arrive, or have failed; then messages with a timer are over."""
        self.liar.lie, self.changes = "", 0.0
        if not self.cleo.plugged:
            self._replace_cleo()
        for _ in range(60):
            for device in self.devices:
                self.work(device)
            pass_time(self.town, 100)
            self.check_shown()
        for device in self.devices:
            rows = device.machine.media(self.town.now).rows
            if rows.uploads() or rows.due(FETCH) or rows.due(VERIFIED):
                raise Broken("a file is still under way")
            for message_id in rows.files():
                if rows.file(message_id).state is FileState.FAILED and self.contents[message_id]:
                    raise Broken("a file was not sent that nobody has changed")
        self.check_files()
        for name, blob in self.blobs.there.items():
            if blob.devices and all(blob.devices.values()) and name not in self.liar.lied:
                raise Broken("a blob is left that everybody has")
        self._end_lives()

    def _end_lives(self) -> None:
        timed = {
            (device.me.device, message.media.blob_id)
            for device in (self.bob, self.cleo)
            for message_id in device.machine.media(self.town.now).rows.files()
            if (message := device.store.message(message_id)) and message.life_ms and message.media and not message.own
        }
        for device in self.devices:
            for peer in (self.ada, self.bob):
                if device.me.account != peer.me.account:
                    device.read(peer)
        pass_time(self.town, LIFE_MS + 1_000)
        for _ in range(10):
            for device in self.devices:
                self.work(device)
        for device in self.devices:
            for owner, blob in timed:
                if owner != device.me.device:
                    continue
                if self._kept(device).has(blob) or any(self._parts(device, blob)):
                    raise Broken("a file is left whose message is over")

    def _parts(self, device: Device, blob: str) -> Iterator[Path]:
        return self._saved(device).glob(f"*/{part_path(blob, self.folder).name}")


def run(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        story = Story(seed, Path(folder))
        with _in_turns(story.chance):
            for _ in range(ACTS):
                story.act()
                story.check_files()
            story.finish()


@contextmanager
def _in_turns(chance: Random) -> Generator[None]:
    """What threads would do is done by the event loop, after as many turns as chance says: a seed tells everything."""

    async def in_turn(work: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
        del stop
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        return work()

    before, jobs.in_thread, transfers.in_thread = jobs.in_thread, in_turn, in_turn
    try:
        yield
    finally:
        jobs.in_thread = transfers.in_thread = before


if __name__ == "__main__":
    seeded_suite.main("files", __doc__, run)
