"""Which addresses a webhook may have: public ones by TLS, and private ones that the operator has named.

A server that calls any address can be made to call one that only it can reach (SSRF). So a name is resolved once, each
of its addresses is checked, and the connection goes to one that passed: resolving again could give another.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import urlsplit

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

NAT64 = IPv6Network("64:ff9b::/96")
NOT_EVERYBODYS = tuple(
    ip_network(text) for text in ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "3fff::/20", "5f00::/16")
)
"""Protocol assignments, 6to4 relays, site-local, documentation, segment routing: not every Python knows them all."""
EVERYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))

URL_CHARS = 2_048
PORTS = {"https": 443, "http": 80}


class PrivateAddress(OSError):
    """A name that leads to this machine or to a private network, or to a public one without TLS."""


class BadTarget(ValueError):
    """No address that could ever be called. Its text says why, and repeats nothing of the address."""


class PrivateTarget(BadTarget):
    """An address of this machine or of a private network, which the operator has not allowed."""


def is_public(address: Address) -> bool:
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


class Allowed:
    """What may be called: every public address by https, and these networks also by http."""

    def __init__(self, private: Iterable[Network] = ()) -> None:
        self.private = tuple(private)

    def permits(self, address: str, *, secure: bool) -> bool:
        parsed = ip_address(address.partition("%")[0])
        if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
            parsed = parsed.ipv4_mapped
        if any(parsed in network for network in self.private if network.version == parsed.version):
            return True
        return secure and is_public(parsed)

    def check(self, url: str) -> None:
        """Raises BadTarget for what could never be called. A name is not resolved: it may lead elsewhere by then."""
        if len(url) > URL_CHARS or not url.isascii() or not url.isprintable() or " " in url:
            raise BadTarget(f"an address has at most {URL_CHARS} printable ASCII characters")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise BadTarget("this is no address") from None
        schemes = ("https", "http") if self.private else ("https",)
        if parts.scheme not in schemes or not host or port == 0:
            raise BadTarget(f"an address begins with {' or '.join(f'{each}://' for each in schemes)} and names a host")
        if parts.username is not None or parts.fragment:
            raise BadTarget("an address has no user and no fragment")
        if is_numeric(host) and not self.permits(host, secure=parts.scheme == "https"):
            raise PrivateTarget("this address is of this machine or of a private network, or needs https")


def is_numeric(host: str) -> bool:
    """Whether it is an address already. Raises BadTarget for one in another spelling than the usual: 2130706433."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        if host.rpartition(".")[2].removeprefix("0x").isdecimal() or host.startswith("0x"):
            raise BadTarget("a numeric host is written as four numbers, or by RFC 4291") from None
        return False
    return True


def origin_of(url: str) -> str:
    """The receiver: scheme, host and port. Raises BadTarget if there is none."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname}:{parts.port or PORTS[parts.scheme]}"
    except (ValueError, KeyError):
        raise BadTarget("this is no address") from None


def networks(text: str) -> tuple[Network, ...]:
    """From a setting: addresses and networks with commas between. Raises ValueError."""
    return tuple(ip_network(each.strip()) for each in text.split(",") if each.strip())
