from __future__ import annotations

import pytest
from msgspec.structs import replace

from nightmail.e2ee import header, peers
from nightmail.e2ee.content import Content, decode_content, encode_content
from nightmail.e2ee.curves import sign
from nightmail.e2ee.errors import (
    BadEncoding,
    CannotOpen,
    KeySpent,
    MembershipDiffers,
    NotAsAnnounced,
    Rejected,
    Undecipherable,
    UnknownVersion,
    WrongDevice,
)
from nightmail.e2ee.groups import sealing as group_sealing
from nightmail.e2ee.groups.sealing import (
    GroupContext,
    conversation_of,
    decode_group_message,
    open_group_entry,
    open_sealed,
    seal,
    seal_group_note,
)
from nightmail.e2ee.groups.sender_keys import (
    ReceivingChain,
    SenderChain,
    decode_handed,
    hand_on,
    make_chain,
    receive_chain,
)
from nightmail.e2ee.labels import Label
from nightmail.e2ee.note import Note, tag_of
from nightmail.model.rows import Entry
from nightmail.model.words import Kind
from tests.e2ee.devices import NOW, Device, Seeded, acquainted, address
from tests.e2ee.group_people import CONTEXT, EPOCH, GROUP, writer_and_reader

NONCE = bytes(range(16))
HELLO = encode_content(Content(Kind.TEXT, "hello"))


def sent(writer: SenderChain, number: int = 1, content: bytes = HELLO) -> tuple[SenderChain, Entry]:
    """What the server files when the device is honest."""
    by = writer.sender.device
    ident = f"{by:x}:1706745600000:{number:05d}:x9k2"
    after, sealed = seal_group_note(writer, CONTEXT, Note(NONCE, ident, content))
    tag = tag_of(NONCE, content, conversation_of(GROUP))
    return after, Entry(by, GROUP, number, ident, tag, Kind.TEXT, None, 1, 0, sealed)


def test_one_ciphertext_opens_for_every_device_that_holds_the_chain() -> None:
    writer, bob = writer_and_reader()
    _, cyd = writer_and_reader()
    after, entry = sent(writer)
    for reader in (bob, cyd):
        opened, note = open_group_entry(reader, CONTEXT, entry, NOW)
        assert decode_content(note.content) == Content(Kind.TEXT, "hello")
        assert (opened.number, after.number) == (1, 1)


def test_a_group_message_is_as_long_as_its_padding_says_whatever_its_text() -> None:
    writer, _ = writer_and_reader()
    sizes = {len(sent(writer, content=encode_content(Content(Kind.TEXT, "x" * n)))[1].ciphertext) for n in range(40)}
    assert sizes == {54 + 128 + 32 + 64}


def test_what_is_repeated_does_not_open_again() -> None:
    writer, reader = writer_and_reader()
    _, entry = sent(writer)
    reader, _ = open_group_entry(reader, CONTEXT, entry, NOW)
    with pytest.raises(KeySpent):
        open_group_entry(reader, CONTEXT, entry, NOW)


def test_whatever_byte_is_changed_the_message_is_refused() -> None:
    writer, reader = writer_and_reader()
    sealed = sent(writer)[1].ciphertext
    for at in range(len(sealed)):
        changed = bytearray(sealed)
        changed[at] ^= 1 << at % 8
        with pytest.raises(Rejected):
            open_sealed(reader, CONTEXT, bytes(changed), NOW)


def test_a_message_of_an_earlier_epoch_is_not_shown_in_a_later_one() -> None:
    writer, reader = writer_and_reader()
    _, entry = sent(writer)
    with pytest.raises(NotAsAnnounced, match="epoch"):
        open_group_entry(reader, CONTEXT._replace(epoch=EPOCH + 1), entry, NOW)


def test_an_epoch_or_a_head_that_is_rewritten_in_the_header_does_not_pass() -> None:
    writer, reader = writer_and_reader()
    _, sealed = seal(writer, CONTEXT, b"hello")
    for context in (CONTEXT._replace(epoch=EPOCH + 1), CONTEXT._replace(head=bytes(32))):
        _, other = seal(writer, context, b"hello")
        rewritten = other[: group_sealing.HEADER_BYTES] + sealed[group_sealing.HEADER_BYTES :]
        with pytest.raises(Undecipherable):
            open_sealed(reader, context, rewritten, NOW)


def test_who_was_shown_other_members_cannot_read_and_is_told() -> None:
    writer, reader = writer_and_reader()
    _, entry = sent(writer)
    with pytest.raises(MembershipDiffers) as caught:
        open_group_entry(reader, CONTEXT._replace(head=bytes(32)), entry, NOW)
    assert isinstance(caught.value, CannotOpen)
    assert (caught.value.group, caught.value.device) == (GROUP, writer.sender.device)


