"""Groups through the whole program: real processes, real sockets, the methods of the client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from nightmail.client import Client, SeenBy
from nightmail.client.group_errors import LastAdmin, NoSuchGroup, NotGroupAdmin, UnknownPerson
from nightmail.client.store.group_rows import GroupStanding
from nightmail.model.roster import Role
from nightmail.testing import running_server

WAIT_S = 120


async def until(client: Client, happened: Callable[[], bool]) -> None:
    events = client.events()
    while not happened():
        await anext(events)


def has(client: Client, name: str) -> Callable[[], bool]:
    return lambda: any(group.name == name and group.is_joined for group in client.groups())


def test_people_make_a_group_talk_and_part() -> None:
    async def story() -> None:
        async with running_server() as server, asyncio.timeout(WAIT_S):
            people = [server.register(handle) for handle in ("ada", "bob", "cleo")]
            async with people[0].client() as ada, people[1].client() as bob, people[2].client() as cleo:
                for client in (ada, bob, cleo):
                    await client.ready()
                group = await ada.create_group("Friends", ["bob", "cleo"])
                assert [member.handle for member in group.members] == ["ada", "bob", "cleo"]
                assert (group.role, group.standing) == (Role.ADMIN, GroupStanding.JOINED)
                await until(bob, has(bob, "Friends"))
                await until(cleo, has(cleo, "Friends"))
                receipt = await ada.send(group, "hello all", mentions=["bob"])
                hers = await anext(bob.messages())
                assert (hers.text, hers.handle, hers.group) == ("hello all", "ada", group.id)
                assert (await anext(cleo.messages())).text == "hello all"
                await (await bob.send("group:Friends", "hello ada")).sent()
                assert (await anext(ada.messages())).text == "hello ada"
                assert [message.text for message in cleo.history("group:Friends")][:1] == ["hello all"]
                assert bob.unread("group:Friends") == 1
                assert await bob.read("group:Friends") == 1
                await bob.confirmed()
                seen: list[SeenBy] = []
                while not seen or seen[-1].read < 1:
                    seen.append(await ada.seen_by(receipt.message_id))
                assert (seen[-1].of, seen[-1].read) == (2, 1)
                with pytest.raises(NotGroupAdmin):
                    await bob.remove_members("group:Friends", ["cleo"])
                with pytest.raises(LastAdmin):
                    await ada.leave_group(group)
                with pytest.raises(UnknownPerson):
                    await ada.add_members(group, ["nobody"])
                await bob.rename_group("Friends", "Old friends")
                await until(ada, has(ada, "Old friends"))
                assert (await ada.remove_members(group, ["cleo"])).members[-1].handle == "bob"
                await until(cleo, lambda: not cleo.group(group.id).is_joined)
                assert (await ada.leave_group(group, "bob")).standing is GroupStanding.LEFT
                with pytest.raises(NoSuchGroup):
                    ada.group("nothing")

    asyncio.run(story())


def test_a_group_outlives_restarts_of_everybody() -> None:
    async def story() -> None:
        async with running_server() as server, asyncio.timeout(WAIT_S):
            people = [server.register(handle) for handle in ("ada", "bob")]
            async with people[0].client() as ada, people[1].client() as bob:
                await bob.ready()
                group = await ada.create_group("Friends", ["bob"], timer_ms=60_000)
                await until(bob, has(bob, "Friends"))
                await (await ada.send(group, "before")).sent()
                assert (await anext(bob.messages())).text == "before"
            server.restart()
            async with people[0].client() as ada, people[1].client() as bob:
                await (await ada.send("group:Friends", "after")).sent()
                assert (await anext(bob.messages())).text == "after"
                assert bob.timer("group:Friends") == 60_000

    asyncio.run(story())
