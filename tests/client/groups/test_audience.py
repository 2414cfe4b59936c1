"""Whose device lists are asked for again when the server says that the devices of a group have changed."""

from __future__ import annotations

import pytest

from nightmail.client.groups import audience
from tests.client.groups.town import a_group, a_town, accounts, texts, writes
from tests.client.town import Device, Town


def looked(device: Device) -> list[int]:
    assert device.session is not None
    return device.session.looked


def a_large_group(monkeypatch: pytest.MonkeyPatch) -> tuple[Town, list[Device], int]:
    monkeypatch.setattr(audience, "SMALL", 2)
    town, people = a_town("ada", "bob", "cleo")
    return town, people, a_group(town, *people)


def test_a_first_message_to_a_large_group_asks_for_no_list_that_was_asked_for_to_make_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    town, (ada, bob, cleo), group = a_large_group(monkeypatch)
    others = accounts([bob, cleo])
    assert sorted(account for account in looked(ada) if account != ada.me.account) == others
    before = len(looked(ada))
    ada.machine.groups(town.now).audience.outdate(group)
    writes(ada, group, "hello")
    town.settle()
    assert (texts(bob, group), texts(cleo, group)) == (["hello"], ["hello"])
    assert not set(looked(ada)[before:]) & set(others)


def test_a_list_that_came_long_ago_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    town, (ada, bob, cleo), group = a_large_group(monkeypatch)
    before = len(looked(ada))
    town.wait(audience.RECENT_MS + 1)
    ada.machine.groups(town.now).audience.outdate(group)
    writes(ada, group, "hello")
    town.settle()
    assert set(looked(ada)[before:]) >= set(accounts([bob, cleo]))


def test_a_list_that_came_over_an_earlier_connection_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    town, (ada, bob, cleo), group = a_large_group(monkeypatch)
    ada.cut()
    ada.connect()
    town.settle()
    before = len(looked(ada))
    ada.machine.groups(town.now).audience.outdate(group)
    writes(ada, group, "hello")
    town.settle()
    assert set(looked(ada)[before:]) >= set(accounts([bob, cleo]))


def test_in_a_small_group_every_list_is_asked_for_again() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    before = len(looked(ada))
    ada.machine.groups(town.now).audience.outdate(group)
    writes(ada, group, "hello")
    town.settle()
    assert set(looked(ada)[before:]) >= set(accounts([bob, cleo]))
