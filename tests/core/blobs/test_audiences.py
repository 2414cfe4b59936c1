from __future__ import annotations

from nightmail.model.answers import Done
from nightmail.model.blob_rows import PAGE_DEVICES, AccountBlobs, Purpose
from nightmail.model.ids import device_id
from nightmail.model.limits import DAY_MS
from nightmail.model.refusals import BackupPrivate, BlobUnfinished, TooManyAddressed, UnknownBlob
from tests.core.blob_world import BlobWorld


def test_only_the_owner_and_accounts_that_are_named_see_a_blob(world: BlobWorld) -> None:
    ada, bob, eve = world.join("ada", 2), world.join("bob", 2), world.join("eve")
    name = world.upload(ada)
    assert [world.seen(name, who) is None for who in (ada[2], bob[1], eve[1])] == [False, True, True]
    assert world.address(name, bob[1]) == Done()
    assert [world.seen(name, who) is None for who in (ada[2], bob[1], bob[2], eve[1])] == [False, False, False, True]


def test_a_device_that_joins_a_named_account_later_may_fetch_it(world: BlobWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    name = world.upload(ada)
    world.address(name, bob[1])
    assert world.seen(name, device_id(bob.account, 9)) is not None


def test_the_bytes_may_go_when_the_last_named_device_has_verified_them_and_not_before(world: BlobWorld) -> None:
    ada, bob = world.join("ada", 2), world.join("bob", 2)
    name = world.upload(ada)
    world.address(name, bob[1], bob[2], ada[2])
    for device in (bob[1], bob[2], bob[2], bob[1]):
        assert (world.verify(name, device), world.doomed()) == (Done(), [])
    assert (world.verify(name, ada[2]), world.doomed()) == (Done(), [name])
    assert world.seen(name) is None
    assert world.verify(name, ada[2]) == UnknownBlob()
    assert world.taken(ada) == AccountBlobs()


def test_who_was_not_named_verifies_nothing(world: BlobWorld) -> None:
    ada, bob, eve = world.join("ada"), world.join("bob", 2), world.join("eve")
    name = world.upload(ada)
    world.address(name, bob[1])
    for stranger in (eve[1], bob[2], ada[1]):
        assert (world.verify(name, stranger), world.doomed()) == (UnknownBlob(), [])
    assert world.seen(name) is not None


def test_naming_again_adds_to_those_that_were_named_and_forgets_nobody(world: BlobWorld) -> None:
    ada, bob, cleo = world.join("ada"), world.join("bob"), world.join("cleo")
    name = world.upload(ada)
    world.address(name, bob[1], cleo[1])
    world.verify(name, bob[1])
    assert world.address(name, bob[1], bob[1]) == Done()
    assert (world.verify(name, cleo[1]), world.doomed()) == (Done(), [name])


def test_a_large_audience_is_named_page_by_page(world: BlobWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.limit(media_devices=600)
    name = world.upload(ada)
    devices = [device_id(bob.account, index) for index in range(1, 601)]
    for first in range(0, 600, 200):
        assert world.address(name, *devices[first : first + 200]) == Done()
    assert world.address(name, *devices[:PAGE_DEVICES]) == Done()
    assert world.address(name, device_id(bob.account, 601)) == TooManyAddressed(600)
    for device in devices[:-1]:
        world.verify(name, device)
        assert world.doomed() == []
    world.verify(name, devices[-1])
    assert world.doomed() == [name]


def test_nobody_is_sent_to_fetch_what_is_not_whole(world: BlobWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    name = world.draw(ada)
    assert world.address(name, bob[1]) == UnknownBlob()
    world.begin(name)
    assert world.address(name, bob[1]) == BlobUnfinished()
    assert (world.verify(name, bob[1]), world.seen(name, bob[1])) == (UnknownBlob(), None)


def test_a_backup_is_for_nobody_but_its_owner(world: BlobWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    name = world.upload(ada, 10, Purpose.BACKUP)
    assert world.address(name, bob[1]) == BackupPrivate()
    assert (world.seen(name, bob[1]), world.verify(name, bob[1])) == (None, UnknownBlob())


def test_a_timer_makes_the_end_sooner_and_never_later(world: BlobWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    name = world.upload(ada)
    world.wait(DAY_MS)
    world.address(name, bob[1], life_ms=10 * DAY_MS)
    world.address(name, bob[1], life_ms=20 * DAY_MS)
    world.address(name, bob[1])
    seen = world.seen(name)
    assert seen is not None
    assert seen.ends_at == world.now + 10 * DAY_MS
    world.wait(10 * DAY_MS - 1_000)
    assert world.seen(name, bob[1]) is not None
    world.wait(2_000)
    assert (world.seen(name), world.doomed()) == (None, [name])
