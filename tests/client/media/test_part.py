"""The order of things, by the machine alone: no message before its blob, and none for a device the blob is not for."""

from __future__ import annotations

from nightmail.client.events import MessageFailed
from nightmail.client.media.addressing import AudienceWanted
from nightmail.client.media.rows import ENDING, ERASING, VERIFIED, FileRow, FileState
from nightmail.client.media.sealed_file import LocalFile
from nightmail.client.messages import Message, Tick
from nightmail.e2ee.content import Content
from nightmail.e2ee.streams.media import MediaPointer, encode_pointer
from nightmail.model.records import GroupSent, Sent
from nightmail.model.words import Kind, Lane
from tests.client.groups.town import a_group
from tests.client.sealed_town import a_town, pass_time, reset, said_by
from tests.client.town import Device

SECRET = bytes(range(1, 17))
DIGEST = bytes(range(32))


def begins(device: Device, to: Device | int, life_ms: int | None = None) -> Message:
    """The person sends a file."""
    me, peer = device.me.account, to if isinstance(to, int) else to.me.account
    pointer = MediaPointer(me, bytes(16), bytes(32), bytes(32), 1_000, "notes.txt")
    content, file = Content(Kind.MEDIA, "see this", None, encode_pointer(pointer)), LocalFile("/notes.txt", 1_000, 1)
    message = device.machine.send_file(peer, content, device.town.now, file=file, life_ms=life_ms)
    device.look()
    return message


def blob_of(device: Device) -> str:
    return f"{device.me.account:013x}-{SECRET.hex()}"


def uploads(device: Device, message: Message) -> None:
    """All of it is at the server."""
    media = device.machine.media(device.town.now)
    assert media.begun(message.id, blob_of(device))
    media.sealed(message.id, 0, DIGEST)
    media.completed(message.id, (device.me.account, SECRET), DIGEST)
    device.look()


def wanted(device: Device) -> list[AudienceWanted]:
    return device.machine.media(device.town.now).wanted()


def names(device: Device) -> list[AudienceWanted]:
    """The server is told whom the blob is for."""
    named = wanted(device)
    for each in named:
        device.machine.media(device.town.now).named(each)
    device.look()
    device.town.settle()
    return named


def sends(device: Device, to: Device | int, life_ms: int | None = None) -> Message:
    message = begins(device, to, life_ms)
    uploads(device, message)
    device.town.settle()
    names(device)
    return message


def file_of(device: Device, message: Message) -> FileRow:
    return device.machine.media(device.town.now).rows.file(message.id)


def test_no_message_leaves_before_its_blob_is_whole_and_its_audience_named() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    message = begins(ada, bob)
    pass_time(town, 10_000)
    assert (said_by(ada, Sent), ada.state(message)) == ([], "pending")
    uploads(ada, message)
    town.settle()
    assert said_by(ada, Sent) == []
    assert names(ada) == [AudienceWanted(message.id, blob_of(ada), (bob.me.device,), 0)]
    assert len(said_by(ada, Sent)) == 1
    (got,) = bob.told(Message)
    assert (got.id, got.text, got.kind, ada.state(message)) == (message.id, "see this", Kind.MEDIA, "delivered")
    upload = got.media
    assert upload is not None
    assert (upload.blob, upload.digest, upload.owner) == (SECRET, DIGEST, ada.me.account)
    assert len(upload.key.strip(b"\0")) > 16


def test_own_devices_are_in_the_audience() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    laptop = town.pair(ada)
    laptop.connect()
    town.settle()
    message = begins(ada, bob)
    uploads(ada, message)
    town.settle()
    assert set(names(ada)[0].devices) == {bob.me.device, laptop.me.device}
    assert [each.own for each in laptop.told(Message)] == [True]


def test_everybody_in_a_group_is_in_the_audience_before_it_is_sealed() -> None:
    town, (ada, bob, cleo) = a_town("ada", "bob", "cleo")
    group = a_group(town, ada, bob, cleo)
    message = begins(ada, group)
    uploads(ada, message)
    pass_time(town, 10_000)
    assert said_by(ada, GroupSent) == []
    assert [set(each.devices) for each in names(ada)] == [{bob.me.device, cleo.me.device}]
    assert [[each.id for each in device.told(Message)] for device in (bob, cleo)] == [[message.id], [message.id]]


def test_a_device_that_comes_between_is_named_before_it_is_sealed_for() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    ada.says(bob, "so that his list is known")
    town.settle()
    message = begins(ada, bob)
    uploads(ada, message)
    town.settle(ada)
    first = wanted(ada)
    tablet = town.pair(bob)
    tablet.connect()
    town.settle()
    ada.machine.media(town.now).named(first[0])
    ada.look()
    town.settle()
    assert [each.devices for each in names(ada)] == [(tablet.me.device,)]
    assert [each.id for each in tablet.told(Message)] == [message.id]


def test_a_successor_is_named_before_the_message_is_sealed_again() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    ada.says(bob, "one")
    town.settle()
    bob.cut()
    message = sends(ada, bob)
    new = reset(town, bob)
    new.connect()
    pass_time(town, 1_000, 10_000)
    assert new.told(Message) == []
    assert [each.devices for each in names(ada)] == [(new.me.device,)]
    pass_time(town, 10_000)
    assert [each.id for each in new.told(Message)] == [message.id]


def test_a_message_that_is_sealed_again_has_the_rest_of_its_life_and_so_has_its_blob() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    ada.says(bob, "one")
    town.settle()
    bob.cut()
    message = begins(ada, bob, life_ms=3_600_000)
    uploads(ada, message)
    town.settle()
    assert [each.life_ms for each in names(ada)] == [3_600_000]
    town.wait(600_000)
    new = reset(town, bob)
    new.connect()
    pass_time(town, 1_000, 10_000)
    (again,) = wanted(ada)
    assert again.devices == (new.me.device,)
    assert 0 < again.life_ms <= 3_600_000 - 600_000


