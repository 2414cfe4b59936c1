from __future__ import annotations

import pytest

from nightmail.e2ee import lists
from nightmail.e2ee.curves import sign
from nightmail.e2ee.errors import (
    AccountKeyChanged,
    BadEncoding,
    BadSignature,
    HandleChanged,
    ListForked,
    ListRolledBack,
    NotListed,
    UnknownVersion,
)
from nightmail.e2ee.labels import Label
from nightmail.e2ee.lists import SignedDeviceList, check_list
from nightmail.model.ids import account_of

from .devices import Device

PHONE, LAPTOP, EVE = Device("ada", 1), Device("ada", 2), Device("eve")
ACCOUNT = account_of(PHONE.device)
KEY = PHONE.keys.account


def a_list(version: int, *devices: Device, key: bytes = KEY, account: int = ACCOUNT) -> SignedDeviceList:
    return lists.sign_list(
        key, account, version, {one.keys.address: one.keys.identity.public for one in devices}
    )  # fmt: skip


def test_a_list_comes_through_its_bytes_and_names_its_devices() -> None:
    made = a_list(3, LAPTOP, PHONE)
    assert check_list(made.signed, ACCOUNT) == made
    assert list(made.devices) == [PHONE.keys.address, LAPTOP.keys.address]
    made.check_peer(made.peer(LAPTOP.device))


def test_a_newer_list_is_taken_and_the_same_one_again() -> None:
    first, second = a_list(1, PHONE), a_list(2, PHONE, LAPTOP)
    assert check_list(second.signed, ACCOUNT, first) == second
    assert check_list(second.signed, ACCOUNT, second) == second


def test_a_list_that_goes_back_is_refused() -> None:
    first, second = a_list(1, PHONE, LAPTOP), a_list(2, PHONE)
    with pytest.raises(ListRolledBack, match="from version 2 to 1"):
        check_list(first.signed, ACCOUNT, second)


def test_two_lists_of_one_version_are_refused() -> None:
    with pytest.raises(ListForked):
        check_list(a_list(2, PHONE, LAPTOP).signed, ACCOUNT, a_list(2, PHONE))


def test_another_account_key_is_never_taken_silently() -> None:
    known = a_list(1, PHONE)
    with pytest.raises(AccountKeyChanged):
        check_list(a_list(2, PHONE, key=EVE.keys.account).signed, ACCOUNT, known)


def test_a_device_that_the_server_put_in_is_refused() -> None:
    honest, injected = a_list(2, PHONE), a_list(2, PHONE, LAPTOP)
    forged = injected.signed[:-64] + honest.signed[-64:]
    with pytest.raises(BadSignature, match="device-list"):
        check_list(forged, ACCOUNT)


def test_a_list_of_another_account_is_refused_and_so_are_its_devices() -> None:
    with pytest.raises(BadEncoding):
        check_list(a_list(1, PHONE).signed, account_of(EVE.device))
    with pytest.raises(BadEncoding, match="another account"):
        a_list(1, PHONE, EVE)


def test_a_signature_made_for_something_else_is_none_for_a_list() -> None:
    body = a_list(1, PHONE).signed[:-64]
    with pytest.raises(BadSignature):
        check_list(body + sign(KEY, Label.SIGNED_PREKEY, body), ACCOUNT)


def test_a_device_that_is_not_listed_or_has_another_key_is_refused() -> None:
    made = a_list(1, PHONE)
    with pytest.raises(NotListed):
        made.peer(LAPTOP.device)
    reset = made.peer(PHONE.device)
    other = lists.Peer.of(reset.address._replace(registration=99), reset.identity)
    for wrong in (other, lists.Peer.of(reset.address, EVE.keys.identity.public)):
        with pytest.raises(NotListed):
            made.check_peer(wrong)


