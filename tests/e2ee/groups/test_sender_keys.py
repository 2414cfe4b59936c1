from __future__ import annotations

import hashlib
from contextlib import suppress

import pytest
from msgspec.structs import replace

from nightmail.e2ee.errors import BadEncoding, KeySpent, TooFarAhead, UnknownVersion
from nightmail.e2ee.groups.sender_keys import (
    CHAIN_MS,
    CHAINS_MAX,
    KEPT_MS,
    MESSAGES_MAX,
    ReceivingChain,
    Renewal,
    decode_handed,
    hand_on,
    key_id_of,
    left_holders,
    make_chain,
    outdated,
    receive_chain,
    renewal,
    to_open,
    to_send,
)
from nightmail.e2ee.kdf import chain_step
from tests.e2ee.devices import NOW, Device, Seeded, address
from tests.e2ee.group_people import CONTEXT, GROUP, writer_and_reader


def keys_of(count: int) -> tuple[ReceivingChain, list[bytes]]:
    writer, reader = writer_and_reader()
    keys: list[bytes] = []
    for _ in range(count):
        writer, key = to_send(writer)
        keys.append(key)
    return reader, keys


def test_both_ends_derive_the_keys_of_the_symmetric_ratchet() -> None:
    writer, reader = writer_and_reader()
    chain = writer.chain
    for number in range(5):
        chain, expected = chain_step(chain)
        (writer, sent), (reader, opened) = to_send(writer), to_open(reader, number, NOW)
        assert (sent, opened, writer.number, reader.number) == (expected, expected, number + 1, number + 1)


def test_a_chain_has_keys_of_its_own_and_its_id_follows_from_them() -> None:
    device = Device("ada", stock=0)
    one, other = (make_chain(device.keys.address, GROUP, CONTEXT.genesis, device.chance, NOW) for _ in range(2))
    assert len({one.chain, other.chain, one.signing, other.signing, device.keys.identity.signing}) == 5
    assert one.key_id == hashlib.sha256(b"nightmail/v1/sender-key-id\0" + one.verify).digest()[:8] != other.key_id


def test_a_newcomer_gets_the_chain_as_it_stands_and_no_key_before_it() -> None:
    writer, _ = writer_and_reader()
    for _ in range(3):
        writer, _ = to_send(writer)
    newcomer = receive_chain(decode_handed(hand_on(writer)), writer.sender, NOW)
    assert (newcomer.number, newcomer.skipped) == (3, {})
    with pytest.raises(KeySpent):
        to_open(newcomer, 2, NOW)
    assert to_open(newcomer, 3, NOW)[1] == to_send(writer)[1]


def test_a_chain_that_is_handed_on_again_does_not_go_back() -> None:
    writer, reader = writer_and_reader()
    reader, _ = to_open(reader, 4, NOW)
    again = receive_chain(decode_handed(hand_on(writer)), writer.sender, NOW + 5, reader)
    assert again == reader
    with pytest.raises(KeySpent):
        to_open(again, 4, NOW)


@pytest.mark.parametrize("sender", [address("ada", 2), address("ada")._replace(registration=99)])
def test_a_chain_that_another_device_hands_on_is_that_devices_own(sender: object) -> None:
    writer, reader = writer_and_reader()
    assert sender != writer.sender
    taken = receive_chain(decode_handed(hand_on(writer)), sender, NOW, reader)  # type: ignore[arg-type]
    assert taken.sender == sender


def test_bytes_of_no_known_form_are_no_chain() -> None:
    writer, _ = writer_and_reader()
    handed = hand_on(writer)
    assert len(handed) == 109
    for wrong in (b"", handed[:-1], handed + b"\0"):
        with pytest.raises(BadEncoding):
            decode_handed(wrong)
    with pytest.raises(UnknownVersion):
        decode_handed(b"\2" + handed[1:])
    with pytest.raises(BadEncoding, match="no group's number"):
        decode_handed(hand_on(replace(writer, group=GROUP | 1)))
    with pytest.raises(BadEncoding, match="past the end"):
        decode_handed(hand_on(replace(writer, number=MESSAGES_MAX + 1)))


# --- skipping ---------------------------------------------------------------------------------


