"""The data of control messages: what cannot be stored is refused."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from nightmail.client.messages import Tick
from nightmail.client.own_devices.controls import HistoryPart, PastMessage, part_of
from nightmail.client.store.rows import Contact
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.errors import BadEncoding
from nightmail.model.words import Kind


def a_past(**changed: object) -> PastMessage:
    past = PastMessage(
        "a0be988829bb001:1:1:x", 1, 1, True, 5, encode_content(Content(Kind.TEXT, "x")), Kind.TEXT, 0, Tick.SENT, ""
    )
    return replace(past, **changed)


@pytest.mark.parametrize(
    "part",
    [
        HistoryPart(0, 1, 1, {}, (), (), ()),
        HistoryPart(2, 1, 1, {}, (), (), ()),
        HistoryPart(1, 1, 1, {2**64 - 1: "x"}, (), (), ()),
        HistoryPart(1, 1, 1, {}, (), (Contact(-1, "x"),), ()),
        HistoryPart(1, 1, 1, {}, (), (), (a_past(id="none"),)),
        HistoryPart(1, 1, 1, {}, (), (), (a_past(at=2**64 - 1),)),
        HistoryPart(1, 1, 1, {}, (), (), (a_past(at=-1),)),
        HistoryPart(1, 1, 1, {}, (), (), (a_past(body=b"junk"),)),
    ],
)
def test_a_part_that_cannot_be_stored_is_refused(part: HistoryPart) -> None:
    with pytest.raises(BadEncoding):
        part_of(msgspec.msgpack.encode(part))