def test_without_a_blob_the_message_has_failed() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    message = begins(ada, bob)
    uploads(ada, message)
    town.settle()
    for each in wanted(ada):
        ada.machine.media(town.now).not_named(each)
    ada.look()
    pass_time(town, 10_000)
    assert (ada.state(message), bob.told(Message)) == ("failed", [])
    assert [event.reason for event in ada.told(MessageFailed)] == ["file_gone"]


def test_texts_behind_a_file_that_is_still_uploaded_do_not_wait_for_it() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    begins(ada, bob)
    ada.says(bob, "meanwhile")
    town.settle()
    assert bob.heard() == ["meanwhile"]


def test_an_upload_goes_on_after_a_crash_under_the_same_key_with_the_digests_it_had() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    message = begins(ada, bob)
    media = ada.machine.media(town.now)
    assert media.begun(message.id, blob_of(ada))
    media.sealed(message.id, 0, DIGEST)
    ada.look()
    before = media.rows.upload(message.id)
    ada.crash()
    media = ada.machine.media(town.now)
    assert (media.rows.uploads(), media.rows.digests(message.id)) == ([message.id], DIGEST)
    assert media.rows.upload(message.id) == before


def test_an_upload_that_begins_again_has_another_key_and_no_digests() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    message = begins(ada, bob)
    media = ada.machine.media(town.now)
    before = media.rows.upload(message.id)
    media.begun(message.id, blob_of(ada))
    media.sealed(message.id, 0, DIGEST)
    media.begin_again(message.id)
    after = media.rows.upload(message.id)
    assert before is not None
    assert after is not None
    assert (after.blob, media.rows.digests(message.id)) == ("", b"")
    assert after.key != before.key


def test_a_message_is_sent_once_although_the_upload_is_said_to_be_whole_twice() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    message = begins(ada, bob)
    uploads(ada, message)
    ada.machine.media(town.now).completed(message.id, (ada.me.account, SECRET), DIGEST)
    town.settle()
    names(ada)
    assert [each.id for each in bob.told(Message)] == [message.id]
    assert len(said_by(ada, Sent)) == 1


def test_what_is_given_up_while_it_is_uploaded_is_never_sent_and_its_blob_ends() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    message = begins(ada, bob)
    media = ada.machine.media(town.now)
    media.begun(message.id, blob_of(ada))
    assert ada.machine.give_up(message.id, town.now)
    media.completed(message.id, (ada.me.account, SECRET), DIGEST)
    ada.look()
    pass_time(town, 10_000)
    assert (ada.state(message), bob.told(Message), media.rows.uploads()) == ("failed", [], [])
    assert (media.rows.due(ENDING), media.is_to_end(blob_of(ada))) == ([blob_of(ada)], True)


def test_a_blob_whose_message_was_given_up_stays_until_its_void_is_answered() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    ada.says(bob, "so that his list is known")
    town.settle()
    message = begins(ada, bob)
    uploads(ada, message)
    town.settle()
    (named,) = wanted(ada)
    assert ada.machine.give_up(message.id, town.now)
    media = ada.machine.media(town.now)
    ada.look()
    media.named(named)
    store = ada.store.message(message.id)
    assert store is not None
    if store.state is Tick.FAILED:
        assert media.is_to_end(blob_of(ada)) is None
    pass_time(town, 10_000)
    assert ada.state(message) == "failed"
    assert media.is_to_end(blob_of(ada)) is True


def test_a_file_is_said_to_be_here_in_the_transaction_that_says_that_it_is_kept() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    message = sends(ada, bob)
    media = bob.machine.media(town.now)
    assert file_of(bob, message).state is FileState.WANTED
    got = bob.store.message(message.id)
    assert got is not None
    assert got.media is not None
    media.kept(got, got.media)
    assert media.rows.due(VERIFIED) == [blob_of(ada)]
    bob.crash()
    assert bob.machine.media(town.now).rows.due(VERIFIED) == []
    assert file_of(bob, message).state is FileState.WANTED


def test_a_pointer_to_somebody_elses_blob_is_refused() -> None:
    town, (ada, bob, eve) = a_town("ada", "bob", "eve")
    pointer = MediaPointer(ada.me.account, SECRET, bytes(32), DIGEST, 1_000, "notes.txt")
    content = Content(Kind.MEDIA, None, None, encode_pointer(pointer))
    message = eve.machine.write(bob.me.account, content, town.now)
    eve.look()
    town.settle()
    assert file_of(bob, message) == FileRow(FileState.REFUSED, "other_owner")


def test_with_a_message_its_file_goes_and_what_opens_it() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    message = sends(ada, bob, life_ms=60_000)
    bob.read(ada)
    pass_time(town, 61_000)
    assert bob.store.message(message.id) is None
    media = bob.machine.media(town.now)
    assert (media.rows.files(), media.rows.due(ERASING)) == ([], [blob_of(ada)])


def test_a_message_with_a_pointer_that_nobody_understands_is_shown_all_the_same() -> None:
    town, (ada, bob) = a_town("ada", "bob")
    ada.machine.write(bob.me.account, Content(Kind.MEDIA, "look", None, b"\xff what"), town.now, lane=Lane.HIGH)
    ada.look()
    town.settle()
    (got,) = bob.told(Message)
    assert (got.text, got.media, bob.machine.media(town.now).rows.files()) == ("look", None, [])
