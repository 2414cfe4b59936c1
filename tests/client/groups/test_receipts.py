"""Who has a message, who has read it, and what is sealed again."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.errors import ClientError
from nightmail.client.group_errors import ChangeRefused
from nightmail.client.group_events import GroupReceipt
from nightmail.client.groups.group import SeenBy
from nightmail.client.messages import Message, Tick
from nightmail.client.store.rows import ReadMark
from nightmail.e2ee.groups.sender_keys import ReceivingChain
from nightmail.e2ee.state import decode_receiving_chain, encode_receiving_chain
from nightmail.model.answers import GroupAccepted
from nightmail.model.roster import GroupReceipts, GroupSettings
from nightmail.model.words import MessageState
from nightmail.wire.items import Answered, FromServer, GroupSeenBy
from tests.client.groups.town import a_group, a_town, texts, writes
from tests.client.town import Device, Town


def seen(town: Town, by: Device, message: Message) -> SeenBy:
    found: list[SeenBy | ClientError] = []
    stored = by.store.message(message.id)
    assert stored is not None
    by.machine.groups(town.now).seen_by.seen_by(stored, found.append)
    by.look()
    town.settle()
    assert isinstance(found[0], SeenBy), found
    return found[0]


def chains(device: Device, group: int) -> list[ReceivingChain]:
    return [decode_receiving_chain(state) for state in device.store.receiving_chains(group)]


def test_an_author_learns_who_has_and_who_has_read_a_message() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    cleo.cut()
    message = writes(ada, group, "hello")
    town.settle()
    bob.machine.mark_read(group, town.now)
    bob.look()
    town.settle()
    town.wait(300)
    town.settle()
    expected = {bob.me.account: MessageState.READ, cleo.me.account: MessageState.SENT}
    assert seen(town, ada, message) == SeenBy(1, 1, 2, expected)
    assert ada.state(message) == "read"
    assert ada.told(GroupReceipt)[-1] == GroupReceipt(group, "Friends", message.id, 1, 1, 2)


def test_what_was_told_once_is_not_told_again() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    message = writes(ada, group, "hello")
    town.settle()
    bob.machine.mark_read(group, town.now)
    bob.look()
    town.settle()
    town.wait(300)
    town.settle()
    seen(town, ada, message)
    seen(town, ada, message)
    told = [(receipt.delivered, receipt.read) for receipt in ada.told(GroupReceipt)]
    assert (len(told), told[-1]) == (len(set(told)), (1, 1))


def test_a_group_without_receipts_shows_none() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people, settings=GroupSettings(receipts=GroupReceipts.NONE))
    message = writes(ada, group, "hello")
    town.settle()
    bob.machine.mark_read(group, town.now)
    bob.look()
    town.settle()
    town.wait(300)
    town.settle()
    assert seen(town, ada, message) == SeenBy(0, 0, 0, {})
    assert ada.state(message) == "sent"


def test_reading_a_group_leaves_the_pair_unread() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    writes(ada, group, "to all")
    ada.says(bob, "to you")
    town.settle()
    bob.machine.mark_read(group, town.now)
    bob.look()
    town.settle()
    assert [row.to for row in bob.store.marked(ReadMark.UNREAD)] == [bob.me.account]
    assert not bob.store.marked(ReadMark.READING)


def test_what_stands_behind_an_unread_message_is_told_later() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    first, second = writes(ada, group, "one"), writes(ada, group, "two")
    town.settle()
    bob.machine.mark_read(group, town.now, [second.id])
    bob.look()
    town.settle()
    assert len(bob.store.marked(ReadMark.READING)) == 1
    assert bob.machine.parts.read_marks.is_confirmed
    bob.machine.mark_read(group, town.now, [first.id])
    bob.look()
    town.settle()
    assert not bob.store.marked(ReadMark.READING)


def test_a_device_that_lost_its_keys_asks_and_reads_all() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, _ = people
    group = a_group(town, *people)
    writes(ada, group, "before")
    town.settle()
    for chain in chains(bob, group):
        bob.store.drop_receiving_chain(group, chain.sender.device, chain.key_id)
    for text in ("one", "two"):
        writes(ada, group, text)
        town.settle()
    assert texts(bob, group) == ["before", "one", "two"]


def test_a_message_that_does_not_open_is_sealed_again() -> None:
    town, people = a_town("ada", "bob", "cleo")
    ada, bob, cleo = people
    group = a_group(town, *people)
    writes(ada, group, "before")
    town.settle()
    (chain,) = chains(bob, group)
    broken = replace(chain, chain=bytes(32))
    bob.store.put_receiving_chain(group, chain.sender.device, chain.key_id, encode_receiving_chain(broken))
    message = writes(ada, group, "after")
    town.settle()
    assert texts(bob, group) == ["before", "after"]
    assert texts(cleo, group) == ["before", "after"]
    assert ada.store.message(message.id).state is not Tick.FAILED  # pyright: ignore[reportOptionalMemberAccess]


def test_a_question_that_the_connection_swallowed_is_asked_again() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    honest, asked = town.meddle, list[SeenBy | ClientError]()
    town.meddle = lambda device, item: None if isinstance(item, GroupSeenBy) else honest(device, item)
    message = writes(ada, group, "hello")
    town.settle()
    town.wait(300)
    town.settle()
    assert (ada.state(message), len(ada.store.errands("group seen "))) == ("sent", 1)
    stored = ada.store.message(message.id)
    assert stored is not None
    ada.machine.groups(town.now).seen_by.seen_by(stored, asked.append)
    ada.look()
    town.settle()
    ada.cut()
    assert [type(said) for said in asked] == [ChangeRefused]
    town.meddle = honest
    ada.crash()
    ada.connect()
    town.settle()
    assert ada.state(message) == "delivered"
    assert ada.store.errands("group seen ") == []
    assert texts(bob, group) == ["hello"]


def test_receipts_that_come_before_the_answer_are_not_forgotten() -> None:
    town, people = a_town("ada", "bob")
    ada, bob = people
    group = a_group(town, *people)
    writes(ada, group, "first")  # the keys are handed on with it
    town.settle()
    honest = town.meddle

    def meddle(device: int, item: FromServer) -> FromServer | None:
        return None if isinstance(item, Answered) and isinstance(item.said, GroupAccepted) else honest(device, item)

    town.meddle = meddle
    message = writes(ada, group, "second")
    town.settle()
    town.wait(300)
    town.settle()
    assert (texts(bob, group), ada.state(message)) == (["first", "second"], "pending")
    town.meddle = honest
    ada.cut()
    ada.connect()
    town.settle()
    assert ada.state(message) == "delivered"
    assert ada.store.errands("group seen ") == []
