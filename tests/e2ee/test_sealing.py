from __future__ import annotations

import pytest

from nightmail.e2ee.content import Content, decode_content, encode_content
from nightmail.e2ee.errors import KeySpent, NotAsAnnounced, Undecipherable, WrongDevice
from nightmail.e2ee.note import Note, tag_of
from nightmail.e2ee.sealing import envelope_bytes_max, open_entry, seal_note
from nightmail.model.ids import MESSAGE_ID_CHARS
from nightmail.model.rows import Entry
from nightmail.model.words import Kind

from .devices import Device, acquainted, pair

CONVERSATION = "1f-2e"
NONCE = bytes(range(16))
HELLO = encode_content(Content(Kind.TEXT, "hello"))


def sent(ada: Device, bob: Device, number: int = 1, content: bytes = HELLO) -> Entry:
    """What the server files for Bob when Ada's device is honest."""
    ident = f"{ada.device:x}:1706745600000:{number:05d}:x9k2"
    ada.peers[bob.device], sealed = seal_note(ada.peers[bob.device], Note(NONCE, ident, content))
    return Entry(ada.device, 1, number, ident, tag_of(NONCE, content, CONVERSATION), Kind.TEXT, None, 1, 0, sealed)


def opened(bob: Device, ada: Device, entry: Entry) -> Note:
    result = open_entry(bob.keys, bob.peer(ada), entry, CONVERSATION, bob.now, bob.chance)
    bob.keys, bob.peers[ada.device] = result.keys, result.peer
    return result.note


def changed(entry: Entry, **fields: object) -> Entry:
    return Entry(*(fields.get(name, getattr(entry, name)) for name in Entry.__struct_fields__))  # type: ignore[arg-type]


def test_a_message_goes_from_one_device_to_another() -> None:
    ada, bob = acquainted()
    note = opened(bob, ada, sent(ada, bob))
    assert decode_content(note.content) == Content(Kind.TEXT, "hello")


def test_what_the_server_changed_about_an_entry_is_refused_and_the_honest_one_still_opens() -> None:
    ada, bob = acquainted()
    entry, other = sent(ada, bob, 1), sent(ada, bob, 2)
    before = bob.states()
    lies = [
        changed(entry, id=other.id),
        changed(entry, of=other.id),
        changed(entry, tag=bytes(16)),
        changed(entry, kind=Kind.CONTROL),
        changed(entry, ciphertext=other.ciphertext),
    ]
    for lie in lies:
        with pytest.raises(NotAsAnnounced):
            opened(bob, ada, lie)
    assert bob.states() == before
    assert (opened(bob, ada, entry).id, opened(bob, ada, other).id) == (entry.id, other.id)


def test_an_entry_that_is_delivered_again_does_not_open_again() -> None:
    ada, bob = acquainted()
    entry = sent(ada, bob)
    opened(bob, ada, entry)
    with pytest.raises(KeySpent):
        opened(bob, ada, entry)


def test_an_entry_for_one_device_is_refused_by_another_and_one_of_a_sender_under_anothers_name() -> None:
    ada, bob = acquainted()
    eve = Device("eve")
    eve.open(ada, ada.seal(eve, b"hello"))
    entry = sent(ada, bob)
    with pytest.raises(Undecipherable):
        opened(eve, ada, entry)
    with pytest.raises(WrongDevice):
        open_entry(bob.keys, bob.peer(ada), changed(entry, by=eve.device), CONVERSATION, bob.now)


def test_a_message_moved_to_another_conversation_is_refused() -> None:
    ada, bob = acquainted()
    with pytest.raises(NotAsAnnounced):
        open_entry(bob.keys, bob.peer(ada), sent(ada, bob), "1f-2f", bob.now)


def test_a_message_sealed_again_is_the_same_message_at_its_old_place() -> None:
    ada, bob = acquainted()
    entry = sent(ada, bob)
    transport = f"{ada.device:x}:1706745600000:00009:zzzz"
    ada.peers[bob.device], sealed = seal_note(ada.peers[bob.device], Note(NONCE, entry.id, HELLO, stamp=77))
    again = opened(bob, ada, changed(entry, id=transport, of=entry.id, ciphertext=sealed))
    assert (again.id, again.stamp) == (entry.id, 77)


@pytest.mark.parametrize("size", [1, 300, 5_000, 57_000])
@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.MEDIA])
def test_no_envelope_of_a_content_is_longer_than_foretold_and_the_first_with_the_longest_id_is_as_long(
    kind: Kind, size: int
) -> None:
    ada, bob = pair()
    text = "ab" * size
    content = encode_content(Content(kind, text[:size]) if kind is Kind.TEXT else Content(kind, data=bytes(size)))
    ada.begin(bob)
    longest = seal_note(ada.peers[bob.device], Note(NONCE, "1" * MESSAGE_ID_CHARS, content))[1]
    assert len(longest) == envelope_bytes_max(content)
    assert len(sent(ada, bob, content=content).ciphertext) <= envelope_bytes_max(content)
