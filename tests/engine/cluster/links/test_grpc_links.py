from __future__ import annotations

import asyncio
from pathlib import Path

from nightmail.engine.cluster.links.grpc_links import Credentials, GrpcLinks
from nightmail.server.cluster.certificates import make_certificates

WAIT_S = 60
HOST = "127.0.0.1"


class Taking:
    """A node that listens."""

    def __init__(self, credentials: Credentials | None) -> None:
        self.taken: asyncio.Queue[bytes] = asyncio.Queue()
        self.links = GrpcLinks(self.taken.put_nowait, lambda callback: callback(), credentials)

    async def start(self) -> str:
        return f"{HOST}:{await self.links.start(f'{HOST}:0')}"


def credentials(folder: Path, name: str) -> Credentials:
    return Credentials(*(file.read_bytes() for file in make_certificates(folder, name, [HOST])))


async def hears(listening: Taking, speaking: Taking, packet: bytes, wait_s: float = WAIT_S) -> bytes | None:
    speaking.links.connect({7: await listening.start()})
    speaking.links.send(7, packet)
    try:
        async with asyncio.timeout(wait_s):
            return await listening.taken.get()
    except TimeoutError:
        return None
    finally:
        await speaking.links.close()
        await listening.links.close()


def test_packets_arrive_in_order_and_only_where_they_are_sent() -> None:
    async def story() -> list[bytes]:
        listening, speaking = Taking(None), Taking(None)
        speaking.links.connect({7: await listening.start()})
        for n in range(100):
            speaking.links.send(7, b"%d" % n)
            speaking.links.send(8, b"nobody")
        async with asyncio.timeout(WAIT_S):
            found = [await listening.taken.get() for _ in range(100)]
        await speaking.links.close()
        await listening.links.close()
        return found

    assert asyncio.run(story()) == [b"%d" % n for n in range(100)]


def test_nodes_of_one_authority_hear_each_other(tmp_path: Path) -> None:
    async def story() -> bytes | None:
        one, two = (Taking(credentials(tmp_path, name)) for name in ("one", "two"))
        return await hears(one, two, b"hello")

    assert asyncio.run(story()) == b"hello"


def test_a_node_of_another_authority_is_not_heard(tmp_path: Path) -> None:
    async def story(speaking: Credentials | None) -> bytes | None:
        ours = credentials(tmp_path / "ours", f"one{speaking is None}")
        return await hears(Taking(ours), Taking(speaking), b"hello", wait_s=2)

    assert asyncio.run(story(credentials(tmp_path / "theirs", "eve"))) is None
    assert asyncio.run(story(None)) is None
