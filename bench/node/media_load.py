"""Work with blobs, in a process of its own:  python -m bench.node.media_load '{"job": …}'

Knows:   the same transfers with and without sealing: a plain copy goes through the same requests.
Prints:  what it measured, as JSON; `seconds` and `cpu_s` are of the transfer alone, `peak_mib` is the most memory that
         the process had.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO, TypeAlias

import msgspec

from nightmail.client import Client
from nightmail.client.limits import ClientLimits
from nightmail.client.media.blob_http import BlobHttp
from nightmail.client.media.transfers import download, upload
from nightmail.client.threads import in_thread

LIMITS = ClientLimits(fetch_bytes=0)
Said: TypeAlias = dict[str, float | str]
PIECE = 262_144
AT_ONCE = 12
"""An account may have 16 uploads that are not finished."""


class MediaOrder(msgspec.Struct):
    job: str
    port: int
    file: str = ""
    blob: str = ""
    profile: str = ""
    handle: str = ""
    to: str = ""
    seconds: float = 0.0
    uploads: int = 0
    bytes_per_s: int = 0
    files: int = 0
    size: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def http(self, number: int = 0) -> BlobHttp:
        return BlobHttp([self.address], _bearer(number), None, LIMITS)

    def client(self) -> Client:
        return Client(self.profile, [self.address], handle=self.handle, limits=LIMITS)


class Watch:
    """Of the time and of the CPU of this process, from now on."""

    def __init__(self) -> None:
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Said:
        return {"seconds": time.perf_counter() - self._began, "cpu_s": time.process_time() - self._cpu}


async def register(order: MediaOrder) -> Said:
    async with order.client() as client:
        await client.ready()
    return {}


async def plain_up(order: MediaOrder) -> Said:
    """Without sealing: the same requests, the same pieces, the same file."""
    http, file, size = order.http(), Path(order.file), os.stat(order.file).st_size

    async def source(offset: int, most: int) -> bytes:
        return await in_thread(lambda: _read(file, offset, most))

    watch = Watch()
    blob = await in_thread(lambda: http.begin(size))
    await upload(http, blob, size, source, LIMITS)
    return {**watch.read(), "blob": blob}


async def plain_down(order: MediaOrder) -> Said:
    """What `plain_up` has sent; then it is removed."""
    http, copy, size = order.http(), Path(order.file).with_name("plain.copy"), os.stat(order.file).st_size
    watch = Watch()
    with copy.open("wb") as out:
        await download(http, order.blob, 0, size, lambda block: _write(out, block), LIMITS)
        await in_thread(lambda: os.fsync(out.fileno()))
    said = watch.read()
    copy.unlink()
    http.remove(order.blob)
    return said


async def send(order: MediaOrder) -> Said:
    """From the wish to send a file until the server has it and the message."""
    async with order.client() as client:
        await client.ready()
        watch = Watch()
        receipt = await client.send_file(order.to, order.file)
        await receipt.sent()
        return watch.read()


async def save(order: MediaOrder) -> Said:
    """From the wish to have it until all of it is verified and lies open in a folder, durably."""
    async with order.client() as client:
        await client.ready()
        async for _ in client.messages():
            break
        files = client.files()
        watch = Watch()
        saved = await client.save_file(files[0].message, order.file, overwrite=True)
        said, size = watch.read(), saved.stat().st_size
        saved.unlink()
        return {**said, "size": size}


async def trickle(order: MediaOrder) -> Said:
    """Some uploads at once, each at so many bytes a second."""
    until, sent = time.monotonic() + order.seconds, [0] * order.uploads
    print(flush=True)  # It begins.

    def run(number: int) -> None:
        http, piece, began = order.http(number), os.urandom(PIECE), time.monotonic()
        blob = http.begin(1 << 30)
        while time.monotonic() < until:
            sent[number] = http.append(blob, sent[number], piece)
            time.sleep(max(0.0, began + sent[number] / order.bytes_per_s - time.monotonic()))
        http.remove(blob)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(order.uploads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"sent_bytes": sum(sent)}


async def small(order: MediaOrder) -> Said:
    """Small files, each in one request that begins an upload and brings its bytes."""
    data, ended, began = os.urandom(order.size), 0, time.perf_counter()
    bearer = _bearer(0)
    head = (
        f"POST /v1/media HTTP/1.1\r\nHost: bench\r\nAuthorization: {bearer}\r\nTus-Resumable: 1.0.0\r\n"
        f"Content-Type: application/offset+octet-stream\r\nUpload-Length: {order.size}\r\n"
        f"Content-Length: {order.size}\r\n\r\n"
    ).encode()

    async def run() -> None:
        nonlocal ended
        while ended < order.files:
            ended += 1
            reader, writer = await asyncio.open_connection("127.0.0.1", order.port)
            writer.write(head + data)
            answer = await reader.readline()
            if b" 201 " not in answer:
                raise RuntimeError(answer.decode())
            writer.close()

    await asyncio.gather(*(run() for _ in range(AT_ONCE)))
    return {"seconds": time.perf_counter() - began, "files": ended}


def _bearer(number: int) -> str:
    from . import people  # noqa: PLC0415 (it loads a server: a client's memory is measured here)

    token = base64.urlsafe_b64encode(people.token(number)).rstrip(b"=").decode()
    return f"Bearer {people.device(number):x}.{token}"


def _peak_mib() -> float:
    """What the kernel says of this program: what `getrusage` says is also of the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def _read(file: Path, at: int, size: int) -> bytes:
    with file.open("rb") as opened:
        opened.seek(at)
        return opened.read(size)


def _write(file: BinaryIO, block: bytes) -> None:
    file.write(block)


JOBS = {job.__name__: job for job in (register, plain_up, plain_down, send, save, trickle, small)}

if __name__ == "__main__":
    asked = msgspec.json.decode(sys.argv[1], type=MediaOrder)
    found = asyncio.run(JOBS[asked.job](asked))
    print(json.dumps({**found, "peak_mib": _peak_mib()}))
