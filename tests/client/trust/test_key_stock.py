"""A device's own keys: made once, published, confirmed, refilled and renewed."""

from __future__ import annotations

from nightmail.client.events import Reachable
from nightmail.client.limits import ClientLimits
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Listed, Published
from nightmail.wire.items import Answered, KeysLow
from tests.client.sealed_town import a_town, said_by
from tests.client.town import Town


def test_a_new_device_publishes_its_keys_then_signs_its_list_and_then_can_be_written_to() -> None:
    _, (alice,) = a_town("alice")
    assert alice.session is not None
    assert [type(body) for body in alice.session.heard] == [Published, Listed]
    assert alice.told(Reachable) == [Reachable()]


def test_what_was_published_once_is_not_published_again_after_a_restart() -> None:
    town, (alice,) = a_town("alice")
    alice.crash()
    alice.connect()
    town.settle()
    assert said_by(alice, Published) == said_by(alice, Listed) == []


def test_a_device_that_crashes_before_its_keys_are_confirmed_publishes_the_same_ones() -> None:
    town = Town(sealed=True)
    alice = town.join("alice")
    town.meddle = lambda device, item: None if isinstance(item, Answered) else item
    alice.connect()
    town.settle()
    first = said_by(alice, Published)
    town.meddle = lambda device, item: item
    alice.crash()
    alice.connect()
    town.settle()
    assert said_by(alice, Published) == first != []


def test_signed_prekeys_are_renewed_after_a_week() -> None:
    town, (alice,) = a_town("alice")
    for _ in range(8):
        town.wait(86_400_000)
        town.settle()
    assert len(said_by(alice, Published)) == 2


def test_how_often_they_are_renewed_is_a_setting() -> None:
    town = Town(sealed=True)
    alice = town.join("alice", limits=ClientLimits(rotate_ms=2 * DAY_MS))
    alice.connect()
    town.settle()
    for _ in range(8):
        town.wait(DAY_MS)
        town.settle()
    assert len(said_by(alice, Published)) == 1 + 4


def test_low_stock_is_refilled() -> None:
    town, (alice,) = a_town("alice")
    alice.machine.sealer.take_keys_low(KeysLow())
    alice.look()
    town.settle()
    assert [len(body.one_time) for body in said_by(alice, Published)] == [100, 100]


def test_however_often_few_are_left_keys_are_made_every_few_minutes_and_a_bounded_number_is_held() -> None:
    town, (alice,) = a_town("alice")
    alice.machine.sealer.take_keys_low(KeysLow())
    alice.look()
    town.settle()
    for _ in range(20):
        alice.machine.sealer.take_keys_low(KeysLow())
        alice.look()
        town.settle()
    assert len(said_by(alice, Published)) == 2
    town.wait(alice.limits.restock_ms)
    town.settle()
    assert [len(body.one_time) for body in said_by(alice, Published)] == [100, 100, 100], "without being told again"
