from __future__ import annotations

import pytest
from msgspec.structs import replace

from nightmail.client.events import LifeDiffers
from nightmail.client.timers.lives import Life, agreed
from nightmail.e2ee.content import LIFE_MS_MAX
from nightmail.model.records import Sent
from nightmail.wire.items import Entries, FromServer
from tests.client.sealed_town import said_by
from tests.client.timers.talk import MINUTE, texts, timed_talk, waits_until, writes


@pytest.mark.parametrize(
    ("outside", "inside", "is_reseal", "life"),
    [
        (0, 0, False, Life(0)),
        (9, 9, False, Life(9)),
        (5, 9, False, Life(5, differs=True)),
        (9, 5, False, Life(5, differs=True)),
        (0, 9, False, Life(9, differs=True)),
        (9, 0, False, Life(9, differs=True)),
        (5, 9, True, Life(9)),
        (9, 5, True, Life(5, differs=True)),
        (0, 9, True, Life(9, differs=True)),
        (9, 0, True, Life(9, differs=True)),
        (7, None, False, Life(7)),
        (1 << 60, None, False, Life(LIFE_MS_MAX)),
    ],
)
def test_the_shorter_life_counts_none_is_not_the_shortest_and_a_difference_is_told(
    outside: int, inside: int | None, is_reseal: bool, life: Life
) -> None:
    assert agreed(outside, inside, is_reseal=is_reseal) == life


@pytest.mark.parametrize("said_ms", [0, 30_000, 120_000])
def test_a_server_that_changes_a_life_is_noticed_and_never_lengthens_it(said_ms: int) -> None:
    town, (alice, bob) = timed_talk()

    def meddle(device: int, item: FromServer) -> FromServer:
        if device != bob.me.device or not isinstance(item, Entries):
            return item
        changed = tuple(replace(entry, life_ms=said_ms) for entry in item.entries)
        return Entries(item.lane, item.first, changed)

    town.meddle = meddle
    message = writes(alice, bob, "secret")
    town.settle()
    assert bob.told(LifeDiffers) == [LifeDiffers(message.id, alice.me.account, said_ms, MINUTE)]
    bob.read(alice)
    ends = town.now + min(said_ms or MINUTE, MINUTE)
    waits_until(town, ends - 1)
    assert texts(bob, alice) == ["secret"]
    waits_until(town, ends)
    assert texts(bob, alice) == []


def test_a_message_carries_its_life_outside_and_inside() -> None:
    town, (alice, bob) = timed_talk()
    message = writes(alice, bob, "secret")
    town.settle()
    (sent,) = [body for body in said_by(alice, Sent) if body.id == message.id]
    stored = bob.store.message(message.id)
    assert stored is not None
    assert (sent.life_ms, stored.content.life_ms, stored.life_ms) == (MINUTE, MINUTE, MINUTE)
