"""Linking over a real server: a code is carried from one screen to the other, and the rest goes by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nightmail.client import Client
from nightmail.client.errors import Misused, NumberDiffers, Stopped
from nightmail.client.events import Moved
from nightmail.client.own_devices.link_request import LinkRequest, begin
from nightmail.model.words import Platform
from nightmail.testing import running_server

WAIT_S = 120


def test_the_ten_lines_of_the_readme_work_and_a_code_links_a_second_device(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_server() as server, asyncio.timeout(WAIT_S):
            at = [server.url]
            async with (
                Client(tmp_path / "carol", at, handle="carol") as carol,
                Client(tmp_path / "dave", at, handle="dave") as dave,
            ):
                incoming = dave.messages()
                receipt = await carol.send("dave", "Hello, Dave.")
                message = await anext(incoming)
                await receipt.delivered()
                assert message.text == "Hello, Dave."
                answer = await dave.send("carol", "Hello to you.", reply_to_message_id=message.id)
                await answer.delivered()
                assert [m.text for m in carol.history("dave")] == ["Hello, Dave.", "Hello to you."]
                assert carol.history("dave")[1].reply_to_message_id == message.id
                assert carol.safety_number("dave") == dave.safety_number("carol")
                with pytest.raises(NumberDiffers):
                    await carol.verify("dave", "0" * 60)
                await carol.verify("dave", dave.safety_number("carol"))
                assert carol.is_verified("dave")

                code = begin(tmp_path / "laptop", "dave", "laptop").code
                linking = asyncio.create_task(dave.link(code))
                async with Client(tmp_path / "laptop", at) as laptop:
                    await laptop.ready()
                    device = await linking
                    assert device == laptop.identity.device
                    await (await carol.send("dave", "To both.")).delivered()
                    assert (await anext(laptop.messages())).text == "To both."
                    assert (await anext(incoming)).text == "To both."
                    with pytest.raises(Misused, match="primary"):
                        await laptop.link(begin(tmp_path / "third", "dave").code)
                    with pytest.raises(Misused, match="use the code on the account's primary device"):
                        await laptop.link_here(tmp_path / "fourth")
                    assert not (tmp_path / "fourth").exists()
                    assert len(await laptop.devices()) == 2
                    assert laptop.safety_number("carol") == carol.safety_number("dave")
                    await dave.rename(device, "old laptop")
                    assert [seen.label for seen in await dave.devices()] == ["", "old laptop"]
                    await dave.revoke(device)
                await (await carol.send("dave", "To one.")).delivered()
                assert (await anext(incoming)).text == "To one."

    asyncio.run(story())


def test_a_code_is_read_as_it_was_written_and_nothing_else_is_taken_for_one() -> None:
    request = LinkRequest("ada", 7, "ab" * 32, b"i" * 64, b"s" * 16, "laptop", Platform.CLI)
    assert LinkRequest.parse(f"  {request.code[:20]}\n{request.code[20:]} ") == request
    for wrong in ("", "hello", request.code[:-5], "nightmail-link:????", LinkRequest("a", 1, "", b"", b"").code):
        with pytest.raises(Misused):
            LinkRequest.parse(wrong)
    assert "ss" not in repr(request)


def test_an_account_moves_to_another_device_with_what_was_said(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_server() as server, asyncio.timeout(WAIT_S):
            at = [server.url]
            async with (
                Client(tmp_path / "carol", at, handle="carol") as carol,
                Client(tmp_path / "old", at, handle="dave") as old,
            ):
                await (await carol.send("dave", "Keep this.")).delivered()
                await (await old.send("carol", "I will.")).delivered()
                code = begin(tmp_path / "new", "dave", "new phone").code
                moving = asyncio.create_task(old.migrate(code))
                async with Client(tmp_path / "new", at) as new:
                    moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    new.on(Moved)(lambda _: moved.set_result(None))
                    with pytest.raises(Stopped):
                        async for _ in old.events():
                            pass  # until it has revoked itself
                    await asyncio.gather(moving, moved)
                    assert [m.text for m in new.history("carol")] == ["Keep this.", "I will."]
                    await (await carol.send("dave", "Still you?")).delivered()
                    assert (await anext(new.messages())).text == "Still you?"
                    await (await new.send("carol", "Still me.")).delivered()
                    assert carol.safety_number("dave") == new.safety_number("carol")
                    assert len(await new.devices()) == 1
                    assert (await new.link_here(tmp_path / "another")) != new.identity.device

    asyncio.run(story())
