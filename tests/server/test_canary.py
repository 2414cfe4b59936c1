"""A marker in a message's text is nowhere on the server: not in its files, log, memory, answers or traffic.

The search itself is tried on the client, where the marker must be: a search that finds nothing anywhere shows nothing.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import os
import secrets
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from nightmail.client import Client
from nightmail.testing import RunningServer, running_server

STEP = 1 << 20


def forms_of(plain: bytes) -> list[bytes]:
    """The marker as it is, and as it might be hidden without being sealed: in hex, in base64, in two-byte letters."""
    # Base64 depends on what stands before it: without the letters at both ends, one of three forms is always there.
    shifted = [base64.b64encode(b"\0" * pad + plain)[4:-4] for pad in range(3)]
    return [plain, plain.hex().encode(), plain.decode("latin-1").encode("utf-16-le"), *shifted]


def new_marker() -> bytes:
    return b"canary-" + secrets.token_hex(12).encode()


def memory_of(pid: int) -> Iterator[bytes]:
    """Everything a process can read of itself, in pieces that overlap."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, rights, *_ = line.split()
            if not rights.startswith("r") or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            low, high = (int(end, 16) for end in span.split("-"))
            for at in range(low, high, STEP):
                with suppress(OSError):  # a page that the kernel keeps to itself, or that is gone by now
                    memory.seek(at)
                    yield memory.read(min(STEP + 256, high - at))


def files_in(folder: Path) -> Iterator[bytes]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.read_bytes()


def holds(pieces: Iterator[bytes] | list[bytes], marker: bytes) -> bool:
    forms = forms_of(marker)
    return any(form in piece for piece in pieces for form in forms)


@asynccontextmanager
async def listening(server: RunningServer, heard: list[bytes]) -> AsyncGenerator[str]:
    """A wire-tap: everything between clients and server goes through here."""
    tasks: set[asyncio.Task[None]] = set()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                heard.append(data)
                writer.write(data)
                await writer.drain()
        writer.close()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", server.port)
        tasks.update((asyncio.create_task(copy(reader, ours)), asyncio.create_task(copy(theirs, writer))))

    tap = await asyncio.start_server(meet, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{tap.sockets[0].getsockname()[1]}"
    finally:
        tap.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def ask(server: RunningServer, path: str) -> bytes:
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer operator.{server.operator_token}"})
        return connection.getresponse().read()
    finally:
        connection.close()


def test_what_is_written_is_nowhere_on_the_server(tmp_path: Path) -> None:
    asyncio.run(look_everywhere(tmp_path))


async def look_everywhere(tmp_path: Path) -> None:
    waiting, talked = new_marker(), new_marker()
    heard: list[bytes] = []
    async with running_server({"log.level": "debug"}) as server, listening(server, heard) as url:
        async with Client(tmp_path / "ada", [url], handle="ada") as ada:
            async with Client(tmp_path / "bob", [url], handle="bob") as bob:
                # Long enough to be compressed before it is sealed, and short enough not to be.
                for text in (talked.decode(), f"{talked.decode()} " * 30):
                    receipt = await ada.send("bob", text)
                    assert (await anext(bob.messages())).text == text
                    await receipt.delivered()
            # Bob is away: this one stays on the server.
            kept = await ada.send("bob", waiting.decode())
            await kept.sent()
            assert server.pid is not None
            seen = {
                "memory": memory_of(server.pid),
                "files": files_in(server.folder),
                "log": [server.log.encode()],
                "metrics": [ask(server, "/metrics")],
                "trace": [ask(server, f"/v1/trace/{kept.message_id}")],
                "traffic": [b"".join(heard)],
            }
            for marker in (waiting, talked):
                assert holds(memory_of(os.getpid()), marker), "the search finds nothing even where it is"
            for place, pieces in seen.items():
                found = list(pieces)
                assert sum(map(len, found)), f"nothing was looked at: {place}"
                for marker in (waiting, talked):
                    assert not holds(found, marker), f"content in the server's {place}"
                if place not in ("memory", "traffic"):  # A token is said to the server, and kept nowhere.
                    assert not holds(found, ada.identity.token), f"a token in the server's {place}"
        server.stop()
        assert not holds(files_in(server.folder), waiting)
