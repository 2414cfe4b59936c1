"""A real node on a free port of this machine and a real folder, on a thread of its own; and somebody who asks it.

with serving(folder) as town:
    ada = town.register("ada")
    town.get("/v1/devices", ada)
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.client
import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.ports import REF_BITS
from nightmail.model.answers import Said
from nightmail.model.ids import account_of
from nightmail.model.records import AnyBody, Envelope, Record, Sent
from nightmail.model.words import Kind, Lane
from nightmail.server.config import load
from nightmail.server.node import Node
from nightmail.server.operator import FILE_NAME

T = TypeVar("T")

WAIT_S = 120
"""No test waits this long unless something hangs."""

SMALL: dict[str, Any] = {
    "data.segment_bytes": 4 << 20, "server.port": 0, "gateway.stop_ms": 1, "gateway.address_requests_burst": 1_000_000,
    "log.level": "error",
}  # fmt: skip


class Person(NamedTuple):
    """A device, and what it proves itself with."""

    handle: str
    device: int
    token: bytes

    @property
    def account(self) -> int:
        return account_of(self.device)

    @property
    def bearer(self) -> str:
        return f"Bearer {self.device:x}.{base64.urlsafe_b64encode(self.token).rstrip(b'=').decode()}"


class Reply(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def new_device(token: bytes, **fields: Any) -> dict[str, Any]:
    digest = hashlib.sha256(token).hexdigest()
    return {"label": "phone", "platform": "cli", "registration": 7, "token_digest": digest, **fields}


class Asker:
    """Somebody with an HTTP client."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(
        self, method: str, path: str, body: Any = None, *, auth: Person | str | None = None, **headers: str
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            if auth:
                sent["Authorization"] = auth.bearer if isinstance(auth, Person) else auth
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            if data is not None:
                sent.setdefault("Content-Type", "application/json")
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path: str, auth: Person | str | None = None) -> Reply:
        return self.ask("GET", path, auth=auth)

    def register(self, handle: str) -> Person:
        token = f"the token of {handle}".encode().ljust(32, b".")
        reply = self.ask("POST", "/v1/accounts", new_device(token, handle=handle))
        assert reply.status == 201, reply
        return Person(handle, int(reply.json["device"], 16), token)


class Town(Asker):
    """A node, and its people."""

    def __init__(self, node: Node, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(node.port)
        self.node, self.loop = node, loop
        self._ref = 0

    @property
    def operator(self) -> str:
        return f"Bearer operator.{(self.node.heart.folder / FILE_NAME).read_text().strip()}"

    def run(self, what: Callable[[], T]) -> T:
        """Do something on the node's own thread."""

        async def do() -> T:
            return what()

        return asyncio.run_coroutine_threadsafe(do(), self.loop).result(WAIT_S)

    def say(self, by: int, body: AnyBody) -> Said:
        """Have a device say something, as its connection would."""

        async def do() -> Said:
            answer: asyncio.Future[Said] = self.loop.create_future()
            line = self.node.desk.open_line(lambda _, said: answer.set_result(said))
            self.node.desk.submit([Record(by, line << REF_BITS | 1, body)])
            self.node.heart.loop.flush()
            try:
                return await answer
            finally:
                self.node.desk.close_line(line)

        return asyncio.run_coroutine_threadsafe(do(), self.loop).result(WAIT_S)


def message(by: Person, to: Person, n: int = 1) -> Sent:
    return Sent(
        to=to.account,
        lane=Lane.NORMAL,
        n=n,
        floor=1,
        seen=0,
        id=f"{by.device:x}:1700000000000:{n:05d}:x",
        tag=bytes(16),
        kind=Kind.TEXT,
        of=None,
        life_ms=0,
        list_version=1,
        envelopes=(Envelope(to.device, 7, b"sealed"),),
        own_envelopes=(),
    )


class Times:
    """The machine's two clocks, set by hand, in ms. What waits in the event loop goes by the real ones."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.wall, self.pace = 1_700_000_000_000, 5_000_000
        patch.setattr("time.time_ns", lambda: self.wall * 1_000_000)
        patch.setattr("time.monotonic_ns", lambda: self.pace * 1_000_000)

    def go_on(self, ms: int) -> None:
        self.wall += ms
        self.pace += ms


@contextmanager
def serving(folder: Path, newest_fold: int = NEWEST_FOLD, **settings: Any) -> Generator[Town]:
    """`server__host` stands for server.host."""
    flags = SMALL | {"data.folder": str(folder)} | {name.replace("__", "."): value for name, value in settings.items()}
    node = Node(load(flags=flags).config, newest_fold)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="node")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(node.start(), loop).result(WAIT_S)
        try:
            yield Town(node, loop)
        finally:
            asyncio.run_coroutine_threadsafe(node.stop(), loop).result(WAIT_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
