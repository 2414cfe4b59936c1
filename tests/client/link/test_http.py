"""Questions over HTTP, against a real server on the loopback that a test scripts."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from nightmail.client.errors import HttpError, Refused, Unreachable
from nightmail.client.limits import ClientLimits
from nightmail.client.link.http import Http, JoinedDevice, RegisteredAccount, bearer
from nightmail.client.own_devices.link_request import token_digest
from nightmail.model.words import Platform
from tests.client.script import ME


class Scripted(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, status: int, answer: Any) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.status, self.answer = status, answer
        self.asked: list[tuple[str, str, str | None, Any]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answering(BaseHTTPRequestHandler):
    def do(self) -> None:
        server = self.server
        assert isinstance(server, Scripted)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = json.loads(body) if body else None
        server.asked.append((self.command, self.path, self.headers.get("Authorization"), asked))
        answer = server.answer if isinstance(server.answer, bytes) else json.dumps(server.answer).encode()
        self.send_response(server.status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@contextlib.contextmanager
def answering(status: int, answer: Any) -> Iterator[Scripted]:
    with Scripted(status, answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_registering_says_the_digest_and_never_the_token() -> None:
    with answering(201, {"account": "a", "device": "1001", "list_version": 1}) as server:
        joined = asyncio.run(Http([server.address]).register(ME, "phone", Platform.CLI))
        assert joined == JoinedDevice("1001", 1, "a")
        asked = {
            "handle": "alice", "label": "phone", "platform": "cli", "registration": 7, "token_digest": token_digest(ME),
        }  # fmt: skip
        assert server.asked == [("POST", "/v1/accounts", None, asked)]


def test_a_device_proves_itself_by_its_token() -> None:
    with answering(200, {}) as server:
        asyncio.run(Http([server.address], authorization=bearer(ME)).unlink(0x1001))
        ((method, path, authorization, _),) = server.asked
        assert (method, path) == ("DELETE", "/v1/devices/1001")
        assert authorization is not None
        device, _, token = authorization.removeprefix("Bearer ").partition(".")
        assert (int(device, 16), base64.urlsafe_b64decode(token + "=")) == (ME.device, ME.token)


def test_a_handle_may_hold_any_character() -> None:
    account = {"account": "a", "handle": "a/b c", "list_version": 2, "devices": {"1001": 7}, "signed": ""}
    with answering(200, account) as server:
        found = asyncio.run(Http([server.address]).account("a/b c"))
        assert found == RegisteredAccount("a", "a/b c", 2, {"1001": 7})
        assert server.asked[0][1] == "/v1/accounts/a%2Fb%20c"


def test_a_problem_is_raised_with_its_code() -> None:
    problem = {"type": "x", "title": "taken", "status": 409, "detail": "'alice' is taken", "code": "0x30"}
    with answering(409, problem) as server, pytest.raises(Refused) as refused:
        asyncio.run(Http([server.address]).register(ME, "", Platform.CLI))
    error = refused.value
    assert (error.status, error.title, error.code) == (409, "taken", "0x30")


def test_the_next_address_is_asked_when_one_does_not_answer_or_is_not_ready() -> None:
    with answering(503, b"not json") as first, answering(200, {"message_id": "m"}) as second:
        http = Http(["http://127.0.0.1:9", first.address, second.address])
        assert asyncio.run(http.message_state("m")) == {"message_id": "m"}


def test_when_nobody_answers_that_is_said_without_the_token() -> None:
    http = Http(["http://127.0.0.1:9"], authorization=bearer(ME))
    with pytest.raises(Unreachable) as error:
        asyncio.run(http.devices())
    assert bearer(ME) not in str(error.value) + repr(http)


@pytest.mark.parametrize("answer", [b"not json", b"[1]", b"x" * 2_000])
def test_an_answer_that_was_not_agreed_is_an_error(answer: bytes) -> None:
    with answering(200, answer) as server, pytest.raises(HttpError):
        asyncio.run(Http([server.address], limits=ClientLimits(http_bytes=1_000)).account("bob"))


def test_a_code_and_a_pin_are_said_where_they_are_needed() -> None:
    with answering(201, {"account": "a", "device": "1001", "list_version": 2}) as server:
        http = Http([server.address])
        asyncio.run(http.register(ME, "phone", Platform.CLI, code="042137", pin_token=b"\xab" * 32))
        assert server.asked[0][3]["code"] == "042137"
        assert server.asked[0][3]["pin_token"] == "ab" * 32


def test_a_code_is_asked_for() -> None:
    with answering(202, {"expires_at": 1_700_000_000_000}) as server:
        assert asyncio.run(Http([server.address]).verify("+491711234567")) == 1_700_000_000_000
        assert server.asked == [("POST", "/v1/verifications", None, {"handle": "+491711234567"})]


def test_a_lock_is_set_and_removed_and_a_device_renamed() -> None:
    with answering(204, b"") as server:
        http = Http([server.address], authorization=bearer(ME))
        asyncio.run(http.set_lock(b"\xab" * 32))
        asyncio.run(http.remove_lock())
        asyncio.run(http.relabel(0x1001, "old phone"))
        assert [(method, path, asked) for method, path, _, asked in server.asked] == [
            ("PUT", "/v1/lock", {"pin_token": "ab" * 32}),
            ("DELETE", "/v1/lock", None),
            ("PATCH", "/v1/devices/1001", {"label": "old phone"}),
        ]


def test_a_linked_device_finds_its_number_once_there_is_one() -> None:
    asked = {"handle": "alice", "registration": 7, "token_digest": token_digest(ME)}
    with answering(200, {"device": "1002", "list_version": 3}) as server:
        assert asyncio.run(Http([server.address]).find_device("alice", 7, token_digest(ME))) == JoinedDevice("1002", 3)
        assert server.asked == [("POST", "/v1/devices/find", None, asked)]
    with answering(404, {"code": "not_found"}) as server:
        assert asyncio.run(Http([server.address]).find_device("alice", 7, token_digest(ME))) is None
    with answering(429, {"code": "rate_limited"}) as server, pytest.raises(Refused):
        asyncio.run(Http([server.address]).find_device("alice", 7, token_digest(ME)))
