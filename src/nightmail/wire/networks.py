"""The networks that an address belongs to: what is limited by address is limited for each of them."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address

IPV6_PREFIXES = (64, 56, 48)
"""What one customer usually has: a /64 at a hoster, a /56 at home, a /48 as an organization."""


@lru_cache(maxsize=4_096)
def networks(address: str) -> tuple[str, ...]:
    """From the narrowest to the widest. An IPv4 address stands for itself, what is no address as well."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return (address,)
    if parsed.version == 4:
        return (str(parsed),)
    if parsed.ipv4_mapped:
        return (str(parsed.ipv4_mapped),)
    number = int(parsed)
    return tuple(f"{ip_address(number >> (128 - bits) << (128 - bits))}/{bits}" for bits in IPV6_PREFIXES)


def network(address: str) -> str:
    """The narrowest one."""
    return networks(address)[0]
