from __future__ import annotations

from ipaddress import ip_address

import pytest

from nightmail.outlets.addresses import (
    EVERYWHERE,
    Allowed,
    BadTarget,
    PrivateTarget,
    is_public,
    networks,
    origin_of,
)

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


@pytest.mark.parametrize("address", PRIVATE)
def test_only_a_network_that_the_operator_has_named_is_called(address: str) -> None:
    assert not Allowed().permits(address, secure=True)
    assert Allowed(EVERYWHERE).permits(address, secure=False)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_called_by_tls_only(address: str) -> None:
    assert Allowed().permits(address, secure=True)
    assert not Allowed().permits(address, secure=False)


def test_a_network_in_the_setting_allows_its_mapped_addresses_too_and_no_others() -> None:
    allowed = Allowed(networks("127.0.0.1, 10.0.0.0/8,fd00::/8"))
    assert [
        allowed.permits(each, secure=False)
        for each in ("127.0.0.1", "::ffff:127.0.0.1", "10.1.2.3", "fd00::1", "127.0.0.2", "fe80::1%eth0", "1.1.1.1")
    ] == [True, True, True, True, False, False, False]


@pytest.mark.parametrize(
    "url",
    [
        "", "ftp://example.org/", "example.org", "https://", "https:///path", "https://example.org:0/",
        "https://example.org:99999/", "https://user:word@example.org/", "https://example.org/#part",
        "https://example.org/a b", "https://exämple.org/", "https://[::1", "https://example.org/" + "x" * 2_048,
        "http://example.org/", "https://2130706433/", "https://0x7f.1/", "https://127.1/", "https://0x7f000001/",
        "https://example.org/\r\nHost: other",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_webhook_is_refused_before_anything_is_resolved(url: str) -> None:
    with pytest.raises(BadTarget):
        Allowed().check(url)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "[fd00::1]"])
def test_a_private_address_is_refused_as_such_unless_it_is_allowed(host: str) -> None:
    with pytest.raises(PrivateTarget):
        Allowed().check(f"https://{host}/")
    Allowed(EVERYWHERE).check(f"http://{host}/")


def test_a_public_name_passes_because_only_its_address_can_be_judged() -> None:
    Allowed().check("https://localhost/")
    Allowed().check("https://example.org:8443/path?a=1")


def test_a_receiver_is_scheme_host_and_port() -> None:
    assert origin_of("https://Example.org/a") == origin_of("https://example.org:443/b") == "https://example.org:443"
    assert origin_of("http://example.org") == "http://example.org:80"
