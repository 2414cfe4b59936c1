"""Why a server could not be reached."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from nightmail.client.limits import ClientLimits
from nightmail.client.link.connection import WebSocketConnection
from nightmail.client.link.failures import UNTRUSTED
from nightmail.testing import running_server
from tests.certificates import make_certificate


@pytest.mark.parametrize(
    ("alternative_name", "trusted", "why"),
    [
        ("IP:127.0.0.1", True, ""),
        ("IP:127.0.0.1", False, f"{UNTRUSTED} (self-signed certificate)"),
        (
            "DNS:elsewhere.example", True,
            f"{UNTRUSTED} (IP address mismatch, certificate is not valid for '127.0.0.1')",
        ),
    ],
)  # fmt: skip
def test_a_socket_opens_only_to_a_certificate_of_a_trusted_ca_for_this_host(
    tmp_path: Path, alternative_name: str, trusted: bool, why: str
) -> None:
    cert, key = make_certificate(tmp_path, alternative_name)
    tls = ssl.create_default_context(cafile=str(cert)) if trusted else None

    async def attempt(uri: str) -> tuple[bool, str]:
        connection = WebSocketConnection(uri, tls, ClientLimits())
        await connection.open()
        opened = connection.is_open
        if opened:
            connection.hang_up()
            await connection.live(lambda _: None)
        return opened, connection.why

    with running_server({"server.tls_cert_file": cert, "server.tls_key_file": key}) as server:
        uri = f"{server.url.replace('https', 'wss')}/v1/connect"
        assert asyncio.run(attempt(uri)) == (not why, why)


def test_a_port_where_nothing_listens_is_told_as_such() -> None:
    connection = WebSocketConnection("ws://127.0.0.1:9", None, ClientLimits())
    asyncio.run(connection.open())
    assert connection.why == "nothing listens there"
