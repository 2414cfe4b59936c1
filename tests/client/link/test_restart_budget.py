"""A frame that breaks the machine is rolled back, and taken again over a new connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nightmail.client import Client
from nightmail.client.errors import ClientError, Misbehaved, StoreFailed, TooLarge
from nightmail.client.events import Connected, Disconnected, Event
from nightmail.client.limits import ClientLimits
from nightmail.client.link.driver import Driver
from nightmail.client.link.restart_budget import RestartBudget
from nightmail.client.messages import Message
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Cursors, MessageNumber
from tests.client.harbour import QUICK, Harbour, harbour

SECRET = "what was in the frame"


@asynccontextmanager
async def three_waiting(folder: Path) -> AsyncIterator[tuple[Harbour, Client, Client]]:
    """Bob has a message, and is away; Alice has sent three more. Then Bob opens his profile again."""
    async with harbour() as place, place.client(folder, "alice") as alice:
        async with place.client(folder, "bob") as bob:
            await bob.ready()
            await (await alice.send("bob", "hello")).delivered()
        for count in range(3):
            await (await alice.send("bob", f"{count}")).sent()
        yield place, alice, Client(folder / "bob", [place.address], limits=QUICK)


def store_of(client: Client) -> Store:
    assert client._profile is not None
    return client._profile.store


def driver_of(client: Client) -> Driver:
    assert client._driver is not None
    return client._driver


def break_machine(client: Client, mistake: Callable[[], BaseException], times: int) -> list[int]:
    """The last of the three cannot be taken, so many times. Returns the numbers that were tried."""
    store = store_of(client)
    put, tried = store.put_numbered, list[int]()

    def fails(row: MessageNumber) -> None:
        tried.append(row.n)
        if row.n == 4 and tried.count(4) <= times:
            raise mistake()
        put(row)

    store.put_numbered = fails
    return tried


async def three(client: Client) -> list[str]:
    incoming = client.messages()
    return [(await anext(incoming)).text for _ in range(3)]


@pytest.mark.parametrize("mistake", [OverflowError, RuntimeError, AssertionError, KeyError, lambda _: TooLarge(2, 1)])
def test_a_frame_that_broke_the_machine_once_is_rolled_back_and_taken_again(
    mistake: Callable[[str], Exception], tmp_path: Path
) -> None:
    """The third entry of a batch fails: of the first two nothing is kept either, until all three come again."""

    async def story() -> None:
        async with three_waiting(tmp_path) as (_, alice, bob), bob:
            tried = break_machine(bob, lambda: mistake(SECRET), 1)
            events: list[Event] = []
            for kind in (Message, Connected, Disconnected):
                bob.on(kind)(events.append)
            assert await three(bob) == ["0", "1", "2"]
            assert tried == [2, 3, 4, 2, 3, 4]
            await (await bob.send("alice", "I am here")).delivered()
            assert [message.text for message in bob.history("alice")] == ["hello", "0", "1", "2", "I am here"]
            end, *others = events
            assert isinstance(end, Disconnected)
            assert [type(event) for event in others] == [Connected, Message, Message, Message]
            assert end.why == f"a frame could not be taken ({type(mistake(SECRET)).__name__})"
            await (await alice.send("bob", "and so am I")).delivered()

    asyncio.run(story())


def test_a_mistake_that_happens_again_and_again_ends_the_client_with_nothing_half_done(tmp_path: Path) -> None:
    async def story() -> None:
        async with three_waiting(tmp_path) as (place, _, bob):
            greeted = place.greeted
            async with bob:
                before = store_of(bob).cursors()
                break_machine(bob, lambda: OverflowError(SECRET), 99)
                with pytest.raises(Misbehaved, match="OverflowError") as end:
                    await three(bob)
                assert SECRET not in str(end.value)
                with pytest.raises(Misbehaved):
                    await bob.send("alice", "hello")
                assert (len(bob.history("alice")), store_of(bob).cursors()) == (1, before)
                assert place.greeted - greeted == QUICK.restarts
            async with Client(tmp_path / "bob", [place.address], limits=QUICK) as bob:
                assert await three(bob) == ["0", "1", "2"]

    asyncio.run(story())


def test_a_disk_that_fails_is_not_tried_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with three_waiting(tmp_path) as (place, _, bob):
            greeted = place.greeted
            async with bob:
                break_machine(bob, lambda: StoreFailed("the disk is full"), 99)
                with pytest.raises(StoreFailed):
                    await three(bob)
                assert place.greeted - greeted == 1

    asyncio.run(story())


def test_what_the_app_asked_for_is_never_undone_with_a_frame(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice, place.client(tmp_path, "bob") as bob:
            await asyncio.gather(alice.ready(), bob.ready())
            driver = driver_of(alice)

            def fails(frame: bytes, now: int) -> None:
                raise RuntimeError(SECRET)

            sending = asyncio.create_task(alice.send("bob", "hello"))
            await asyncio.sleep(0)  # it is written, and not committed yet
            assert store_of(alice).dirty
            driver._machine.receive = fails
            driver._receive(b"a frame")
            assert not store_of(alice).dirty
            await (await sending).delivered()
            assert [message.text for message in alice.history("bob")] == ["hello"]

    asyncio.run(story())


def test_nothing_more_is_taken_over_a_connection_that_was_stumbled_over(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice:
            await alice.ready()
            driver = driver_of(alice)
            driver._machine.receive = lambda frame, now: {}[SECRET]
            driver._receive(b"a frame")
            machine, seen = driver._machine, list[bytes]()
            assert not alice.online
            machine.receive = lambda frame, now: seen.append(frame)
            driver._receive(b"another")
            assert seen == []

    asyncio.run(story())


def test_if_no_other_machine_can_be_made_that_is_the_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with three_waiting(tmp_path) as (_, _, bob), bob:
            break_machine(bob, lambda: OverflowError(SECRET), 1)
            store_of(bob).outgoing = lambda: {}[SECRET]
            with pytest.raises(ClientError, match="KeyError") as end:
                await three(bob)
            assert SECRET not in str(end.value)

    asyncio.run(story())


# --- counting ---------------------------------------------------------------------------------------


def test_so_many_in_a_row_are_too_many() -> None:
    budget = RestartBudget(ClientLimits(restarts=3))
    assert [budget.take(Cursors(7), 10) for _ in range(4)] == [True, True, False, False]


def test_after_progress_in_the_mailbox_the_count_begins_again() -> None:
    budget = RestartBudget(ClientLimits(restarts=2))
    for reached in (Cursors(1), Cursors(2), Cursors(2, 1), Cursors(2, 1, 1)):
        assert budget.take(reached, 10)
    assert not budget.take(Cursors(2, 1, 1), 10)


def test_after_a_connection_that_lasted_the_count_begins_again() -> None:
    limits = ClientLimits(restarts=2)
    budget = RestartBudget(limits)
    assert all(budget.take(Cursors(), limits.settled_ms) for _ in range(9))
    assert not budget.take(Cursors(), limits.settled_ms - 1)
