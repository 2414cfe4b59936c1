"""Which addresses count together."""

from __future__ import annotations

import pytest

from nightmail.wire.networks import network, networks


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1.2.3.4", "1.2.3.4", True),
        ("1.2.3.4", "1.2.3.5", False),
        ("::ffff:1.2.3.4", "1.2.3.4", True),
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("somewhere", "somewhere", True),
    ],
)
def test_an_ipv6_address_counts_with_its_network(one: str, other: str, same: bool) -> None:
    assert (network(one) == network(other)) is same


def test_an_ipv6_address_belongs_to_wider_networks_too_and_an_ipv4_address_to_itself() -> None:
    assert networks("2001:db8:1:2ff::7") == ("2001:db8:1:2ff::/64", "2001:db8:1:200::/56", "2001:db8:1::/48")
    assert networks("192.0.2.7") == ("192.0.2.7",)
