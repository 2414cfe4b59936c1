from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from nightmail.model.records.schedules import CallOutcome
from nightmail.outlets import outcomes
from nightmail.outlets.addresses import Allowed, networks
from nightmail.outlets.caller import CallerLimits, HttpCaller
from nightmail.outlets.outcomes import DONE, CallResult
from nightmail.outlets.ports import WebhookCall
from tests.certificates import make_certificate
from tests.outlets.hook import SECRET, answering

NOW = 1_700_000_000_123
LOOPBACK = Allowed(networks("127.0.0.1"))
QUICK = CallerLimits(timeout_ms=120_000)


def call(
    *urls: str, allowed: Allowed = LOOPBACK, limits: CallerLimits = QUICK, tls: ssl.SSLContext | None = None
) -> list[CallResult]:
    """One after the other, by one caller."""

    async def run() -> list[CallResult]:
        caller = HttpCaller(allowed, limits, lambda: NOW, tls)
        try:
            return [await caller.call(WebhookCall("id", url, b'{"a": 1}', SECRET)) for url in urls]
        finally:
            await caller.close()

    return asyncio.run(run())


@contextmanager
def saying(*pieces: bytes) -> Iterator[str]:
    """A receiver that takes a request on each connection, says these bytes, and then nothing for ever."""
    lines: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                lines.append(line)
                with suppress(OSError):  # The caller may have heard enough.
                    line.recv(65_536)
                    for piece in pieces:
                        line.sendall(piece)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for line in lines:
                line.close()


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let each look-up of a name give the next of these addresses. Returns the names that were looked up."""
    real = socket.getaddrinfo

    def use(*addresses: str) -> list[str]:
        left, asked = list(addresses), list[str]()

        def look_up(host: str, port: int, *rest: Any, **named: Any) -> Any:
            asked.append(host)
            return real(left.pop(0) if len(left) > 1 else left[0], port, *rest, **named)

        monkeypatch.setattr("socket.getaddrinfo", look_up)
        return asked

    return use


def test_a_connection_is_kept_for_the_next_call() -> None:
    with answering() as hook:
        assert call(hook.url, hook.url, hook.url) == [DONE] * 3
    assert len(hook.calls) == 3
    assert len(hook.peers) == 1
    assert all(each.is_signed for each in hook.calls)


def test_a_receiver_says_when_to_come_back() -> None:
    with answering(503) as hook:
        hook.headers["Retry-After"] = "120"
        assert call(hook.url) == [CallResult(CallOutcome.FAILED, "http_503", 120_000)]


def test_a_redirect_is_not_followed() -> None:
    with answering(307) as hook:
        hook.headers["Location"] = hook.url  # would be a loop
        assert call(hook.url) == [CallResult(CallOutcome.REFUSED, "redirected")]
    assert len(hook.calls) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
def test_this_machine_is_not_called_unless_it_is_allowed(host: str) -> None:
    with answering() as hook:
        for scheme in ("http", "https"):
            url = hook.url_at(host).replace("http", scheme, 1)
            assert call(url, allowed=Allowed(networks("10.0.0.0/8"))) == [outcomes.PRIVATE]
    assert hook.calls == []


def test_a_name_is_resolved_once_and_the_address_that_was_checked_is_called(
    resolve: Callable[..., list[str]],
) -> None:
    asked = resolve("127.0.0.1", "127.0.0.2")
    with answering() as hook:
        assert call(hook.url_at("hook.test")) == [DONE]
    assert asked == ["hook.test"]
    assert hook.calls[0].headers["host"] == f"hook.test:{hook.server_address[1]}"


def test_a_name_that_has_moved_to_a_private_address_is_not_called(resolve: Callable[..., list[str]]) -> None:
    asked = resolve("127.0.0.1", "127.0.0.2")
    with answering() as first, answering() as second:
        assert call(first.url_at("hook.test"), second.url_at("hook.test")) == [DONE, outcomes.PRIVATE]
    assert asked == ["hook.test"] * 2
    assert second.calls == []


def test_a_certificate_is_checked_against_the_name_although_the_address_is_connected_to(
    tmp_path: Path, resolve: Callable[..., list[str]]
) -> None:
    resolve("127.0.0.1")
    cert, key = make_certificate(tmp_path, "DNS:hook.test")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    ours = ssl.create_default_context(cafile=str(cert))
    with answering(tls=server) as hook:
        right, wrong = hook.url_at("hook.test"), hook.url_at("other.test")
        assert call(right, wrong, tls=ours) == [DONE, outcomes.CERTIFICATE]
        assert call(right) == [outcomes.CERTIFICATE]
    assert len(hook.calls) == 1


def test_nobody_there_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert call(f"http://127.0.0.1:{taken.getsockname()[1]}/") == [outcomes.UNREACHABLE]


def test_a_name_that_nobody_has_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    assert call("https://nowhere.test/") == [outcomes.NAME_UNKNOWN]


@pytest.mark.parametrize("url", ["https://" + "x" * 64 + ".test/", "ftp://hook.test/", "https://127.1/"])
def test_what_cannot_be_an_address_fails_for_good(url: str) -> None:
    assert call(url) == [outcomes.BAD_TARGET]


@pytest.mark.parametrize(
    "pieces",
    [(), (b"HTTP/1.1 200 OK\r\n",), (b"HTTP/1.1 200 OK\r\nX: 1\r\n",), (b"HTTP/1.1 100 Continue\r\n\r\n",)],
)
def test_a_receiver_that_never_finishes_its_headers_has_timed_out(pieces: tuple[bytes, ...]) -> None:
    with saying(*pieces) as url:
        assert call(url, limits=CallerLimits(timeout_ms=50)) == [outcomes.TIMED_OUT]


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 5\r\n\r\n",
        b"Content-Length: 1000000\r\n\r\n" + b"x" * 100_000,
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nxxx",
    ],
)
def test_a_body_that_is_slow_or_long_is_not_waited_for(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightmail.outlets.caller.BODY_S", 0.01)
    with saying(b"HTTP/1.1 200 OK\r\n" + body) as url:
        assert call(url) == [DONE]


def test_what_is_not_http_may_pass() -> None:
    with saying(b"220 mail.test ESMTP\r\n") as url:
        assert call(url) == [outcomes.NO_HTTP]
    with saying(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000) as url:
        assert call(url) == [outcomes.NO_HTTP]


def test_a_kept_connection_that_the_receiver_has_closed_is_made_again() -> None:
    said = 0

    def serve(server: socket.socket) -> None:
        nonlocal said
        for answers in (1, 1):
            line, _ = server.accept()
            with line:
                for _ in range(answers):
                    line.recv(65_536)
                    line.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
                    said += 1
                # It takes the next request, and closes without a word.
                if said == 1:
                    line.recv(65_536)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        assert call(url, url) == [DONE, DONE]
        thread.join()
