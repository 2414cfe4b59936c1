"""Attacks on uploads and downloads.

Knows:   tus as far as an attack needs it, and that a transfer takes a place until it ends.
"""

from __future__ import annotations

import asyncio
import itertools
import os

from .attack import ADDRESSES, MANY, Attack
from .connection import HOST, Connection, Person, Refused

TUS = "Tus-Resumable: 1.0.0\r\n"
BYTES = "Content-Type: application/offset+octet-stream\r\n"
BLOB_BYTES = 1 << 20
OPEN_UPLOADS = 8
"""Fewer than an account may have."""


def head(method: str, path: str, who: Person, headers: str = "") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: {who.bearer}\r\n{headers}\r\n".encode()


async def answer(connection: Connection) -> tuple[int, str]:
    """Status, and where the server says that something is. Raises Refused if it hangs up instead."""
    try:
        lines = (await connection.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        raise Refused from None
    places = (line.partition(": ")[2] for line in lines if line.lower().startswith("location:"))
    return int(lines[0].split(" ")[1]), next(places, "")


async def upload(attack: Attack, who: Person, body: bytes, size: int) -> str:
    """Begin an upload of so many bytes with the first of them, as soon as the server lets it: its path."""
    headers = f"{TUS}{BYTES}Upload-Length: {size}\r\nContent-Length: {len(body)}\r\n"
    while True:
        try:
            async with Connection(attack.port, ADDRESSES[0]) as connection:
                await connection.say(head("POST", "/v1/media", who, headers) + body)
                status, place = await answer(connection)
            if status == 201:
                return place
        except (Refused, OSError):
            pass
        attack.refused += 1
        await asyncio.sleep(0.05)


async def half_open_uploads(attack: Attack) -> None:
    """A thousand bodies that never end, for a few uploads of one account. Each displaces the one before it."""
    who = await attack.person("half-open")
    paths = [await upload(attack, who, b"", BLOB_BYTES) for _ in range(OPEN_UPLOADS)]

    async def once(number: int) -> None:
        headers = f"{TUS}{BYTES}Upload-Offset: 0\r\nContent-Length: {BLOB_BYTES}\r\n"
        async with Connection(attack.port, ADDRESSES[number % 2]) as connection:
            await connection.say(head("PATCH", paths[number % len(paths)], who, headers) + b"1")
            await connection.reader.read()
            raise Refused

    await attack.crowd(MANY, once)


async def strangers_downloads(attack: Attack) -> None:
    """Blobs that are for others, and names that nobody has, again and again."""
    owner, stranger = await attack.person("owner"), await attack.person("stranger", ADDRESSES[1])
    path = await upload(attack, owner, bytes(BLOB_BYTES), BLOB_BYTES)

    async def once(number: int) -> None:
        wanted = path if number % 2 else f"/v1/media/{owner.account:x}.{os.urandom(16).hex()}"
        async with Connection(attack.port, ADDRESSES[number // 2 % 2]) as connection:
            await connection.say(head("GET", wanted, stranger))
            if (await answer(connection))[0] != 200:
                raise Refused

    await attack.crowd(32, once)


async def range_floods(attack: Attack) -> None:
    """One byte at a time of a large blob, and ranges that are none or too many."""
    who = await attack.person("ranges")
    path = await upload(attack, who, bytes(BLOB_BYTES), BLOB_BYTES)
    places = itertools.count()
    many = ",".join(f"{each}-{each}" for each in range(400))

    async def once(number: int) -> None:
        at = next(places) % BLOB_BYTES
        wanted = (f"{at}-{at}", many, f"{BLOB_BYTES}-", f"-{BLOB_BYTES // 2}")[number % 4]
        async with Connection(attack.port, ADDRESSES[number // 4 % 2]) as connection:
            await connection.say(head("GET", path, who, f"Range: bytes={wanted}\r\n"))
            if (await answer(connection))[0] not in {200, 206}:
                raise Refused
            await connection.reader.read()

    await attack.crowd(32, once)


async def unread_downloads(attack: Attack) -> None:
    """Downloads of one account that nobody reads: each takes a place until its next piece is overdue."""
    who = await attack.person("unread")
    path = await upload(attack, who, bytes(8 * BLOB_BYTES), 8 * BLOB_BYTES)

    async def once(number: int) -> None:
        async with Connection(attack.port, ADDRESSES[number % 2]) as connection:
            await connection.say(head("GET", path, who))
            if (await answer(connection))[0] != 200:
                raise Refused
            await asyncio.sleep(60)

    await attack.crowd(256, once)
