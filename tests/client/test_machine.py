"""Two machines and the real heart between them, without a socket."""

from __future__ import annotations

from nightmail.client.events import Connected, DeliveryReceipt, QueueEmpty, ReadReceipt, SentAck
from nightmail.client.messages import Message
from tests.client.town import Town


def test_a_message_goes_from_one_to_the_other_and_back_comes_that_it_was_read() -> None:
    town = Town()
    alice, bob = town.join("alice"), town.join("bob")
    alice.connect()
    bob.connect()
    message = alice.send(bob, b"hello")
    assert alice.state(message) == "pending"
    town.settle()
    assert bob.texts(alice) == [b"hello"]
    assert [event.body for event in bob.told(Message)] == [b"hello"]
    assert alice.state(message) == "delivered"
    bob.read(alice)
    town.settle()
    assert alice.state(message) == "read"
    kinds = (SentAck, DeliveryReceipt, ReadReceipt)
    assert [type(event) for event in alice.events if isinstance(event, kinds)] == list(kinds)
    assert len(bob.told(Connected)) == len(bob.told(QueueEmpty)) == 1
