"""Whom a trusted proxy speaks for."""

from __future__ import annotations

import pytest

from nightmail.gateway.proxies import Proxies

HEAD = b"GET / HTTP/1.1\r\nHost: here\r\nX-Forwarded-For: 203.0.113.1, 198.51.100.2, 10.0.0.9"


@pytest.mark.parametrize(
    ("trusted", "peer", "client"),
    [
        ("", "10.0.0.1", "10.0.0.1"),
        ("10.0.0.2", "10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1", "10.0.0.9"),
        ("10.0.0.0/8", "10.0.0.1", "198.51.100.2"),
        ("10.0.0.0/8, 198.51.100.2", "10.0.0.1", "203.0.113.1"),
        ("*", "somewhere", "203.0.113.1"),
        ("10.0.0.0/8", "somewhere", "somewhere"),
        ("no address", "10.0.0.1", "10.0.0.1"),
    ],
)
def test_the_client_is_the_last_one_that_no_trusted_proxy_has(trusted: str, peer: str, client: str) -> None:
    assert Proxies(trusted).client(peer, HEAD) == client


def test_a_proxy_that_says_nothing_speaks_for_itself() -> None:
    assert Proxies("10.0.0.1").client("10.0.0.1", b"GET / HTTP/1.1\r\nHost: here") == "10.0.0.1"
