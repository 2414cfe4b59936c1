"""Requests whose body never ends: they cost their sender's share, and nobody else's."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.server.rig import WAIT_S, Person, Town, serving


@contextmanager
def unfinished(town: Town, count: int, who: Person | None = None) -> Generator[list[socket.socket]]:
    """So many requests of which only a part of the body is sent."""
    auth = f"Authorization: {who.bearer}\r\n" if who else ""
    head = f"POST /v1/devices HTTP/1.1\r\nHost: here\r\n{auth}Content-Type: application/json\r\nContent-Length: 99\r\n"
    with ExitStack() as sockets:
        opened = [
            sockets.enter_context(socket.create_connection(("127.0.0.1", town.port), WAIT_S)) for _ in range(count)
        ]
        for each in opened:
            each.sendall(head.encode() + b"\r\n{")
        yield opened


def status(connection: socket.socket) -> int:
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status


def test_an_account_has_so_many_requests_under_way_and_health_is_answered_beside_them(tmp_path: Path) -> None:
    with serving(tmp_path, http__account_requests=2, http__connections=4, http__request_ms=600_000) as town:
        ada, bob = town.register("ada"), town.register("bob")
        with unfinished(town, 2, ada), unfinished(town, 1, ada) as (third,):
            assert status(third) == http.client.TOO_MANY_REQUESTS
            assert town.get("/v1/devices", auth=bob).status == http.client.OK
            assert town.get("/v1/devices", auth=ada).status == http.client.TOO_MANY_REQUESTS
        with unfinished(town, 2, ada), unfinished(town, 2, bob):
            while town.get("/v1/devices", auth=bob).status != http.client.SERVICE_UNAVAILABLE:
                pass
            answers = [town.get(path, auth=town.operator).status for path in ("/healthz", "/readyz", "/metrics")]
            assert answers == [http.client.OK] * 3


def test_an_address_has_so_many_requests_under_way(tmp_path: Path) -> None:
    with serving(tmp_path, http__address_connections=2, http__request_ms=600_000) as town:
        ada = town.register("ada")
        with unfinished(town, 2, ada), unfinished(town, 1, ada) as (third,):
            assert status(third) == http.client.SERVICE_UNAVAILABLE
            assert town.get("/healthz").status == http.client.OK


def test_a_body_is_waited_for_so_long_and_its_place_is_free_again(tmp_path: Path) -> None:
    with serving(tmp_path) as town:  # A request with a body may need more than a millisecond.
        ada = town.register("ada")
    with serving(tmp_path, http__account_requests=1, http__request_ms=1) as town:
        with unfinished(town, 1, ada) as (slow,):
            assert status(slow) == http.client.REQUEST_TIMEOUT
        assert town.get("/v1/devices", auth=ada).status == http.client.OK
