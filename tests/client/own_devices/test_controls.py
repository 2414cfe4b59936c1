"""Control messages: only own devices are obeyed, and what cannot be stored is refused."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from nightmail.client.events import Unreadable
from nightmail.client.messages import Tick
from nightmail.client.own_devices.controls import (
    ContactChange,
    ContactsPart,
    Control,
    HistoryPart,
    PastMessage,
    contacts,
    control,
    history,
    numbers,
    part_of,
    read,
)
from nightmail.client.store.rows import Contact, ReadMark
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.errors import BadEncoding
from nightmail.model.words import Kind
from tests.client.sealed_town import a_town
from tests.client.town import Device


def send_control(device: Device, to: Device, content: bytes) -> None:
    device.machine.parts.outbox.control(to.me.account, content)
    device.look()


def test_another_account_commands_nothing_by_control_messages() -> None:
    town, (alice, bob, carol) = a_town("alice", "bob", "carol")
    message = carol.says(alice, "unread")
    town.settle()
    part = HistoryPart(1, 1, 1, {}, (), (), (a_past(id=f"{bob.me.device:x}:1:1:x", peer=bob.me.account),))
    change = ContactChange(carol.me.account, "carol", "", blocked=True, deleted=False, at=1 << 60, by=alice.me.device)
    forged = [
        read([message.id]), history(part), numbers(Control.MOVED, [1]), numbers(Control.READY, [0]),
        contacts(ContactsPart((change,), {carol.me.account: "mallory"})), control(Control.PROVISION, b"x" * 64),
    ]  # fmt: skip
    unread, signing = alice.store.marked(ReadMark.UNREAD), alice.machine.sealer.key_stock.keys.account
    told = list(alice.events)
    for content in forged:
        send_control(bob, alice, content)
    town.settle()
    # They came, and opened: the account alone decides.
    assert (alice.store.cursors().high, alice.told(Unreadable)) == (len(forged), [])
    assert alice.events == told
    assert (alice.store.marked(ReadMark.UNREAD), alice.machine.sealer.key_stock.keys.account) == (unread, signing)
    assert (alice.store.contacts(), alice.store.history(bob.me.account, 9)) == ([], [])
    assert alice.store.conversation(carol.me.account).handle == "carol", "as her own list names her"


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
