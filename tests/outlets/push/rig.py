"""A provider over HTTP/2 in a process of its own, certificates for it, and pushes to it."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from nightmail.engine.ports import Post
from nightmail.model.push_rows import PushSeen
from nightmail.model.words import PushPlatform
from nightmail.outlets.addresses import Allowed, networks
from nightmail.outlets.caller import CallerLimits, HttpCaller
from nightmail.outlets.dispatch import Dispatch
from nightmail.outlets.places import PlaceLimits
from nightmail.outlets.push.payload import Pseudonyms
from nightmail.outlets.push.ports import PushResult
from nightmail.outlets.push.providers import Providers, ProviderSetup
from nightmail.outlets.thread import ThreadOutlet

ROOT = Path(__file__).parent.parent.parent.parent
PATIENCE_S = 90
STARTED = "Started worker-1"
NOW_MS = 1_750_000_000_000
APPLE_KEY = ec.generate_private_key(ec.SECP256R1())
GOOGLE_KEY = rsa.generate_private_key(65_537, 2_048)
USER = Pseudonyms(b"secret").of(7)


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class Provider:
    def __init__(self, port: int, ca_pem: bytes, log: Path) -> None:
        self.url, self.ca_pem, self._log = f"https://127.0.0.1:{port}", ca_pem, log

    def asked(self, end: str) -> list[dict[str, Any]]:
        """The requests whose path or body ends in, or holds, this."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []
        return [each for each in lines if each["path"].endswith(end) or end in bytes.fromhex(each["body"]).decode()]


@contextmanager
def running(
    folder: Path, app: str = "tests.outlets.push.provider_app:app", interface: str = "asgi"
) -> Iterator[Provider]:
    """Granian, with a provider's app, until the end of the block."""
    ca_pem = _certify(folder)
    log = folder / "asked"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "granian", "--interface", interface, "--host", "127.0.0.1", "--port", str(port), "--http",
        "2", "--no-ws", "--ssl-certificate", str(folder / "cert.pem"), "--ssl-keyfile", str(folder / "key.pem"),
        app,
    ]  # fmt: skip
    environment = {**os.environ, "PROVIDER_LOG": str(log)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said = next((line for line in process.stdout if STARTED in line), None)
            assert said, "the provider has ended"
            yield Provider(port, ca_pem, log)
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _certify(folder: Path) -> bytes:
    now = datetime.datetime.now(datetime.UTC)

    def made(name: str, issuer: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None) -> Any:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        by, signer = issuer or (subject, key)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(by)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=9))
            .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        )
        if issuer:
            here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            builder = builder.add_extension(x509.SubjectAlternativeName([here]), critical=False)
        return subject, key, builder.sign(signer, hashes.SHA256())

    name, key, authority = made("an authority of tests", None)
    _, own_key, own = made("provider", (name, key))
    (folder / "cert.pem").write_bytes(own.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(pem(own_key))
    found: bytes = authority.public_bytes(Encoding.PEM)
    return found


def seen(platform: PushPlatform, token: str, depth: int = 3) -> PushSeen:
    return PushSeen(7, platform, token, 1, 1, 0, depth, is_due=True)


def poster(loop: asyncio.AbstractEventLoop) -> Post:
    def post(callback: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(callback)

    return post


def push_all(setup: ProviderSetup, *pushes: PushSeen, now_ms: int = NOW_MS) -> list[PushResult]:
    """Push, one after the other, and return what became of each."""

    async def run() -> list[PushResult]:
        loop = asyncio.get_running_loop()
        clock = lambda: now_ms  # noqa: E731
        allowed = Allowed(networks("127.0.0.0/8"))
        outlet = ThreadOutlet(lambda: HttpCaller(allowed, CallerLimits(), clock), poster(loop))
        dispatch = Dispatch(outlet, PlaceLimits(), lambda: int(loop.time() * 1_000))
        providers = Providers(setup, dispatch, clock, poster(loop))
        providers.pseudonyms = Pseudonyms(b"secret")
        results: list[PushResult] = []
        try:
            for each in pushes:
                future: asyncio.Future[PushResult] = loop.create_future()
                providers.push(each, future.set_result)
                results.append(await asyncio.wait_for(future, PATIENCE_S))
        finally:
            providers.close()
            outlet.close()
        return results

    return asyncio.run(run())


def probe(setup: ProviderSetup) -> dict[str, str]:
    async def run() -> dict[str, str]:
        loop = asyncio.get_running_loop()
        clock = lambda: NOW_MS  # noqa: E731
        outlet = ThreadOutlet(lambda: HttpCaller(Allowed(), CallerLimits(), clock), poster(loop))
        dispatch = Dispatch(outlet, PlaceLimits(), lambda: 0)
        providers = Providers(setup, dispatch, clock, poster(loop))
        try:
            return await asyncio.wait_for(providers.probe(), PATIENCE_S)
        finally:
            providers.close()

    return asyncio.run(run())
