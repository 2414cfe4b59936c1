from __future__ import annotations

from nightmail.model.answers import Done
from nightmail.model.blob_rows import AccountBlobs, BlobSeen, Purpose
from nightmail.model.blobs import BlobId
from nightmail.model.ids import account_id
from nightmail.model.limits import DAY_MS
from nightmail.model.refusals import (
    BlobQuota,
    BlobTooLarge,
    TooManyBlobs,
    TooManyUploads,
    Unavailable,
    UnknownAccount,
    UnknownBlob,
)
from tests.core.blob_world import BlobWorld
from tests.core.world import START


def test_a_blob_is_begun_and_becomes_whole(world: BlobWorld) -> None:
    ada = world.join("ada")
    name = world.draw(ada)
    assert world.begin(name, 100) == Done()
    assert world.seen(name) == BlobSeen(Purpose.MEDIA, 100, False, world.now, world.now + DAY_MS)
    assert world.taken(ada) == AccountBlobs(media_bytes=100, files=1, uploads=1)
    world.wait(1_000)
    assert world.complete(name) == Done()
    assert world.seen(name) == BlobSeen(Purpose.MEDIA, 100, True, world.now, world.now + 30 * DAY_MS)
    assert world.taken(ada) == AccountBlobs(media_bytes=100, files=1)
    assert world.now > START


def test_that_it_is_whole_may_be_said_again_and_changes_nothing(world: BlobWorld) -> None:
    name = world.upload(world.join("ada"))
    before = world.seen(name)
    world.wait(DAY_MS)
    assert world.complete(name) == Done()
    assert world.seen(name) == before


def test_what_was_never_begun_is_unknown(world: BlobWorld) -> None:
    name = world.draw(world.join("ada"))
    assert [world.complete(name), world.remove(name), world.seen(name)] == [UnknownBlob(), UnknownBlob(), None]


def test_nobody_begins_a_blob_for_an_account_that_there_is_not(world: BlobWorld) -> None:
    nobody = account_id("nobody")
    assert world.begin(BlobId(nobody, bytes(16))) == UnknownAccount(nobody)


def test_another_secret_under_the_same_key_is_refused_and_not_found(world: BlobWorld) -> None:
    name = world.upload(world.join("ada"))
    other = BlobId(name.owner, name.secret[:-1] + b"!")
    assert other.key == name.key
    assert world.begin(other) == Unavailable()
    assert [world.seen(other), world.remove(other), world.complete(other)] == [None, UnknownBlob(), UnknownBlob()]
    assert world.seen(name) is not None


def test_size_and_quota_are_refused_before_a_byte_is_taken(world: BlobWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.limit(media_bytes=600, media_quota_bytes=1_000, backup_quota_bytes=500)
    world.upload(ada, 600)
    assert world.begin(world.draw(ada), 601) == BlobTooLarge(600)
    assert world.begin(world.draw(ada), 401) == BlobQuota(1_000, 600)
    assert world.begin(world.draw(ada), 501, Purpose.BACKUP) == BlobTooLarge(500)
    assert world.begin(world.draw(ada), 400) == Done()
    assert world.begin(world.draw(ada), 500, Purpose.BACKUP) == Done()
    assert world.begin(world.draw(ada), 1, Purpose.BACKUP) == BlobQuota(500, 500)
    assert world.begin(world.draw(bob), 600) == Done()


def test_an_account_has_so_many_uploads_at_once_and_so_many_blobs(world: BlobWorld) -> None:
    ada = world.join("ada")
    world.limit(media_uploads=2, media_files=3, backups=1)
    first, second = world.draw(ada), world.draw(ada)
    assert [world.begin(name) for name in (first, second, world.draw(ada))] == [Done(), Done(), TooManyUploads(2)]
    world.complete(first)
    world.remove(second)
    assert world.begin(world.draw(ada), 1, Purpose.BACKUP) == Done()
    assert world.begin(world.draw(ada), 1, Purpose.BACKUP) == TooManyBlobs(1)
    third = world.draw(ada)
    assert world.begin(third) == Done()
    world.complete(third)
    assert world.begin(world.draw(ada)) == TooManyBlobs(3)


def test_what_is_removed_is_gone_and_gives_its_space_back(world: BlobWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    whole, begun, backup = world.upload(ada), world.draw(ada), world.upload(ada, 7, Purpose.BACKUP)
    world.begin(begun)
    world.address(whole, bob[1])
    for name in (whole, begun, backup):
        assert world.remove(name) == Done()
        assert world.doomed() == [name]
        assert (world.seen(name), world.seen(name, bob[1])) == (None, None)
        assert world.remove(name) == UnknownBlob()
    assert world.taken(ada) == AccountBlobs()


def test_backups_are_listed_once_they_are_whole(world: BlobWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    first = world.upload(ada, 10, Purpose.BACKUP)
    world.upload(ada)
    unfinished = world.draw(ada)
    world.begin(unfinished, 5, Purpose.BACKUP)
    second = world.upload(ada, 20, Purpose.BACKUP)
    seen = [BlobSeen(Purpose.BACKUP, size, True, world.now, 0) for size in (10, 20)]
    assert world.backups(ada) == [(first, seen[0]), (second, seen[1])]
    assert world.backups(bob) == []