def test_a_message_of_one_group_is_none_of_another() -> None:
    writer, reader = writer_and_reader()
    _, entry = sent(writer)
    other = GroupContext(GROUP + 2, CONTEXT.genesis, EPOCH, CONTEXT.head)
    for context in (other, CONTEXT._replace(genesis=bytes(32))):
        with pytest.raises(NotAsAnnounced, match="group"):
            open_group_entry(reader, context, entry, NOW)
    with pytest.raises(NotAsAnnounced, match="group"):
        open_group_entry(reader, CONTEXT, replace(entry, to=GROUP + 2), NOW)
    elsewhere = replace(reader, genesis=bytes(32))
    with pytest.raises(Undecipherable):
        open_sealed(elsewhere, CONTEXT._replace(genesis=bytes(32)), entry.ciphertext, NOW)


def test_a_fellow_member_who_knows_the_chain_cannot_write_in_its_senders_name() -> None:
    writer, reader = writer_and_reader()
    eve = Device("eve", stock=0)
    own = make_chain(eve.keys.address, GROUP, CONTEXT.genesis, eve.chance, NOW)
    # Eve holds the chain key, so that she can make the MAC; the signing key she has not.
    forger = replace(writer, signing=own.signing)
    _, forged = seal(forger, CONTEXT, b"hello")
    with pytest.raises(Undecipherable):
        open_sealed(reader, CONTEXT, forged, NOW)
    # Nor can she pass off what Ada sealed as her own.
    stolen = receive_chain(decode_handed(hand_on(writer)), eve.keys.address, NOW)
    with pytest.raises(Undecipherable):
        open_sealed(stolen, CONTEXT, seal(writer, CONTEXT, b"hello")[1], NOW)


def test_an_entry_under_anothers_name_or_of_another_chain_is_refused() -> None:
    writer, reader = writer_and_reader()
    _, entry = sent(writer)
    with pytest.raises(WrongDevice):
        open_group_entry(reader, CONTEXT, replace(entry, by=address("eve").device), NOW)
    renewed = make_chain(writer.sender, GROUP, CONTEXT.genesis, Seeded("renewed"), NOW)
    with pytest.raises(Undecipherable):
        open_group_entry(reader, CONTEXT, sent(renewed)[1], NOW)


def test_what_the_server_changed_about_an_entry_is_refused_and_the_honest_one_still_opens() -> None:
    writer, reader = writer_and_reader()
    writer, entry = sent(writer, 1)
    _, other = sent(writer, 2)
    before = replace(reader, skipped=dict(reader.skipped))
    for lie in (
        replace(entry, id=other.id),
        replace(entry, of=other.id),
        replace(entry, tag=bytes(16)),
        replace(entry, kind=Kind.CONTROL),
        replace(entry, ciphertext=other.ciphertext),
    ):
        with pytest.raises(NotAsAnnounced):
            open_group_entry(reader, CONTEXT, lie, NOW)
    assert reader == before
    reader, second = open_group_entry(reader, CONTEXT, other, NOW)
    reader, first = open_group_entry(reader, CONTEXT, entry, NOW)
    assert (first.id, second.id) == (entry.id, other.id)


def test_a_message_moved_from_a_group_into_a_conversation_of_two_does_not_open() -> None:
    writer, reader = writer_and_reader()
    ada, bob = acquainted()
    with pytest.raises(BadEncoding, match="type 3"):
        header.decode_message(seal(writer, CONTEXT, b"hello")[1])
    with pytest.raises(BadEncoding, match="type 1"):
        open_sealed(reader, CONTEXT, peers.seal(bob.peer(ada), bytes(127))[1], NOW)


def test_bytes_of_no_known_form_are_no_group_message() -> None:
    writer, _ = writer_and_reader()
    _, sealed = seal(writer, CONTEXT, b"")
    assert decode_group_message(sealed).key_id == writer.key_id
    for wrong in (b"", sealed[:-1]):
        with pytest.raises(BadEncoding):
            decode_group_message(wrong)
    with pytest.raises(UnknownVersion):
        decode_group_message(b"\2" + sealed[1:])


def signed(writer: SenderChain, reader: ReceivingChain, unsigned: bytes) -> bytes:
    associated = reader.genesis + reader.sender.encode() + unsigned
    return unsigned + sign(writer.signing, Label.GROUP_MESSAGE, associated)


def test_a_sender_who_signs_a_broken_mac_changes_nothing() -> None:
    writer, reader = writer_and_reader()
    unsigned = bytearray(seal(writer, CONTEXT, b"hello")[1][:-64])
    unsigned[-1] ^= 1
    with pytest.raises(Undecipherable):
        open_sealed(reader, CONTEXT, signed(writer, reader, bytes(unsigned)), NOW)


def test_a_chain_seals_for_its_own_group_only() -> None:
    writer, _ = writer_and_reader()
    with pytest.raises(AssertionError):
        seal(writer, CONTEXT._replace(group=GROUP + 2), b"hello")