def test_each_message_key_is_given_once_in_whatever_order() -> None:
    reader, keys = keys_of(6)
    for number in (3, 0, 5, 1, 4, 2):
        reader, key = to_open(reader, number, NOW)
        assert key == keys[number]
    assert (reader.number, reader.skipped) == (6, {})
    for number in range(6):
        with pytest.raises(KeySpent):
            to_open(reader, number, NOW)


def test_a_message_may_skip_2000_and_not_one_more() -> None:
    _, reader = writer_and_reader()
    assert len(to_open(reader, 2_000, NOW)[0].skipped) == 2_000
    with pytest.raises(TooFarAhead):
        to_open(reader, 2_001, NOW)


def test_no_more_than_2000_skipped_keys_are_stored_and_the_oldest_go_first() -> None:
    _, reader = writer_and_reader()
    reader, _ = to_open(reader, 1_999, NOW)
    reader, _ = to_open(reader, 2_005, NOW)
    assert list(reader.skipped) == [*range(4, 1_999), *range(2_000, 2_005)]
    with pytest.raises(KeySpent):
        to_open(reader, 3, NOW)


def test_an_attempt_leaves_the_state_as_it_was() -> None:
    _, reader = writer_and_reader()
    reader, _ = to_open(reader, 3, NOW)
    before = replace(reader, skipped=dict(reader.skipped))
    for number in (1, 3, 9, 5_000):
        with suppress(KeySpent, TooFarAhead):
            to_open(reader, number, NOW + 1)
        assert reader == before


# --- renewing ---------------------------------------------------------------------------------


def test_a_chain_goes_on_for_1000_messages_and_no_more() -> None:
    writer, _ = writer_and_reader()
    assert renewal(replace(writer, number=999), [], False, NOW) is None
    assert renewal(replace(writer, number=1_000), [], False, NOW) is Renewal.MESSAGES
    with pytest.raises(AssertionError):
        to_send(replace(writer, number=1_000))


def test_a_chain_goes_on_for_7_days_and_no_longer_by_any_clock() -> None:
    writer, _ = writer_and_reader()
    assert renewal(writer, [], False, NOW + CHAIN_MS - 1) is None
    assert renewal(writer, [], False, NOW + CHAIN_MS) is Renewal.AGE
    assert renewal(writer, [], False, NOW - 1) is None
    assert renewal(writer, [], False, NOW - CHAIN_MS) is Renewal.AGE


def test_a_device_without_a_chain_or_with_an_old_copy_of_one_makes_a_new_one() -> None:
    writer, _ = writer_and_reader()
    assert renewal(None, [], False, NOW) is Renewal.NO_CHAIN
    assert renewal(writer, [], True, NOW) is Renewal.BEHIND


def test_a_device_that_left_ends_the_chain_and_one_that_came_does_not() -> None:
    writer, _ = writer_and_reader()
    phone, laptop, bob = address("ada", 1), address("ada", 2), address("bob")
    holders = [phone, laptop, bob]
    for audience, left in (
        ({phone, laptop, bob}, []),
        ({phone, laptop, bob, address("cyd")}, []),
        ({phone, bob}, [laptop]),
        ({phone, laptop}, [bob]),
        ({phone, laptop, bob._replace(registration=99)}, [bob]),
    ):
        assert left_holders(holders, audience) == left
        assert renewal(writer, left, False, NOW) is (Renewal.HOLDER_LEFT if left else None)


# --- deleting ---------------------------------------------------------------------------------


def test_a_chain_is_kept_as_long_as_a_message_of_it_may_come() -> None:
    _, reader = writer_and_reader()
    assert KEPT_MS == (7 + 31) * 86_400_000
    assert outdated([reader], NOW + KEPT_MS) == []
    assert outdated([reader], NOW + KEPT_MS + 1) == [reader.key_id]
    used, _ = to_open(reader, 0, NOW + 5)
    assert outdated([used], NOW + KEPT_MS + 5) == []


def test_of_one_device_only_the_newest_chains_are_kept() -> None:
    _, reader = writer_and_reader()
    chance = Seeded("chains")
    chains = [replace(reader, key_id=key_id_of(chance.draw(32)), used=NOW + at) for at in range(CHAINS_MAX + 2)]
    assert outdated(chains, NOW) == [chains[1].key_id, chains[0].key_id]
