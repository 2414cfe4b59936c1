"""Draws the operations page for the README: a real server, real clients who write to each other, a real browser.

    python -m pictures.ops docs/ops.png

Touches: a server process in a temporary folder, a webhook on this machine, and the file that it writes.
Never:   invents a figure: the picture is a screenshot.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import threading
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

from playwright.sync_api import Browser, Page

from nightmail.client import Client
from nightmail.testing import RegisteredDevice, running_server

from .browser import browsing

PEOPLE = ("ada", "bob", "carol", "dan", "erin", "frank")
SIZE = {"width": 1280, "height": 846}
SETTINGS: dict[str, object] = {"schedule.webhooks": "accounts", "schedule.private_networks": "127.0.0.1"}
CALLS = 12
CALM_S, BUSY_S = 0.25, 0.04
"""Between two messages of one person."""


# --- traffic ----------------------------------------------------------------------------------


async def talk(people: dict[str, RegisteredDevice], seconds: float) -> None:
    """Everybody writes to everybody, now more, now less; the last one is away, so that a mailbox fills."""
    chance = random.Random(7)
    *present, away = people
    clients = [people[name].client() for name in present]
    async with asyncio.timeout(seconds + 60), asyncio.TaskGroup() as group:
        for name, client in zip(present, clients, strict=True):
            group.create_task(_write(client, [other for other in people if other != name], away, seconds, chance))


async def _write(client: Client, others: list[str], away: str, seconds: float, chance: random.Random) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with client:
        while (gone := loop.time() - began) < seconds:
            to = chance.choice(others)
            if to != away or chance.random() < 0.2:
                await client.send(to, "The night mail crosses the border.")
            busy = 0.5 + 0.5 * math.sin(2 * math.pi * gone / 90)
            await asyncio.sleep((CALM_S + (BUSY_S - CALM_S) * busy) * chance.uniform(0.5, 1.5))


# --- calls that fail --------------------------------------------------------------------------


class _Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(410 if self.path.endswith("gone") else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is the base class's)
        """Nothing to print."""


@contextmanager
def refusing_webhook() -> Generator[str]:
    """A receiver that knows nothing of what it is told. Yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Served(Protocol):
    """Where a server is, and how its operator signs in."""

    @property
    def url(self) -> str: ...

    @property
    def operator_token(self) -> str: ...


def schedule_calls(server: Served, receiver: str, count: int, delay_s: float = 0) -> None:
    for number in range(count):
        body = {
            "account": PEOPLE[0],
            "content": {"order": number},
            "target": {"type": "webhook", "url": f"{receiver}/{'gone' if number % 3 == 2 else 'orders'}"},
            "delay_seconds": delay_s * (number + 1),
        }
        request = urllib.request.Request(
            f"{server.url}/v1/schedule", json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer operator.{server.operator_token}"},
        )  # fmt: skip
        urllib.request.urlopen(request, timeout=30).close()


# --- the page ---------------------------------------------------------------------------------


def signed_in(browser: Browser, server: Served, **options: Any) -> Page:
    page = browser.new_page(**options)
    page.goto(f"{server.url}/ops")
    page.fill("#token", server.operator_token)
    page.click("text=Sign in")
    page.wait_for_selector(".tile b")
    return page


def draw(path: Path, seconds: float, scheme: str) -> None:
    with running_server(SETTINGS) as server, refusing_webhook() as receiver:
        people = {name: server.register(name) for name in PEOPLE}
        talking = threading.Thread(target=lambda: asyncio.run(talk(people, seconds)))
        talking.start()
        schedule_calls(server, receiver, CALLS)
        with browsing() as browser:
            page = signed_in(browser, server, viewport=SIZE, color_scheme=scheme)
            page.wait_for_timeout(max(0, seconds - 15) * 1000)
            page.screenshot(path=path)
        talking.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--seconds", type=float, default=240, help="how long people talk")
    parser.add_argument("--scheme", choices=("dark", "light"), default="dark")
    given = parser.parse_args()
    draw(given.path, given.seconds, given.scheme)
