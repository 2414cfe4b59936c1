"""Presence through the asyncio face, against a real server process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from nightmail.client import Client
from nightmail.client.errors import ClientError, Misused
from nightmail.client.events import Event, PresenceChanged, Sight, TypingChanged
from nightmail.model.words import Audience, PresenceState
from nightmail.testing import RegisteredDevice, running_server

HIDDEN = Sight(PresenceState.UNAVAILABLE, 0)


def played(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 120))


async def befriend(first: RegisteredDevice, second: RegisteredDevice) -> None:
    """Each has written to the other, so each knows the other."""
    async with first.client() as one, second.client() as two:
        await (await one.send(second.handle, "Hello.")).delivered()
        await (await two.send(first.handle, "Hello, too.")).delivered()


async def heard(events: AsyncIterator[Event], kind: type[PresenceChanged | TypingChanged]) -> object:
    async for event in events:
        if isinstance(event, kind):
            return event.sight.state if isinstance(event, PresenceChanged) else event.typing
    return None


def test_an_app_in_the_foreground_is_seen_online_and_typing_and_gone_when_it_closes() -> None:
    with running_server() as server:
        ada, bob = server.register("ada"), server.register("bob")

        async def story() -> None:
            await befriend(ada, bob)
            async with bob.client() as watcher:
                events = watcher.events()
                watcher.set_foreground(True)
                watcher.watch(ada.handle)
                told = [await heard(events, PresenceChanged)]
                async with ada.client() as person:
                    person.set_foreground(True)
                    told.append(await heard(events, PresenceChanged))
                    person.typing(bob.handle)
                    told.append(await heard(events, TypingChanged))
                told.append(await heard(events, PresenceChanged))
                assert told == [PresenceState.OFFLINE, PresenceState.ONLINE, True, PresenceState.OFFLINE]
                assert watcher.sight(ada.handle) == (await watcher.presence(ada.handle))[0]

        played(story())


def test_last_seen_is_there_after_a_restart_and_who_may_see_it_after_a_kill() -> None:
    with running_server() as server:
        ada, bob = server.register("ada"), server.register("bob")

        async def story() -> None:
            await befriend(ada, bob)
            async with ada.client() as person, bob.client() as watcher:
                person.set_foreground(True)
                watcher.watch(ada.handle)
                events = watcher.events()
                while await heard(events, PresenceChanged) is not PresenceState.ONLINE:
                    pass
                person.set_foreground(False)
                await heard(events, PresenceChanged)
                before = await watcher.presence(ada.handle)
            server.stop()
            server.start()
            async with bob.client() as watcher, ada.client() as person:
                after = await watcher.presence(ada.handle)
                assert (after, before[0].last_seen > 0) == (before, True)
                assert await person.show_presence_to() is Audience.CONTACTS
                assert await person.show_presence_to(Audience.NOBODY) is Audience.NOBODY
                server.kill()
            server.start()
            async with bob.client() as watcher, ada.client() as person:
                assert await person.show_presence_to() is Audience.NOBODY
                assert (await watcher.presence(ada.handle), await person.presence(bob.handle)) == ([HIDDEN], [HIDDEN])

        played(story())


def test_a_call_that_waits_for_a_server_ends_with_the_client() -> None:
    with running_server() as server:
        ada = server.register("ada")
        server.kill()

        async def story() -> None:
            client = Client(ada.profile, [ada.url])
            async with client:
                asking = asyncio.create_task(client.presence("bob"))
                choosing = asyncio.create_task(client.show_presence_to())
                await asyncio.sleep(0)
            for waiting in (asking, choosing):
                with pytest.raises(ClientError):
                    await waiting
            with pytest.raises(Misused):
                client.set_foreground(True)

        played(story())


def test_a_choice_that_the_app_gave_up_is_not_made_later() -> None:
    with running_server() as server:
        ada = server.register("ada")
        server.kill()

        async def story() -> None:
            async with Client(ada.profile, [ada.url]) as client:
                choosing = asyncio.create_task(client.show_presence_to(Audience.NOBODY))
                await asyncio.sleep(0)
                choosing.cancel()
                await asyncio.gather(choosing, return_exceptions=True)
                server.start()
                assert await client.show_presence_to() is Audience.CONTACTS

        played(story())
