"""An outlet as a process of its own: it connects to a node on this machine, and makes the calls that it is given.

Touches: the socket in the node's data folder, and the receivers.
Never:   keeps anything: what it was making when it ends is made by another.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from .addresses import Allowed, networks
from .caller import HttpCaller
from .calling import Calling
from .link import LENGTH_BYTES, MESSAGE_BYTES, SOCKET_NAME, Calls, Setup, decode, encode

AGAIN_S = 1.0
"""Between two tries to reach the node."""

log = logging.getLogger("nightmail.outlets")


async def serve(folder: Path, clock: Callable[[], int]) -> None:
    """Until it is cancelled. A node that is not there yet, or restarts, is waited for."""
    told = False
    while True:
        try:
            reader, writer = await asyncio.open_unix_connection(str(folder / SOCKET_NAME))
        except OSError as error:
            if not told:
                log.warning("waiting for the server", extra={"why": error.strerror})
            told = True
        else:
            told = False
            log.info("connected to the server")
            try:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                    await _work(reader, writer, clock)
            finally:
                writer.close()
        await asyncio.sleep(AGAIN_S)


async def _work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, clock: Callable[[], int]) -> None:
    """Make calls until the connection ends. Raises what ended it."""
    try:
        setup: Setup = decode(await _message(reader), Setup)
        allowed = Allowed(networks(setup.private_networks))
        calling = Calling(HttpCaller(allowed, setup.limits, clock), lambda ended: writer.write(encode(list(ended))))
        try:
            while True:
                calling.begin(decode(await _message(reader), Calls))
        finally:
            await calling.close()
    except (ValueError, msgspec.DecodeError):
        log.error("the server says what this program does not understand: are both of the same version?")


async def _message(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
    if size > MESSAGE_BYTES:
        raise ValueError("a message that is too long")
    return await reader.readexactly(size)
