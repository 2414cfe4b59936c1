from __future__ import annotations

from nightmail.model.blob_rows import AccountBlobs, Purpose
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS
from nightmail.model.records import ClockBelieved, ClockDoubted, Closed, Record
from tests.core.blob_world import BlobWorld

HOUR = 3_600_000


def test_media_end_after_thirty_days_and_not_before(world: BlobWorld) -> None:
    ada = world.join("ada")
    name = world.upload(ada)
    for _ in range(29):
        world.wait(DAY_MS)
        assert world.seen(name) is not None
    world.wait(DAY_MS - 1_000)
    assert world.seen(name) is not None
    world.wait(2_000)
    assert (world.seen(name), world.doomed(), world.taken(ada)) == (None, [name], AccountBlobs())


def test_an_upload_that_is_not_finished_ends_after_a_day(world: BlobWorld) -> None:
    ada = world.join("ada")
    name = world.draw(ada)
    world.begin(name)
    world.wait(DAY_MS - 1_000)
    assert world.seen(name) is not None
    world.wait(2_000)
    assert (world.seen(name), world.doomed(), world.taken(ada)) == (None, [name], AccountBlobs())


def test_a_blob_that_became_whole_lives_on_beyond_the_time_of_its_upload(world: BlobWorld) -> None:
    name = world.draw(world.join("ada"))
    world.begin(name)
    world.wait(20 * HOUR)
    world.complete(name)
    world.wait(2 * DAY_MS)
    assert world.seen(name) is not None


def test_once_a_day_the_bytes_of_a_whole_blob_are_looked_for(world: BlobWorld) -> None:
    ada = world.join("ada")
    media, backup, begun = world.upload(ada), world.upload(ada, 1, Purpose.BACKUP), world.draw(ada)
    world.begin(begun)
    world.wait(DAY_MS - 1_000)
    assert world.doubted() == []
    world.wait(2_000)
    assert sorted(world.doubted()) == sorted([media, backup])
    world.wait(HOUR)
    assert world.doubted() == []
    world.wait(DAY_MS - HOUR)
    assert sorted(world.doubted()) == sorted([media, backup])


def test_backups_never_end_by_themselves(world: BlobWorld) -> None:
    name = world.upload(world.join("ada"), 10, Purpose.BACKUP)
    for _ in range(50):
        world.wait(10 * DAY_MS)
    assert world.seen(name) is not None


def test_the_blobs_of_a_closed_account_are_gone_within_a_day(world: BlobWorld) -> None:
    ada = world.join("ada")
    names = [world.upload(ada), world.upload(ada, 10, Purpose.BACKUP)]
    world.do(ada[1], Closed(ada.account))
    world.wait(DAY_MS + 1_000)
    assert sorted(world.doomed()) == sorted(names)
    assert [world.seen(name) for name in names] == [None, None]


def test_what_is_removed_before_it_is_looked_at_is_not_looked_at(world: BlobWorld) -> None:
    name = world.upload(world.join("ada"))
    world.remove(name)
    world.wait(40 * DAY_MS)
    assert (world.doomed(), world.doubted()) == ([], [])


def test_time_that_was_skipped_while_a_clock_was_doubted_does_not_age_a_blob(world: BlobWorld) -> None:
    name = world.draw(world.join("ada"))
    node = world.of(name.owner)
    began = node.state.now
    world.fold(node, Record(SERVER, 0, ClockDoubted(began)))
    world.wait(1_000)
    world.begin(name)
    world.complete(name)
    world.fold(node, Record(SERVER, 0, ClockBelieved(began, node.state.now + 40 * DAY_MS)))
    world.now = node.state.now
    world.wait(DAY_MS)
    assert world.seen(name) is not None
    world.wait(30 * DAY_MS)
    assert world.seen(name) is None
