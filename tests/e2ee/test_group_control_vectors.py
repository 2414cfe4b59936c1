"""The vectors of control messages in groups, read from docs/e2ee.md with nothing but msgpack, and by our functions."""

from __future__ import annotations

import json
import struct
from typing import Any

import msgspec
import pytest

from nightmail.client.groups import controls
from nightmail.e2ee.content import decode_content
from nightmail.model.words import Kind

from . import vectors


def read() -> Any:
    return json.loads((vectors.FOLDER / "group-controls.json").read_text())


def fields_of(content: bytes) -> dict[int, bytes]:
    """A content as its table says: version, kind, then number ‖ length ‖ value."""
    assert content[:2] == bytes((1, 3))
    fields: dict[int, bytes] = {}
    at = 2
    while at < len(content):
        number, length = struct.unpack_from(">BI", content, at)
        fields[number] = content[at + 5 : at + 5 + length]
        at += 5 + length
    return fields


def data_of(made: Any, number: int) -> bytes:
    fields = fields_of(bytes.fromhex(made["content"]))
    assert (sorted(fields), int.from_bytes(fields[4], "big")) == ([3, 4], number)
    return fields[3]


def plain_start(made: Any) -> list[Any]:
    return [
        bytes.fromhex(made["welcome"]), made["index"], made["name"], bytes.fromhex(made["picture"]), made["named_at"],
        made["pictured_at"], [[at["index"], bytes.fromhex(at["head"]), at["seq"]] for at in made["heads"]],
        [[int(gone["account"]), gone["index"]] for gone in made["departed"]],
    ]  # fmt: skip


def test_a_key_is_what_is_handed_on() -> None:
    made = read()["key"]
    assert data_of(made, 9) == bytes.fromhex(made["handed"])
    assert controls.key_of(bytes.fromhex(made["handed"])).verify in bytes.fromhex(made["handed"])


@pytest.mark.parametrize("place", [0, 1])
def test_a_welcome_is_an_array_of_eight(place: int) -> None:
    made = read()["welcomes"][place]
    data = data_of(made, 10)
    assert msgspec.msgpack.decode(data) == plain_start(made)
    assert controls.welcome(controls.welcome_of(data)).hex() == made["content"]


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_wanted_is_an_array_of_three(place: int) -> None:
    made = read()["wanted"][place]
    data = data_of(made, 11)
    assert msgspec.msgpack.decode(data) == [bytes.fromhex(made["key_id"]), made["ids"], made["welcome"]]
    assert controls.wanted(controls.wanted_of(data)).hex() == made["content"]


def test_a_name_is_text_and_a_picture_is_its_bytes() -> None:
    made = read()
    assert msgspec.msgpack.decode(data_of(made["name"], 12)) == made["name"]["name"]
    assert data_of(made["picture"], 13).hex() == made["picture"]["picture"]


def test_groups_are_welcomes_one_after_the_other() -> None:
    made = read()["groups"]
    data = data_of(made, 14)
    assert msgspec.msgpack.decode(data) == [plain_start(each) for each in made["groups"]]
    assert controls.groups(controls.groups_of(data)).hex() == made["content"]


def test_our_reader_sees_control_messages() -> None:
    made = read()
    for each in (made["key"], *made["welcomes"], *made["wanted"], made["name"], made["picture"], made["groups"]):
        content = decode_content(bytes.fromhex(each["content"]))
        assert (content.kind, content.control is not None) == (Kind.CONTROL, True)


def test_a_welcome_of_an_older_client_names_nobody_who_left() -> None:
    """It ends before that field."""
    made = read()["welcomes"][0]
    older = msgspec.msgpack.encode(plain_start(made)[:7])
    assert controls.welcome_of(older).departed == ()
