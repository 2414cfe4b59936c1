from __future__ import annotations

import asyncio

import pytest

from nightmail.api import pins
from nightmail.api.pins import Pins
from nightmail.api.problems import Problem

TOKEN, SALT = bytes(32), bytes(16)


def test_a_digest_needs_the_token_the_salt_and_the_pepper() -> None:
    async def digests() -> list[bytes]:
        one, other = Pins(b"pepper"), Pins(b"another")
        return [
            await one.digest(TOKEN, SALT),
            await one.digest(TOKEN, SALT),
            await one.digest(b"1" * 32, SALT),
            await one.digest(TOKEN, b"1" * 16),
            await other.digest(TOKEN, SALT),
        ]

    first, again, *others = asyncio.run(digests())
    assert first == again
    assert len({first, *others}) == 4
    assert len(first) == 32


def test_each_lock_has_a_salt_of_its_own() -> None:
    async def made() -> None:
        keeper = Pins(b"pepper")
        (salt, digest), (other, _) = await keeper.new(TOKEN), await keeper.new(TOKEN)
        assert salt != other
        assert await keeper.digest(TOKEN, salt) == digest

    asyncio.run(made())


def test_a_crowd_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "WAITING", 2)

    async def crowd() -> list[object]:
        keeper = Pins(b"pepper")
        return await asyncio.gather(*(keeper.digest(TOKEN, SALT) for _ in range(4)), return_exceptions=True)

    outcomes = asyncio.run(crowd())
    assert [type(each) for each in outcomes] == [bytes, bytes, Problem, Problem]