def test_a_list_names_devices_that_left_recently_and_nothing_is_sealed_for_them() -> None:
    gone = {LAPTOP.keys.address: lists.Departed(LAPTOP.keys.identity.public, 1_700_000_000_000)}
    here = {PHONE.keys.address: PHONE.keys.identity.public}
    made = lists.sign_list(KEY, ACCOUNT, 2, here, gone)
    assert check_list(made.signed, ACCOUNT) == made
    assert (made.departed, list(made.devices)) == (gone, [PHONE.keys.address])
    assert made.departed_peer(LAPTOP.device).identity.is_same(LAPTOP.keys.identity.public)
    for call in (lambda: made.peer(LAPTOP.device), lambda: made.departed_peer(PHONE.device)):
        with pytest.raises(NotListed):
            call()
    with pytest.raises(ListForked):
        check_list(made.signed, ACCOUNT, a_list(2, PHONE))
    with pytest.raises(BadEncoding, match="after the end of time"):
        lists.sign_list(
            KEY, ACCOUNT, 2, here, {LAPTOP.keys.address: lists.Departed(LAPTOP.keys.identity.public, 2**60)}
        )
    with pytest.raises(BadEncoding, match="another account"):
        lists.sign_list(KEY, ACCOUNT, 2, here, {EVE.keys.address: lists.Departed(EVE.keys.identity.public, 5)})


def test_bytes_of_no_known_form_are_refused() -> None:
    signed = a_list(1, PHONE, LAPTOP).signed
    for wrong in (b"", signed[:50], signed[:-1], signed + b"\0"):
        with pytest.raises(BadEncoding):
            check_list(wrong, ACCOUNT)
    with pytest.raises(UnknownVersion):
        check_list(b"\x09" + signed[1:], ACCOUNT)


def test_a_list_has_one_form_devices_ascending_and_none_twice() -> None:
    body = bytearray(a_list(1, PHONE, LAPTOP).signed[:-64])
    first, second = body[53:133], body[133:]
    for entries in (second + first, first + first):
        wrong = bytes(body[:53] + entries)
        with pytest.raises(BadEncoding, match="out of order"):
            check_list(wrong + sign(KEY, Label.DEVICE_LIST, wrong), ACCOUNT)


def named(version: int, handle: str) -> SignedDeviceList:
    return lists.sign_list(KEY, ACCOUNT, version, {PHONE.keys.address: PHONE.keys.identity.public}, handle=handle)


def test_a_list_names_the_handle_of_its_account() -> None:
    made = named(2, "ada")
    assert (check_list(made.signed, ACCOUNT), made.handle) == (made, "ada")
    assert check_list(made.signed, ACCOUNT, a_list(1, PHONE)) == made
    assert a_list(1, PHONE).handle == ""


def test_a_handle_that_is_not_the_accounts_is_refused() -> None:
    with pytest.raises(BadEncoding, match="a handle that is not this account's"):
        named(2, "eve")


def test_a_list_that_named_its_handle_is_not_followed_by_one_that_names_none() -> None:
    with pytest.raises(HandleChanged, match="names no handle"):
        check_list(a_list(3, PHONE).signed, ACCOUNT, named(2, "ada"))
    with pytest.raises(ListForked):
        check_list(a_list(2, PHONE).signed, ACCOUNT, named(2, "ada"))


@pytest.mark.parametrize(
    ("handle", "why"),
    [
        (b"", "as long as it says"),
        (b"\0", "as long as it says"),
        (b"\0\0", "as long as it says"),
        (b"\0\4ada", "as long as it says"),
        (b"\0\2ada", "as long as it says"),
        (b"\1\1" + b"a" * 257, "as long as it says"),
        (b"\0\1\xff", "not UTF-8"),
        (b"\0\2a\x1b", "cannot be shown"),
    ],
)
def test_a_handle_of_no_known_form_is_refused(handle: bytes, why: str) -> None:
    body = b"\2" + a_list(1, PHONE).signed[1:-64] + handle
    with pytest.raises(BadEncoding, match=why):
        check_list(body + sign(KEY, Label.DEVICE_LIST, body), ACCOUNT)
