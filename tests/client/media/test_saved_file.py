"""A file that is saved without a copy in the profile goes on where it stopped, and has its name once it is whole."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from nightmail.client import Client
from nightmail.client.errors import Misused, Unreachable
from nightmail.client.limits import ClientLimits
from nightmail.client.media.blob_http import BlobHttp
from nightmail.client.media.rows import SAVING, FileState, MediaRows
from nightmail.client.media.saved_file import SavingFile, drop_part, part_path
from nightmail.client.media_errors import ChunkRefused, DigestDiffers, FileRefused, FileUnusable
from nightmail.e2ee.streams.stream import CHUNK_BYTES, HEAD_BYTES, SEALED_CHUNK_BYTES
from tests.client.media.people import LARGE, a_file, message_of, person, state_of, until
from tests.client.media.pointers import CONTENT, sealed
from tests.server.rig import Town

NOTHING_BY_ITSELF = ClientLimits(retry_ms_min=1, retry_ms_max=1, backoff_ms_max=50, fetch_bytes=0)
TWO = HEAD_BYTES + 2 * SEALED_CHUNK_BYTES


def begin(folder: Path, stream: bytes, pointer: object, upto: int) -> None:
    """An attempt that was broken off."""
    with SavingFile.begun(pointer, folder) as saving:  # pyright: ignore[reportArgumentType]
        saving.go_on()
        saving.take(stream[:upto])


def finish(folder: Path, stream: bytes, pointer: object) -> Path:
    with SavingFile.begun(pointer, folder) as saving:  # pyright: ignore[reportArgumentType]
        saving.take(stream[saving.go_on() :])
        return saving.finish(overwrite=False)


def test_what_an_earlier_attempt_has_left_is_not_fetched_again(tmp_path: Path) -> None:
    stream, pointer = sealed(tmp_path)
    folder = tmp_path / "saved"
    folder.mkdir()
    begin(folder, stream, pointer, TWO + 1_000)
    with SavingFile.begun(pointer, folder) as saving:
        assert saving.go_on() == TWO
        saving.take(stream[TWO:])
        assert [path.name for path in folder.iterdir()] == [part_path(pointer.blob_id, folder).name]
        path = saving.finish(overwrite=False)
    assert (path, path.read_bytes()) == (folder / "notes.txt", CONTENT)
    assert [each.name for each in folder.iterdir()] == ["notes.txt"]


def test_what_was_changed_since_an_earlier_attempt_is_not_believed(tmp_path: Path) -> None:
    stream, pointer = sealed(tmp_path)
    folder = tmp_path / "saved"
    folder.mkdir()
    begin(folder, stream, pointer, TWO)
    part_path(pointer.blob_id, folder).write_bytes(bytes(2 * CHUNK_BYTES))
    with pytest.raises(DigestDiffers):
        finish(folder, stream, pointer)
    with SavingFile.begun(pointer, folder) as saving:
        saving.begin_again()
        saving.take(stream)
        assert saving.finish(overwrite=False).read_bytes() == CONTENT


def test_a_file_that_is_longer_than_its_part_may_be_is_cut(tmp_path: Path) -> None:
    stream, pointer = sealed(tmp_path, CONTENT[:100])
    part_path(pointer.blob_id, tmp_path).write_bytes(bytes(1_000_000))
    with SavingFile.begun(pointer, tmp_path) as saving:
        assert saving.go_on() == 0
        saving.take(stream)
        assert saving.finish(overwrite=True).read_bytes() == CONTENT[:100]


def test_nothing_that_is_there_is_replaced_unless_the_person_says_so(tmp_path: Path) -> None:
    stream, pointer = sealed(tmp_path)
    there, link = tmp_path / "there", tmp_path / "link"
    there.write_bytes(b"mine")
    with pytest.raises(FileUnusable):
        finish(there, stream, pointer)
    assert there.read_bytes() == b"mine"
    with SavingFile.begun(pointer, there) as saving:
        saving.take(stream[saving.go_on() :])
        assert saving.finish(overwrite=True).read_bytes() == CONTENT
    link.mkdir()
    part_path(pointer.blob_id, link).symlink_to(there)
    with pytest.raises(FileUnusable):
        finish(link, stream, pointer)


def test_only_what_an_attempt_has_left_is_dropped(tmp_path: Path) -> None:
    stream, pointer = sealed(tmp_path)
    begin(tmp_path, stream, pointer, TWO)
    part = part_path(pointer.blob_id, tmp_path)
    for other in (str(tmp_path / "notes.txt"), "", str(part_path("another", tmp_path))):
        drop_part(pointer.blob_id, other)
    assert part.exists()
    assert (tmp_path / "notes.txt").exists()
    drop_part(pointer.blob_id, str(part))
    drop_part(pointer.blob_id, str(part))
    assert not part.exists()


# --- with a server ------------------------------------------------------------------------------


class Broken(BlobHttp):
    """Hands out only the beginning of a blob, and then nothing."""

    fetched = 0

    def fetch(self, blob: str, first: int, size: int) -> Generator[bytes]:
        for block in super().fetch(blob, first, size):
            if self.fetched >= TWO:
                raise Unreachable("the connection broke")
            self.fetched += len(block)
            yield block[:SEALED_CHUNK_BYTES]
            if len(block) > SEALED_CHUNK_BYTES:
                raise Unreachable("the connection broke")


def broken(client: Client) -> BlobHttp:
    """Its downloads break from now on; what they did before."""
    jobs = client._media._jobs
    whole, jobs._http = jobs._http, Broken(jobs._http._addresses, jobs._http._authorization, None, NOTHING_BY_ITSELF)
    return whole


def hidden(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(".")]


def test_a_save_that_broke_off_goes_on_in_another_process_and_leaves_nothing_elsewhere(
    town: Town, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"

    async def story() -> None:
        for folder in (first, second):
            folder.mkdir()
        async with person(town, tmp_path, "ada20") as ada:
            async with person(town, tmp_path, "bob20", limits=NOTHING_BY_ITSELF) as bob:
                await ada.send_file("bob20", a_file(tmp_path))
                message = await message_of(bob)
                broken(bob)
                with pytest.raises(Unreachable):
                    await bob.save_file(message, first)
                assert state_of(bob, message) is FileState.ABSENT
                (part,) = hidden(first)
                assert 0 < part.stat().st_size < len(LARGE)
                assert part.read_bytes() == LARGE[: part.stat().st_size]
            async with person(town, tmp_path, "bob20", limits=NOTHING_BY_ITSELF) as bob:
                whole = broken(bob)
                with pytest.raises(Unreachable):
                    await bob.save_file(message, second)
                assert (hidden(first), len(hidden(second))) == ([], 1)
                bob._media._jobs._http = whole
                saving = asyncio.create_task(bob.save_file(message, second))
                await asyncio.sleep(0)
                with pytest.raises(Misused):
                    await bob.save_file(message, first)
                assert (await saving).read_bytes() == LARGE
                assert hidden(second) == []
                assert MediaRows(bob._store).due(SAVING) == []

    asyncio.run(story())


def test_what_lies_open_of_a_file_goes_with_its_message(town: Town, tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            person(town, tmp_path, "ada21") as ada,
            person(town, tmp_path, "bob21", limits=NOTHING_BY_ITSELF) as bob,
        ):
            await ada.send_file("bob21", a_file(tmp_path), life_ms=30_000)
            message, folder = await message_of(bob), tmp_path / "saved"
            folder.mkdir()
            broken(bob)
            with pytest.raises(Unreachable):
                await bob.save_file(message, folder)
            assert len(hidden(folder)) == 1
            await bob.read("ada21")
            clock = bob._open_driver().clock
            bob._open_driver().clock = lambda: clock() + 31_000  # pyright: ignore[reportAttributeAccessIssue]
            bob._open_driver().catch_up()
            await until(lambda: not hidden(folder))

    asyncio.run(story())


@pytest.mark.parametrize("changed", ["the part", "the stream"])
def test_a_save_that_goes_on_finds_what_was_changed(town: Town, tmp_path: Path, changed: str) -> None:
    """Changed here: it is fetched once more from the beginning. Changed there: it is refused, and nothing is left."""
    names = (f"ada {changed[4:]}".replace(" ", "."), f"bob {changed[4:]}".replace(" ", "."))

    class Lying(BlobHttp):
        def fetch(self, blob: str, first: int, size: int) -> Generator[bytes]:
            for block in super().fetch(blob, first, size):
                yield block[:-1] + bytes((block[-1] ^ 1,))

    async def story() -> None:
        async with (
            person(town, tmp_path, names[0]) as ada,
            person(town, tmp_path, names[1], limits=NOTHING_BY_ITSELF) as bob,
        ):
            await ada.send_file(names[1], a_file(tmp_path))
            message, folder = await message_of(bob), tmp_path / "saved"
            folder.mkdir()
            whole = broken(bob)
            with pytest.raises(Unreachable):
                await bob.save_file(message, folder)
            (part,) = hidden(folder)
            if changed == "the part":
                part.write_bytes(bytes(part.stat().st_size))
                bob._media._jobs._http = whole
                assert (await bob.save_file(message, folder)).read_bytes() == LARGE
            else:
                bob._media._jobs._http = Lying(whole._addresses, whole._authorization, None, NOTHING_BY_ITSELF)
                with pytest.raises(FileRefused) as refused:
                    await bob.save_file(message, folder)
                assert isinstance(refused.value, ChunkRefused)
                assert state_of(bob, message) is FileState.REFUSED
                assert list(folder.iterdir()) == []

    asyncio.run(story())
