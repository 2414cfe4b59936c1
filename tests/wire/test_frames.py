"""Items into bytes and back, and what is made of bytes that are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightmail.model.records import Acked
from nightmail.model.rows import Entry, GroupEntry
from nightmail.model.words import Lane
from nightmail.wire.frames import BadFrame, decode_from_device, decode_from_server, decode_hello, encode
from nightmail.wire.items import Ask, Entries, FromDevice, FromServer, Hello, Ping, Pong
from tests.wire.values import DEVICE_ITEMS, INTEGERS, SERVER_ITEMS, from_devices, from_servers, of_type

DECODERS: list[Callable[[bytes], object]] = [decode_hello, decode_from_device, decode_from_server]

SECRET = "attack at dawn"


# --- there and back ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DEVICE_ITEMS)
@given(data=st.data())
@settings(max_examples=25)
def test_everything_a_device_can_say_arrives_as_it_was_said(kind: type, data: st.DataObject) -> None:
    item = data.draw(of_type(kind))
    assert decode_from_device(encode([item])) == [item]


@pytest.mark.parametrize("kind", SERVER_ITEMS)
@given(data=st.data())
@settings(max_examples=25)
def test_everything_a_server_can_say_arrives_as_it_was_said(kind: type, data: st.DataObject) -> None:
    item = data.draw(of_type(kind))
    assert decode_from_server(encode([item])) == [item]


@given(from_devices)
def test_frames_of_devices_keep_their_order(items: list[FromDevice]) -> None:
    assert decode_from_device(encode(items)) == items


@given(from_servers)
def test_frames_of_servers_keep_their_order(items: list[FromServer]) -> None:
    assert decode_from_server(encode(items)) == items


@given(st.lists(st.one_of(of_type(Entry), of_type(GroupEntry)), max_size=4).map(tuple), from_servers)
def test_an_entry_of_a_group_arrives_with_what_it_has_of_the_group(
    entries: tuple[Entry, ...], others: list[FromServer]
) -> None:
    drawn = [msgspec.structs.replace(e, to=e.to & ~1) if isinstance(e, GroupEntry) else e for e in entries]
    items = [*others, Entries(Lane.NORMAL, 1, tuple(drawn))]
    assert decode_from_server(encode(items)) == items


@given(of_type(Hello))
def test_a_hello_arrives_as_it_was_said(hello: Hello) -> None:
    assert decode_hello(encode([hello])) == hello


@given(from_devices)
def test_the_same_items_are_always_the_same_bytes_and_never_longer_than_needed(items: list[FromDevice]) -> None:
    # Read as plain values and written again by a codec that knows nothing of items.
    assert msgspec.msgpack.encode(msgspec.msgpack.decode(encode(items))) == encode(items)


# --- newer and older peers --------------------------------------------------------------------


def plain(items: Sequence[FromDevice] | Sequence[FromServer]) -> list[list[Any]]:
    return msgspec.msgpack.decode(encode(items))


@given(from_servers, st.lists(st.one_of(INTEGERS, st.text(), st.lists(INTEGERS)), max_size=3))
def test_what_a_newer_peer_adds_behind_an_item_is_skipped(items: list[FromServer], more: list[object]) -> None:
    said = [[*item, *more] for item in plain(items)]
    assert decode_from_server(msgspec.msgpack.encode(said)) == items


def test_what_a_newer_peer_adds_inside_a_record_is_skipped() -> None:
    said = [[2, 1, [3, 0, 7, [5], "more"], "and more"]]
    assert decode_from_device(msgspec.msgpack.encode(said)) == [Ask(1, Acked(Lane.NORMAL, 7, (5,)))]


def test_fields_with_a_default_may_be_missing() -> None:
    assert decode_hello(msgspec.msgpack.encode([[1, 1, 2, b"", 0, 0, 0]])) == Hello(1, 2, b"", 0, 0, 0, "")
    assert decode_from_device(msgspec.msgpack.encode([[2, 1, [3, 0, 7]]])) == [Ask(1, Acked(Lane.NORMAL, 7))]


@pytest.mark.parametrize("written", ["07", "cc07", "cd0007", "ce00000007", "cf0000000000000007", "d007", "d10007"])
def test_an_integer_may_be_written_in_any_width(written: str) -> None:
    assert decode_from_device(bytes.fromhex(f"919204{written}")) == [Ping(7)]


# --- what is no frame -------------------------------------------------------------------------

REJECTED = {
    "nothing": "",
    "no array": "04",
    "an item outside a frame": "920401",
    "an item that is no array": "9104",
    "an item that is a map": "91810401",
    "an item without a number": "9190",
    "an unknown item": "91926301",
    "a number that is text": "9192a13401",
    "a missing field": "919104",
    "an integral float": "919204cb3ff0000000000000",
    "a bool for an integer": "919204c3",
    "nil for an integer": "919204c0",
    "text for an integer": "919204a131",
    "an extension": "919204d40100",
    "a timestamp": "919204d6ff00000000",
    "an unknown record": "919302019163",
    "a record only the server says (Registered)": "91930201971001a16100c400a000",
    "a record only the server says (Ticked)": "919302019130",
    "a lane that is none": "9193020193030201",
    "text for bytes": "9197010101a161000000",
    "bytes for text": "9198010101c400000000c40161",
    "text that is no UTF-8": "9198010101c400000000a1ff",
    "half a surrogate": "9198010101c400000000a3eda080",
    "bytes behind the frame": "9192040100",
    "a frame that ends early": "92920401",
    "an array longer than the frame": "ddffffffff",
    "a list inside longer than the frame": "9193020194030001ddffffffff",
    "bytes longer than the frame": "9197010101c6ffffffff",
    "text longer than the frame": "9198010101c400000000dbffffffff",
    "an array of no size": "c1",
}


@pytest.mark.parametrize("what", REJECTED)
def test_what_is_no_frame_of_a_device_is_rejected(what: str) -> None:
    data = bytes.fromhex(REJECTED[what])
    for decode in (decode_hello, decode_from_device):
        with pytest.raises(BadFrame):
            decode(data)


def test_nesting_without_end_is_rejected() -> None:
    for data in (
        b"\x91" * 100_000,
        b"\x91\x93\x04\x01" + b"\x91" * 100_000,
        b"\x91\x93\x04\x01" + b"\x81\x01" * 100_000,
    ):
        for decode in DECODERS:
            with pytest.raises(BadFrame):
                decode(data)


def test_the_first_frame_is_one_hello_and_nothing_else() -> None:
    hello = Hello(1, 2, b"", 0, 0, 0)
    for items in ([], [hello, hello], [hello, Ping(1)], [Ping(1)]):
        with pytest.raises(BadFrame):
            decode_hello(encode(items))


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_random_bytes_are_read_or_rejected(data: bytes) -> None:
    read_or_rejected(data)


@given(st.one_of(from_devices.map(encode), from_servers.map(encode)), st.data())
@settings(max_examples=200)
def test_a_frame_that_was_changed_on_its_way_is_read_or_rejected(frame: bytes, data: st.DataObject) -> None:
    changed = bytearray(frame)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed)))
        match data.draw(st.sampled_from(["turn", "drop", "add", "cut"])):
            case "turn" if at < len(changed):
                changed[at] ^= data.draw(st.integers(1, 255))
            case "drop":
                del changed[at : at + data.draw(st.integers(1, 8))]
            case "add":
                changed[at:at] = data.draw(st.binary(min_size=1, max_size=8))
            case _:
                del changed[at:]
    read_or_rejected(bytes(changed))


def read_or_rejected(data: bytes) -> None:
    """Whatever can be read is a frame: written again it is read as the same."""
    for decode in (decode_from_device, decode_from_server):
        try:
            items = decode(data)
        except BadFrame:
            continue
        assert decode(encode(items)) == items
    try:
        hello = decode_hello(data)
    except BadFrame:
        return
    assert decode_hello(encode([hello])) == hello


# --- what is told about it --------------------------------------------------------------------


def complaint(decode: Callable[[bytes], object], data: bytes) -> BadFrame | None:
    try:
        decode(data)
    except BadFrame as error:
        return error
    return None


@pytest.mark.parametrize(
    "said",
    [
        [[2, 1, SECRET]],
        [[SECRET, 1]],
        [[4, SECRET]],
        [[2, 1, [1, SECRET]]],
        [[2, 1, [SECRET]]],
        [{SECRET: SECRET}],
        [[7, 1, 2, 3, {SECRET: 1}, b""]],
        [[7, 1, 2, 3, {1: SECRET}, b""]],
        [[1, 1, SECRET.encode(), SECRET, 0, 0, 0]],
        [[3, 0, 1, [[1, 2, 3, SECRET, SECRET.encode(), 77, None, 1, 1, SECRET]]]],
        SECRET,
        {SECRET: 1},
    ],
)
def test_what_was_in_a_frame_is_never_in_the_error(said: object) -> None:
    rejected = 0
    for decode in DECODERS:
        if error := complaint(decode, msgspec.msgpack.encode(said)):
            assert "attack" not in str(error)
            assert (error.__cause__, error.__suppress_context__) == (None, True)
            rejected += 1
    assert rejected >= 2


@given(st.binary(max_size=200))
def test_an_error_says_where_and_nothing_else(data: bytes) -> None:
    for decode in DECODERS:
        if error := complaint(decode, data):
            said = str(error)
            assert said == "not a frame" or said.startswith("not a frame: wrong at ")
            where = said.removeprefix("not a frame").removeprefix(": wrong at ")
            assert set(where) <= set("$[].0123456789keyin ")


def test_where_it_is_wrong_is_told_to_the_field() -> None:
    with pytest.raises(BadFrame, match=r"^not a frame: wrong at \$\[1\]\[2\]\[3\]$"):
        decode_from_device(msgspec.msgpack.encode([[4, 1], [2, 1, [2, 5, 0, "n", 1, "id"]]]))


def test_a_pong_is_nothing_a_device_says_and_a_ping_nothing_a_server_says() -> None:
    with pytest.raises(BadFrame):
        decode_from_device(encode([Pong(1, 2)]))
    with pytest.raises(BadFrame):
        decode_from_server(encode([Ping(1)]))
