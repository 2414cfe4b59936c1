"""The asyncio face over real sockets: the heart is real, too, and only the gateway is small."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from nightmail.client import Client
from nightmail.client.errors import ClientError, Misused, ProfileInUse, Stopped, StoreFailed
from nightmail.client.events import Connected, Disconnected, Ended
from nightmail.client.messages import Message, Tick
from nightmail.e2ee.content import Content
from nightmail.model.words import Kind
from nightmail.wire.closing import CloseCode
from nightmail.wire.items import Answered
from tests.client.harbour import QUICK, harbour


async def until(client: Client, kind: type) -> object:
    async for event in client.events():
        if isinstance(event, kind):
            return event
    raise AssertionError("the client ended")


def test_ten_lines_suffice_to_send_and_receive(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice, place.client(tmp_path, "bob") as bob:
            receipt = await alice.send("bob", "hello")
            message = await anext(bob.messages())
            assert message.text == "hello"
            await receipt.delivered()
            assert await bob.read(message.peer) == 1
            await receipt.read()
            assert receipt.state is Tick.READ
            assert [m.state for m in alice.history("bob")] == [Tick.READ]

    asyncio.run(story())


def test_when_it_is_confirmed_the_server_has_what_was_received_and_read(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice, place.client(tmp_path, "bob") as bob:
            receipt = await alice.send("bob", "hello")
            message = await anext(bob.messages())
            await bob.read(message.peer)
            await place.drop()
            await bob.confirmed()
            mailbox = place.town.loop.state.mailboxes[bob.identity.device]
            assert mailbox is not None
            assert [each.acked for each in mailbox.lanes] == [each.head for each in mailbox.lanes]
            await receipt.read()

    asyncio.run(story())


def test_nobody_waits_for_confirmations_of_a_client_that_has_ended(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice, place.client(tmp_path, "bob") as bob:
            await bob.ready()
            me = bob.identity.device
            place.town.meddle = lambda to, item: None if to == me and isinstance(item, Answered) else item
            await alice.send("bob", "hello")
            await anext(bob.messages())
            waiting = asyncio.ensure_future(bob.confirmed())
            await place.dismiss(CloseCode.REMOVED)
            with pytest.raises(Stopped):
                await waiting

    asyncio.run(story())


def test_a_reply_names_the_message_it_answers_and_only_a_message(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice, place.client(tmp_path, "bob") as bob:
            await alice.send("bob", "Dinner?")
            question = await anext(bob.messages())
            with pytest.raises(Misused):
                await bob.send("alice", "Yes.", reply_to_message_id="the one about dinner")
            await bob.send("alice", "Yes.", reply_to_message_id=question.id)
            answer = await anext(alice.messages())
            assert (answer.text, answer.reply_to_message_id) == ("Yes.", question.id)
            media = Content(Kind.MEDIA, data=b"where it is")
            await bob.send("alice", media, reply_to_message_id=question.id)
            picture = await anext(alice.messages())
            assert picture.content == media._replace(reply_to=question.id)

    asyncio.run(story())


def test_what_is_written_offline_is_kept_and_sent_by_the_next_process(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place:
            profile = place.profile(tmp_path, "alice")
            async with Client(profile, ["ws://127.0.0.1:9"], limits=QUICK) as alice:
                sent = [await alice.send("bob", str(n)) for n in range(5)]
                assert not alice.online
            async with Client(profile, [place.address], limits=QUICK) as alice, place.client(tmp_path, "bob") as bob:
                incoming = bob.messages()
                assert [(await anext(incoming)).text for _ in range(5)] == ["0", "1", "2", "3", "4"]
                await alice.receipt(sent[-1].message_id).delivered()

    asyncio.run(story())


def test_a_dropped_connection_comes_back_by_itself_and_nothing_is_lost_or_shown_twice(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice, place.client(tmp_path, "bob") as bob:
            got: list[str] = []
            bob.on(Message)(lambda message: got.append(message.text))
            sent = [await alice.send("bob", "0")]
            for n in range(1, 20):
                sent.append(await alice.send("bob", str(n)))
                if n % 5 == 2:
                    await sent[-1].sent()
                    await place.drop()
            await sent[-1].delivered()
            assert got == [str(n) for n in range(20)]

    asyncio.run(story())


def test_a_displaced_client_says_so_and_does_not_come_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice:
            incoming = alice.messages()
            await until(alice, Connected)
            ended: list[Ended] = []
            alice.on(Ended)(ended.append)
            await place.dismiss(CloseCode.DISPLACED)
            with pytest.raises(Stopped):
                await anext(incoming)
            assert [event.code for event in ended] == [CloseCode.DISPLACED]
            with pytest.raises(Stopped):
                await alice.send("bob", "too late")
            assert place.greeted == 1

    asyncio.run(story())


def test_a_draining_server_sends_its_clients_to_the_next_address_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as first, harbour() as second:
            second.town = first.town
            async with first.client(tmp_path, "alice", first.address, second.address) as alice:
                await until(alice, Connected)
                going = asyncio.ensure_future(until(alice, Disconnected))
                await first.dismiss(CloseCode.DRAINING)
                assert isinstance(await going, Disconnected)
                await until(alice, Connected)
                assert (first.greeted, second.greeted) == (1, 1)

    asyncio.run(story())


def test_two_clients_cannot_hold_one_profile(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place:
            path = place.profile(tmp_path, "alice")
            async with Client(path, [place.address]):
                with pytest.raises(ProfileInUse, match="in use by process"):
                    await Client(path, [place.address]).__aenter__()

    asyncio.run(story())


def test_a_closed_client_lets_go_of_everyone_who_waits(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place:
            alice = place.client(tmp_path, "alice", "ws://127.0.0.1:9")
            async with alice:
                receipt = await alice.send("bob", "hello")
                waiting = asyncio.ensure_future(receipt.sent())
                reading = asyncio.ensure_future(_all(alice))
                await asyncio.sleep(0)
            with pytest.raises(Misused):
                await waiting
            assert await reading == []
            assert [task for task in asyncio.all_tasks() if "nightmail" in task.get_name()] == []

    asyncio.run(story())


def test_a_client_that_is_closed_acknowledges_what_it_has_before_it_leaves(tmp_path: Path) -> None:
    lazy = replace(QUICK, ack_ms=60_000)

    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice:
            bob = place.client(tmp_path, "bob", limits=lazy)
            receipt = await alice.send("bob", "hello")
            async with bob:
                assert (await anext(bob.messages())).text == "hello"
            await receipt.delivered()

    asyncio.run(story())


def test_a_server_that_talks_nonsense_is_left_and_asked_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice:
            await until(alice, Connected)
            going = asyncio.ensure_future(until(alice, Disconnected))
            await asyncio.sleep(0)
            await place.connections[0][0].send(b"nonsense")
            gone = await going
            assert isinstance(gone, Disconnected)
            assert gone.why == "not a frame"
            await until(alice, Connected)

    asyncio.run(story())


def test_a_disk_that_fails_ends_the_client_and_nothing_of_it_was_acknowledged(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice:
            bob = place.client(tmp_path, "bob")
            async with bob:
                await until(bob, Connected)
                assert bob._profile is not None
                bob._profile.store._db.pragma("query_only", 1)
                incoming = bob.messages()
                await alice.send("bob", "hello")
                with pytest.raises(StoreFailed):
                    await anext(incoming)
                with pytest.raises(StoreFailed):
                    await bob.send("alice", "hello")
            async with Client(tmp_path / "bob", [place.address], limits=QUICK) as again:
                assert (await anext(again.messages())).text == "hello"

    asyncio.run(story())


def test_a_mistake_at_a_tick_is_told_and_not_slept_over(tmp_path: Path) -> None:
    def fails(now: int) -> None:
        raise RuntimeError("a mistake")

    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice:
            await until(alice, Connected)
            assert alice._driver is not None
            alice._driver._machine.tick = fails
            incoming = alice.messages()
            await alice.send("bob", "hello")
            with pytest.raises(ClientError, match="RuntimeError"):
                await asyncio.wait_for(anext(incoming), 10)  # pyright: ignore[reportArgumentType]  # it is a coroutine

    asyncio.run(story())


def test_a_caller_s_mistake_ends_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice:
            for peer, life_ms in ((-1, 0), (1 << 64, 0), ("bob", 1 << 63), ("bob", -1)):
                with pytest.raises(Misused):
                    await alice.send(peer, "hello", life_ms=life_ms)
            with pytest.raises(Misused):
                await alice.read(1 << 64)
            await alice.send("bob", "hello")

    asyncio.run(story())


def test_a_hundred_sends_at_once_are_durable_when_they_return(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place:
            alice = place.client(tmp_path, "alice", "ws://127.0.0.1:9")
            async with alice:
                await asyncio.gather(*[alice.send("bob", str(n)) for n in range(100)])
                assert alice._profile is not None
                alice._profile.store.rollback()
                assert len(alice.history("bob")) == 100

    asyncio.run(story())


async def _all(client: Client) -> list[str]:
    return [message.text async for message in client.messages()]
