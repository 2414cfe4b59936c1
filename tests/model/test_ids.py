from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmail.model.ids import (
    ACCOUNT_BITS,
    DEVICE_BITS,
    DEVICES_EVER,
    MESSAGE_ID_CHARS,
    PROBES,
    SERVER,
    MessageId,
    account_id,
    account_ids,
    account_of,
    device_id,
    index_of,
    shard_of,
)

accounts = st.text(min_size=1, max_size=64).map(account_id)
message_ids = st.builds(
    MessageId,
    at_ms=st.integers(0, 10**15 - 1),
    sequence=st.integers(0, 10**12 - 1),
    device=st.integers(0, 2**64 - 1),
    random=st.text("0123456789abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=16),
)

# --- accounts and devices ---------------------------------------------------------------------


def test_an_accounts_id_follows_from_its_handle_for_ever() -> None:
    assert (account_id("alice"), account_id("bob")) == (522_776_919_071_273, 176_740_463_290_811)


@given(st.text(max_size=64))
def test_an_account_id_is_never_the_server_and_fits_its_bits(handle: str) -> None:
    assert SERVER < account_id(handle) < 1 << ACCOUNT_BITS


@given(accounts, st.integers(1, DEVICES_EVER))
def test_a_device_id_contains_its_account_and_number(account: int, index: int) -> None:
    device = device_id(account, index)
    assert (account_of(device), index_of(device)) == (account, index)


@given(accounts)
def test_an_id_of_a_queue_still_fits_a_signed_64_bit_column(account: int) -> None:
    assert device_id(account, DEVICES_EVER) << 1 | 1 < 1 << 63
    assert ACCOUNT_BITS + DEVICE_BITS + 1 < 63


@pytest.mark.parametrize("index", [0, DEVICES_EVER + 1, -1])
def test_device_numbers_outside_of_their_range_are_our_mistake(index: int) -> None:
    with pytest.raises(AssertionError):
        device_id(account_id("alice"), index)


# --- shards -----------------------------------------------------------------------------------


@given(accounts, st.integers(1, 4096))
def test_every_account_lives_on_one_of_the_shards(account: int, shards: int) -> None:
    assert 0 <= shard_of(account, shards) < shards


def test_accounts_are_spread_over_all_shards() -> None:
    counts = [0] * 256
    for n in range(25_600):
        counts[shard_of(account_id(f"person {n}"), 256)] += 1
    assert min(counts) > 50
    assert max(counts) < 160


# --- message ids ------------------------------------------------------------------------------


@given(message_ids)
def test_a_message_id_survives_being_written_and_read(message: MessageId) -> None:
    assert MessageId.parse(str(message)) == message
    assert len(str(message)) <= MESSAGE_ID_CHARS


def test_a_message_id_reads_as_documented() -> None:
    text = "d7f3a2b1:1706745600000:00042:x9k2"
    assert MessageId.parse(text) == MessageId(1_706_745_600_000, 42, 0xD7F3A2B1, "x9k2")
    assert str(MessageId.parse(text)) == text


@given(message_ids, message_ids)
def test_message_ids_sort_by_time_then_by_sequence(one: MessageId, other: MessageId) -> None:
    if (one.at_ms, one.sequence) != (other.at_ms, other.sequence):
        assert (one < other) == ((one.at_ms, one.sequence) < (other.at_ms, other.sequence))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "d7f3a2b1",
        "d7f3a2b1:1706745600000:00042",
        "d7f3a2b1:1706745600000:00042:",
        "d7f3a2b1:1706745600000:00042:x9k2:more",
        "D7F3A2B1:1706745600000:00042:x9k2",
        "d7f3a2b1:-5:00042:x9k2",
        "d7f3a2b1:1706745600000:00042:x9k2\n",
        " d7f3a2b1:1706745600000:00042:x9k2",
        "d7f3a2b1:1706745600000:00042:x-9",
        "00000000000000001:1706745600000:00042:x9k2",
        "d7f3a2b1:1000000000000000:00042:x9k2",
        "d7f3a2b1:1706745600000:1000000000000:x9k2",
        "d7f3a2b1:1706745600000:00042:x9k2x9k2x9k2x9k2x",
        "d7f3a2b1:١٧:00042:x9k2",
    ],
)
def test_anything_else_is_no_message_id(text: str) -> None:
    with pytest.raises(ValueError, match="not a message id"):
        MessageId.parse(text)


@given(st.text())
def test_no_text_makes_the_reader_stumble(text: str) -> None:
    with suppress(ValueError):
        assert str(MessageId.parse(text)).count(":") == 3


def test_a_handle_has_another_id_for_every_probe_and_the_first_is_the_one_it_always_had() -> None:
    ids = account_ids("ada")
    assert ids[:3] == (0x1367E18D9B02F, 0x26F36C7CB17, 0x17E95B7919487)
    assert (len(set(ids)), ids[0]) == (PROBES, account_id("ada"))
