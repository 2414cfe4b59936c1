from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.addressees import Addressee, addressee_in
from nightmail.client.store.memory import MemoryStore
from nightmail.model.ids import account_id, account_ids


def talks_with(store: MemoryStore, handle: str) -> None:
    store.put_conversation(replace(store.conversation(account_id(handle)), handle=handle))


def test_a_handle_of_which_nothing_is_known_means_the_account_that_a_new_one_would_have() -> None:
    assert addressee_in(MemoryStore(), "Bob") == Addressee(account_id("bob"), "bob", is_known=False)


def test_a_handle_means_the_one_that_there_is_a_conversation_with() -> None:
    store = MemoryStore()
    talks_with(store, "bob")
    assert addressee_in(store, "Bob") == Addressee(account_id("bob"), "bob", is_known=True)
    talks_with(store, "Bob")
    assert addressee_in(store, "Bob") == Addressee(account_id("Bob"), "Bob", is_known=True)
    assert addressee_in(store, "bob") == Addressee(account_id("bob"), "bob", is_known=True)


def test_an_id_that_belongs_to_another_handle_is_passed_over() -> None:
    store = MemoryStore()
    first, second, third = account_ids("bob")[:3]
    for account in (first, second):
        store.put_conversation(replace(store.conversation(account), handle="somebody-else"))
    assert addressee_in(store, "bob") == Addressee(third, "bob", is_known=False)
    store.put_conversation(replace(store.conversation(third), handle="bob"))
    assert addressee_in(store, "bob") == Addressee(third, "bob", is_known=True)
