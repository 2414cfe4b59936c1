"""Who is behind a trusted proxy.

Knows:   which peers the operator trusts to say whose connection they forward.
Never:   believes an `X-Forwarded-For` of anybody else.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from .handshake import headers_of

ANYBODY = "*"


class Proxies:
    """`trusted`: addresses and networks, with commas between; `*` is every peer."""

    def __init__(self, trusted: str = "") -> None:
        self._trusted = [part for each in trusted.split(",") if (part := each.strip())]
        self._networks = [ip_network(part, strict=False) for part in self._trusted if _is_network(part)]

    def client(self, peer: str, head: bytes) -> str:
        """The address that sent a request: the peer's, or the last one that no trusted proxy has."""
        if not self.trusts(peer):
            return peer
        chain = [each.strip() for each in headers_of(head).get(b"x-forwarded-for", b"").decode("latin-1").split(",")]
        for address in reversed([each for each in chain if each]):
            peer = address
            if not self.trusts(address):
                break
        return peer

    def trusts(self, address: str) -> bool:
        if not self._trusted:
            return False
        if ANYBODY in self._trusted or address in self._trusted:
            return True
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._networks)


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True
