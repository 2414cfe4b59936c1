"""Which addresses a webhook may have: public ones only.

A server that calls any address can be made to call one that only it can reach (SSRF). So the name is resolved once,
each of its addresses is checked, and the connection goes to one that passed: resolving again could give another.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

NAT64 = IPv6Network("64:ff9b::/96")
NOT_EVERYBODYS = tuple(
    ip_network(text) for text in ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "3fff::/20", "5f00::/16")
)
"""Protocol assignments, 6to4 relays, site-local, documentation, segment routing: not every Python knows them all."""


class PrivateAddress(OSError):
    """A name that leads to this machine or to a private network."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        if address in NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
        if address.ipv4_mapped:
            return is_public(address.ipv4_mapped)
        if address.sixtofour or address.teredo:
            return False
    if any(address in network for network in NOT_EVERYBODYS if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def look_up(host: str, port: int, *, private: bool) -> str:
    """An address to connect to. Raises OSError: PrivateAddress if all are private, and that is not allowed."""
    found = [str(sockaddr[0]) for *_, sockaddr in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for address in found:
        if private or is_public(ip_address(address.partition("%")[0])):
            return address
    raise PrivateAddress("its name leads to this machine or to a private network only")
