from __future__ import annotations

import asyncio
import os

from engines.faults.relays import HOST, Relay, process_behind
from nightmail.testing.running import free_port


def test_a_link_that_is_cut_carries_nothing_and_goes_on_afterwards() -> None:
    async def story() -> list[bytes]:
        ended: list[asyncio.Future[None]] = []

        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(100):
                writer.write(data)
            writer.close()
            ended.append(asyncio.ensure_future(writer.wait_closed()))

        server = await asyncio.start_server(echo, HOST, 0)
        me = [("me", os.getpid())]
        relay = Relay(server.sockets[0].getsockname()[1], lambda port, at: process_behind(port, at, me))
        await relay.start(free_port())
        reader, writer = await asyncio.open_connection(HOST, relay.port)
        writer.write(b"one")
        heard = [await reader.readexactly(3)]
        relay.cut("somebody else")
        writer.write(b"two")
        heard.append(await reader.readexactly(3))
        relay.cut("me")
        writer.write(b"six")
        waiting = asyncio.ensure_future(reader.readexactly(3))
        # A second connection, of which nothing is cut, has answered: the first would have, too.
        other_reader, other_writer = await asyncio.open_connection(HOST, relay.upstream)
        other_writer.write(b"ten")
        heard.append(await other_reader.readexactly(3))
        other_writer.close()
        heard.append(b"nothing" if not waiting.done() else waiting.result())
        relay.heal("me")
        heard.append(await waiting)
        writer.close()
        await relay.close()
        server.close()
        await asyncio.gather(*ended)
        return heard

    assert asyncio.run(story()) == [b"one", b"two", b"ten", b"nothing", b"six"]


def test_nobody_is_behind_a_port_that_no_named_process_has() -> None:
    assert process_behind(1, 2, [("me", os.getpid())]) == ""
