"""Which addresses a webhook may be at: those that everybody can reach.

A server that calls whatever it is told to can be made to call what only it can reach. So the name is looked up
once, every address of it is judged, and one that passed is connected to: a second look-up could say another.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

NAT64 = IPv6Network("64:ff9b::/96")
NOT_EVERYBODYS = tuple(
    ip_network(text) for text in ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "3fff::/20", "5f00::/16")
)
"""Protocols' own, relays of old, sites' own, documentation, segments: not every Python knows of them."""


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
