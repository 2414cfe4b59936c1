"""TLS: a certificate is for one name, and no other server may use it."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest

from nightmail.client import Client
from nightmail.client.errors import Refused, Unreachable
from nightmail.client.events import Connected, Retrying
from tests.client.harbour import QUICK, harbour
from tests.client.link.test_http import answering


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For `localhost` alone. The servers here are reached at 127.0.0.1 as well."""
    folder = tmp_path_factory.mktemp("tls")
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    named = ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(["openssl", *made.split(), *named], cwd=folder, check=True, capture_output=True)
    return folder


def serving(certificate: Path) -> ssl.SSLContext:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    return tls


async def first_of(client: Client) -> Connected | Retrying:
    async for event in client.events():
        if isinstance(event, Connected | Retrying):
            return event
    raise AssertionError("the client ended")


@pytest.mark.parametrize(
    ("host", "is_vouched_for", "greeted"),
    [("localhost", True, 1), ("127.0.0.1", True, 0), ("localhost", False, 0)],
    ids=["the right host", "another host", "nobody vouches for it"],
)
def test_a_client_says_hello_only_to_a_host_that_its_certificate_names(
    tmp_path: Path, certificate: Path, host: str, is_vouched_for: bool, greeted: int
) -> None:
    async def story() -> None:
        async with harbour(serving(certificate)) as place:
            profile = place.profile(tmp_path, "alice")
            server = place.address.replace("ws://127.0.0.1", f"wss://{host}")
            ca_file = certificate / "cert.pem" if is_vouched_for else None
            async with Client(profile, [server], ca_file=ca_file, limits=QUICK) as alice:
                event = await first_of(alice)
            assert (isinstance(event, Connected), place.greeted) == (bool(greeted), greeted)

    asyncio.run(story())


@pytest.mark.parametrize(("host", "asked"), [("localhost", 1), ("127.0.0.1", 0)])
def test_a_client_asks_only_a_host_that_its_certificate_names(
    tmp_path: Path, certificate: Path, host: str, asked: int
) -> None:
    async def story(port: int) -> None:
        servers, ca_file = [f"https://{host}:{port}"], certificate / "cert.pem"
        with pytest.raises(Refused if asked else Unreachable):
            async with Client(tmp_path / "new", servers, ca_file=ca_file, limits=QUICK, handle="alice"):
                pass

    with answering(403, {}) as server:
        # The handshake is made by the thread that answers, so that a client that hangs up harms nobody.
        server.socket = serving(certificate).wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )  # fmt: skip
        asyncio.run(story(server.server_address[1]))
        assert len(server.asked) == asked
