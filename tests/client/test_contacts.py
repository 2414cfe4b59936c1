"""Contacts, and searching in what was written with them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nightmail.client.errors import Misused, Unreachable
from nightmail.client.store.rows import Contact
from nightmail.client.store.search import text_of
from nightmail.model.ids import account_id
from tests.client.harbour import harbour

BOB = account_id("bob")


def test_a_name_is_kept_here_and_goes_when_the_contact_is_forgotten(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice:
            people = alice.people
            assert people.called("bob") == "bob"
            assert people.called(BOB) == f"unknown account {BOB:x}"
            assert await people.name("bob", "  Uncle\n Bob ") == Contact(BOB, "bob", "Uncle Bob")
            assert people.called(BOB) == "Uncle Bob"
            await people.name("anna", "")
            assert [contact.handle for contact in people.all()] == ["anna", "bob"]
            assert await people.forget("bob")
            assert not await people.forget("bob")
            assert [contact.handle for contact in people.all()] == ["anna"]

    asyncio.run(story())


def test_a_block_is_kept_only_if_the_server_took_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice", "ws://127.0.0.1:9") as alice:
            with pytest.raises(Unreachable):
                await alice.people.block("bob")
            assert alice.people.all() == []
            with pytest.raises(Misused, match="handle"):
                await alice.people.block(BOB)

    asyncio.run(story())


def test_both_sides_find_what_was_written_and_where_it_matched(tmp_path: Path) -> None:
    async def story() -> None:
        async with harbour() as place, place.client(tmp_path, "alice") as alice, place.client(tmp_path, "bob") as bob:
            receipt = await alice.send("bob", "Lunch at the café?")
            await alice.send("bob", "Or dinner.")
            await receipt.delivered()
            for client in (alice, bob):
                (found,) = client.search("CAFE lun")
                text = text_of(found.message) or ""
                assert [text[start:end] for start, end in found.spans] == ["Lunch", "café"]
            (found,) = alice.search("lunch", peer="bob")
            assert found.message.handle == "bob"
            assert alice.search("lunch", peer="carol") == alice.search("") == []

    asyncio.run(story())
