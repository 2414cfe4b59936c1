"""A webhook on this machine, which keeps what it is told and answers as the test wants."""

from __future__ import annotations

import base64
import hmac
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

SECRET = b"s" * 32
WRITTEN = "whsec_" + base64.b64encode(SECRET).decode()


class Call(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def is_signed(self) -> bool:
        """As the scheme's own words have it, not as our code has it."""
        text = b".".join((self.headers["webhook-id"].encode(), self.headers["webhook-timestamp"].encode(), self.body))
        want = base64.b64encode(hmac.new(SECRET, text, "sha256").digest()).decode()
        return self.headers["webhook-signature"] == f"v1,{want}"


class Hook(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *statuses: int, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.scheme = "https" if tls else "http"
        self.headers: dict[str, str] = {}
        """In every response."""
        self.statuses = list(statuses) or [204]
        """One for each call; the last one for all that follow."""
        self.calls: list[Call] = []
        self.peers: set[object] = set()
        """Connections from which it was called."""

    def url_at(self, host: str) -> str:
        return f"{self.scheme}://{host}:{self.server_address[1]}/codes?to=sms"

    @property
    def url(self) -> str:
        return self.url_at("127.0.0.1")


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        hook = self.server
        assert isinstance(hook, Hook)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        hook.calls.append(Call(self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        hook.peers.add(self.client_address)
        status = hook.statuses.pop(0) if len(hook.statuses) > 1 else hook.statuses[0]
        self.send_response(status)
        if status // 100 == 3:
            self.send_header("Location", hook.url)
        for name, value in hook.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@contextmanager
def answering(*statuses: int, tls: ssl.SSLContext | None = None) -> Iterator[Hook]:
    with Hook(*statuses, tls=tls) as hook:
        thread = threading.Thread(target=hook.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield hook
        finally:
            hook.shutdown()
            thread.join()
