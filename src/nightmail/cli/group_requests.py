"""A change of a group, asked for by a command: it needs a server that answers.

Knows:   when to stop waiting: every address failed in turn, or the time that --timeout gives is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nightmail.client import Client, Group
from nightmail.client.events import Connected, Event, QueueEmpty, Retrying
from nightmail.client.listeners import EventIterator

from .errors import Exit, Failure, advice
from .waiting import timeout_seconds

TELLING_S = 5.0
"""So long a command stays connected after the server has taken a change, to tell the members of it. What has not left
by then leaves with the next command."""
LOOK_S = 0.05


async def asked(client: Client, servers: int, ask: Callable[[], Awaitable[Group]]) -> Group:
    """The group after the change. Raises Failure if no server answers; GroupError, Misused.

    `servers`: how many addresses must fail before it gives up.
    """
    drained, events = asyncio.Event(), client.events()
    work = asyncio.ensure_future(_after(drained, ask))
    failing = asyncio.ensure_future(_why_none(events, servers, drained))
    try:
        await asyncio.wait((work, failing), timeout=timeout_seconds(), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            group = work.result()
            await _told(client, group)
            return client.group(group)
        if failing.done():
            raise Failure(Exit.NO_SERVER, failing.result(), "Start one (nightmail serve), or name another (--server).")
    finally:
        for task in (work, failing):
            task.cancel()
        await asyncio.gather(work, failing, return_exceptions=True)
    raise Failure(
        Exit.TIMED_OUT, f"The server did not finish this within {timeout_seconds():g} seconds.",
        "See whether it was done (nightmail group list) before you try again.",
    )  # fmt: skip


async def _after(drained: asyncio.Event, ask: Callable[[], Awaitable[Group]]) -> Group:
    """Ask when this device knows what others have changed."""
    await drained.wait()
    return await ask()


async def _told(client: Client, group: Group) -> None:
    for _ in range(int(TELLING_S / LOOK_S)):
        if not group.is_joined or client.is_told(group):
            return
        await asyncio.sleep(LOOK_S)


async def _why_none(events: EventIterator[Event], servers: int, drained: asyncio.Event) -> str:
    """Returns when every address has failed in turn. Sets `drained` when everything that waited has come."""
    failures = 0
    async for event in events:
        match event:
            case Connected():
                failures = 0
            case QueueEmpty():
                drained.set()
            case Retrying():
                failures += 1
                if failures >= servers:
                    return f"No server answered: {event.why or 'it closed the connection'}. {advice(event.why)}".strip()
            case _:
                pass
    return "The connection ended."
