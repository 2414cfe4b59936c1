"""Files between people, over a real node: sent, fetched, saved, and gone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nightmail.client.errors import DeliveryFailed, Misused
from nightmail.client.limits import ClientLimits
from nightmail.client.media.rows import FileState
from nightmail.client.media_errors import FileGone, FileUnusable
from nightmail.client.media_events import FileProgress
from nightmail.client.messages import Tick
from tests.client.media.people import LARGE, QUICK, a_file, bytes_at, message_of, person, state_of, until
from tests.server.rig import Town, serving

SMALL_ONLY = ClientLimits(retry_ms_min=20, retry_ms_max=50, backoff_ms_max=50, fetch_bytes=1_000)


@pytest.mark.parametrize("size", [0, 1, 1_023, 1_024, 65_535, 65_536, 65_537, 700_000])
def test_a_file_arrives_as_it_was_sent(town: Town, tmp_path: Path, size: int) -> None:
    async def story() -> None:
        async with person(town, tmp_path, f"ada{size}") as ada, person(town, tmp_path, f"bob{size}") as bob:
            receipt = await ada.send_file(f"bob{size}", a_file(tmp_path, LARGE[:size]), caption="see this")
            message = await message_of(bob)
            assert message.media is not None
            assert (message.text, message.media.name, message.media.type) == ("see this", "notes.txt", "text/plain")
            saved = await bob.save_file(message, tmp_path / "saved")
            assert saved.read_bytes() == LARGE[:size]
            await receipt.delivered()

    asyncio.run(story())


def test_a_small_file_is_fetched_by_itself_and_the_server_keeps_nothing(tmp_path: Path) -> None:
    async def story(town: Town) -> None:
        async with person(town, tmp_path, "ada") as ada, person(town, tmp_path, "bob") as bob:
            told: list[FileProgress] = []
            ada.on(FileProgress)(told.append)
            await ada.send_file("bob", a_file(tmp_path))
            message = await message_of(bob)
            await until(lambda: state_of(bob, message) is FileState.KEPT)
            await until(lambda: not bytes_at(town))
            assert (told[-1].done, told[-1].message_id) == (told[-1].total, message.id)
            saved = await bob.save_file(message, tmp_path / "later")
            assert saved.read_bytes() == LARGE
            assert (state_of(bob, message), state_of(ada, message.id)) == (FileState.KEPT, FileState.UPLOADED)
            with pytest.raises(FileUnusable):
                await bob.save_file(message, saved)

    with serving(tmp_path / "node") as town:
        asyncio.run(story(town))


def test_a_large_file_waits_until_somebody_wants_it_and_is_not_kept_then(town: Town, tmp_path: Path) -> None:
    async def story() -> None:
        async with person(town, tmp_path, "ada2") as ada, person(town, tmp_path, "bob2", limits=SMALL_ONLY) as bob:
            await ada.send_file("bob2", a_file(tmp_path))
            message = await message_of(bob)
            assert state_of(bob, message) is FileState.ABSENT
            folder = tmp_path / "saved"
            folder.mkdir()
            assert (await bob.save_file(message, folder)).read_bytes() == LARGE
            found = bob.file(message)
            assert found is not None
            assert (found.state, found.path) == (FileState.SAVED, str(folder / "notes.txt"))
            assert not (tmp_path / "bob2" / "media").exists()
            assert [each.name for each in folder.iterdir()] == ["notes.txt"]
            await until(lambda: not bytes_at(town))
            with pytest.raises(FileGone):
                await bob.save_file(message, folder / "again")
            assert state_of(bob, message) is FileState.GONE

    asyncio.run(story())


def test_a_file_for_a_group_and_own_devices_ends_when_the_last_of_them_has_it(tmp_path: Path) -> None:
    async def story(town: Town) -> None:
        async with (
            person(town, tmp_path, "ada") as ada,
            person(town, tmp_path, "bob") as bob,
            person(town, tmp_path, "cleo", limits=SMALL_ONLY) as cleo,
        ):
            await ada.link_here(tmp_path / "laptop")
            async with person(town, tmp_path, "ada", profile="laptop") as laptop:
                group = await ada.create_group("Friends", ["bob", "cleo"])
                receipt = await ada.send_file(group, a_file(tmp_path), caption="for all")
                await until(lambda: bool(laptop.files()) and laptop.files()[0].state is FileState.KEPT)
                message = await message_of(bob)
                while message.media is None:
                    message = await message_of(bob)
                await until(lambda: state_of(bob, message) is FileState.KEPT)
                await until(lambda: bool(cleo.files()))
                assert len(bytes_at(town)) == 1
                saved = await cleo.save_file(message.id, tmp_path / "cleos")
                assert saved.read_bytes() == LARGE
                await until(lambda: not bytes_at(town))
                await receipt.sent()

    with serving(tmp_path / "node", http__registrations_per_minute=0, http__links_per_minute=100) as town:
        asyncio.run(story(town))


def test_a_reply_is_a_reply_and_a_file_is_found_by_its_name_and_its_text(town: Town, tmp_path: Path) -> None:
    async def story() -> None:
        async with person(town, tmp_path, "ada4") as ada, person(town, tmp_path, "bob4") as bob:
            asked = await ada.send("bob4", "where are the figures?")
            await message_of(bob)
            path = a_file(tmp_path, b"1,2", "Quartalszahlen 2026.csv")
            await bob.send_file("ada4", path, caption="voilà", reply_to_message_id=asked.message_id)
            reply = await message_of(ada)
            assert (reply.reply_to_message_id, reply.media and reply.media.name) == (asked.message_id, path.name)
            for client in (ada, bob):
                assert [found.message.id for found in client.search("quartals")] == [reply.id]
                assert [found.message.id for found in client.search("voila")] == [reply.id]
                assert [each.id for each in client.history("bob4" if client is ada else "ada4")][-1] == reply.id

    asyncio.run(story())


def test_a_file_disappears_with_its_message(town: Town, tmp_path: Path) -> None:
    async def story() -> None:
        async with person(town, tmp_path, "ada5") as ada, person(town, tmp_path, "bob5") as bob:
            await ada.send_file("bob5", a_file(tmp_path), life_ms=30_000)
            message = await message_of(bob)
            await until(lambda: state_of(bob, message) is FileState.KEPT)
            assert list((tmp_path / "bob5" / "media").iterdir())
            await bob.read("ada5")
            clock = bob._open_driver().clock
            bob._open_driver().clock = lambda: clock() + 31_000  # pyright: ignore[reportAttributeAccessIssue]
            bob._open_driver().catch_up()
            assert (bob.history("ada5"), bob.files(), bob.search("notes")) == ([], [], [])
            await until(lambda: not list((tmp_path / "bob5" / "media").iterdir()))

    asyncio.run(story())


@pytest.mark.parametrize(
    ("setting", "reason"), [("limits__media_bytes", "blob_too_large"), ("limits__media_files", "too_many_blobs")]
)
def test_a_file_that_the_server_does_not_take_has_failed_and_says_why(
    tmp_path: Path, setting: str, reason: str
) -> None:
    async def story(town: Town) -> None:
        async with person(town, tmp_path, "ada") as ada, person(town, tmp_path, "bob"):
            if reason == "too_many_blobs":
                ada._media._jobs._http.begin(10)
            receipt = await ada.send_file("bob", a_file(tmp_path))
            with pytest.raises(DeliveryFailed) as failed:
                await receipt.sent()
            assert failed.value.reason == reason
            (message,) = ada.history("bob")
            assert (message.state, message.reason, state_of(ada, message)) == (Tick.FAILED, reason, FileState.FAILED)

    with serving(tmp_path / "node", **{setting: 1}) as town:
        asyncio.run(story(town))


def test_what_is_sent_out_of_reach_goes_on_with_the_next_start(town: Town, tmp_path: Path) -> None:
    async def story() -> None:
        async with person(town, tmp_path, "ada7"), person(town, tmp_path, "bob7"):
            pass
        async with person(None, tmp_path, "ada7") as ada:
            receipt = await ada.send_file("bob7", a_file(tmp_path))
            assert [each.state for each in ada.files()] == [FileState.UPLOADING]
            with pytest.raises(Misused):
                await ada.save_file(receipt.message_id, tmp_path / "own")
        async with person(town, tmp_path, "ada7") as ada, person(town, tmp_path, "bob7") as bob:
            message = await message_of(bob)
            assert message.id == receipt.message_id
            assert (await bob.save_file(message, tmp_path / "saved")).read_bytes() == LARGE
            assert [each.id for each in bob.history("ada7")] == [message.id]

    asyncio.run(story())


def test_a_file_that_changed_or_went_before_it_was_sent_has_failed(town: Town, tmp_path: Path) -> None:
    async def story() -> None:
        async with person(town, tmp_path, "ada8"), person(town, tmp_path, "bob8"):
            pass
        changes, goes = a_file(tmp_path), a_file(tmp_path, name="gone.txt")
        async with person(None, tmp_path, "ada8") as ada:
            sent = [await ada.send_file("bob8", path) for path in (changes, goes)]
        changes.write_bytes(LARGE[:-1] + b"x")
        goes.unlink()
        async with person(town, tmp_path, "ada8") as ada:
            for receipt, reason in zip(sent, ("file_changed", "file_unusable"), strict=True):
                with pytest.raises(DeliveryFailed) as failed:
                    await ada.receipt(receipt.message_id).sent()
                assert failed.value.reason == reason

    asyncio.run(story())


def test_a_file_that_is_given_up_is_not_sent(town: Town, tmp_path: Path) -> None:
    async def story() -> None:
        async with person(town, tmp_path, "ada9"), person(town, tmp_path, "bob9"):
            pass
        async with person(None, tmp_path, "ada9") as ada:
            receipt = await ada.send_file("bob9", a_file(tmp_path))
            assert await ada.give_up(receipt.message_id)
            assert not await ada.give_up(receipt.message_id)
            with pytest.raises(DeliveryFailed):
                await receipt.sent()
        async with person(town, tmp_path, "ada9") as ada, person(town, tmp_path, "bob9") as bob:
            await ada.send("bob9", "only this")
            assert (await message_of(bob)).text == "only this"
            assert [each.state for each in ada.files()] == [FileState.FAILED]

    asyncio.run(story())


def test_no_message_of_a_file_is_too_large_for_its_text(town: Town, tmp_path: Path) -> None:
    async def story() -> None:
        async with person(town, tmp_path, "ada10", limits=QUICK) as ada:
            with pytest.raises(Misused):
                await ada.send_file("bob10", a_file(tmp_path), reply_to_message_id="no id")
            with pytest.raises(FileUnusable):
                await ada.send_file("bob10", tmp_path)
            with pytest.raises(Misused):
                await ada.save_file("1001:1:00001:abcd", tmp_path)

    asyncio.run(story())
