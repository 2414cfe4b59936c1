"""People with real clients at a real node, who send each other files."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from nightmail.client import Client
from nightmail.client.limits import ClientLimits
from nightmail.client.media.rows import FileState
from nightmail.client.messages import Message
from tests.server.rig import WAIT_S, Town

QUICK = ClientLimits(retry_ms_min=20, retry_ms_max=50, backoff_ms_max=50)
LARGE = Random(7).randbytes(700_000)


@asynccontextmanager
async def person(
    town: Town | None, folder: Path, handle: str, *, limits: ClientLimits = QUICK, profile: str = ""
) -> AsyncIterator[Client]:
    """Without a town: out of reach of it."""
    servers = [f"ws://127.0.0.1:{town.port if town else 9}"]
    async with Client(folder / (profile or handle), servers, handle=handle, limits=limits) as client:
        if town:
            await client.ready()
        yield client


def a_file(folder: Path, data: bytes = LARGE, name: str = "notes.txt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


async def message_of(client: Client) -> Message:
    return await asyncio.wait_for(anext(client.messages()), WAIT_S)


async def until(holds: Callable[[], bool]) -> None:
    """Something that happens by itself has happened."""
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await asyncio.to_thread(threading.Event().wait, 0.01)


def state_of(client: Client, message: Message | str) -> FileState | None:
    found = client.file(message)
    return found.state if found else None


def bytes_at(town: Town) -> list[Path]:
    """The blobs that the server holds."""
    return [path for path in (town.node.heart.folder / "media").rglob("*") if path.is_file()]
