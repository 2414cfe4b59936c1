from __future__ import annotations

from ipaddress import ip_address

import pytest

from nightmail.outlets.addresses import PrivateAddress, is_public, look_up

PRIVATE = (
    "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1", "fd00::1", "ff02::1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::1", "2001:0:1::1", "2001:db8::1",
    "fec0::1", "3fff::1", "5f00::1", "192.88.99.1", "192.0.0.8", "192.0.0.10",
)  # fmt: skip
PUBLIC = ("1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101")


@pytest.mark.parametrize("address", PRIVATE)
def test_what_only_some_can_reach_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_what_everybody_can_reach_is(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "::1", "2130706433", "0x7f.1"])
def test_a_name_that_leads_here_is_refused_unless_it_is_allowed(name: str) -> None:
    with pytest.raises(PrivateAddress):
        look_up(name, 80, private=False)
    assert look_up(name, 80, private=True) in {"127.0.0.1", "::1"}
