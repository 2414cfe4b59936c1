"""The server is told whom a person writes to or saves: once, by id, whatever fails meanwhile."""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.outbox.known_people import LOOKED, TOLD, WAITING
from nightmail.client.store.rows import Contact, Conversation
from nightmail.model.ids import account_id
from nightmail.model.records import Known
from nightmail.model.refusals import Unavailable
from nightmail.model.words import Lane
from nightmail.wire.items import Answered, FromServer, Welcome
from tests.client import sealed_town
from tests.client.sealed_town import pass_time, said_by
from tests.client.town import Device, Town


def a_town() -> tuple[Town, Device, Device]:
    town = Town()
    ada, bob = town.join("ada"), town.join("bob")
    for device in (ada, bob):
        device.connect()
    town.settle()
    return town, ada, bob


def known_at_the_server(town: Town, device: Device) -> list[int]:
    known = town.loop.state.known.get(device.me.account)
    return list(known.accounts) if known else []


def test_whom_a_person_writes_to_is_told_once() -> None:
    town, ada, bob = a_town()
    ada.send(bob)
    ada.send(bob)
    town.settle()
    assert said_by(ada, Known) == [Known(ada.me.account, bob.me.account, True)]
    assert (known_at_the_server(town, ada), known_at_the_server(town, bob)) == ([bob.me.account], [])
    ada.cut()
    ada.connect()
    ada.send(bob)
    town.settle()
    assert said_by(ada, Known) == []


def test_whom_a_person_saves_is_told_and_whom_they_only_block_is_not() -> None:
    town, (ada, bob) = sealed_town.a_town("ada", "bob")
    ada.machine.put_contact(Contact(bob.me.account, "bob", "Bobby"), town.now)
    ada.machine.put_contact(Contact(account_id("mal"), "mal", blocked=True), town.now)
    ada.look()
    town.settle()
    assert said_by(ada, Known) == [Known(ada.me.account, bob.me.account, True)]


def test_what_was_written_offline_is_told_after_a_crash() -> None:
    town, ada, bob = a_town()
    ada.cut()
    ada.send(bob)
    ada.crash()
    ada.connect()
    town.settle()
    assert known_at_the_server(town, ada) == [bob.me.account]
    assert (ada.store.errands(WAITING), ada.store.errands(TOLD)) == ([], [f"{TOLD}{bob.me.account:013x}"])


def test_an_older_profile_tells_of_those_it_wrote_to_or_saved_before() -> None:
    town, ada, bob = a_town()
    ada.cut()
    store, carol, mal = ada.store, account_id("carol"), account_id("mal")
    store.drop_errand(LOOKED)
    store.put_contact(Contact(carol, "carol", "Caro"))
    for peer in (bob.me.account, mal):
        store.put_conversation(Conversation(peer, seen=1))
    store.put_last_number(bob.me.account, Lane.NORMAL, 3)
    store.put_last_number(mal, Lane.HIGH, 1)  # its devices asked for something; no person wrote
    store.commit()
    ada.crash()
    ada.connect()
    town.settle()
    assert sorted(known_at_the_server(town, ada)) == sorted([bob.me.account, carol])


def test_a_server_that_does_not_know_the_record_is_not_told() -> None:
    town, ada, bob = a_town()
    ada.cut()
    town.meddle = lambda _, item: replace(item, since=1) if isinstance(item, Welcome) else item
    ada.connect()
    ada.send(bob)
    town.settle()
    assert (said_by(ada, Known), len(ada.store.errands(WAITING))) == ([], 1)


def test_a_server_that_cannot_now_is_asked_again() -> None:
    town, ada, bob = a_town()

    def fail(_: int, item: FromServer) -> FromServer:
        return Answered(item.ref, Unavailable()) if isinstance(item, Answered) else item

    town.meddle = fail
    ada.send(bob)
    ada.exchange()
    ada.exchange()
    assert len(ada.store.errands(WAITING)) == 1
    town.meddle = lambda _, item: item
    pass_time(town, 2_000, 8_000)
    assert (ada.store.errands(WAITING), known_at_the_server(town, ada)) == ([], [bob.me.account])
