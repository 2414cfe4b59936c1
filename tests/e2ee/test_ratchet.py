from __future__ import annotations

import random

import pytest

from nightmail.e2ee import ratchet
from nightmail.e2ee.curves import agreement_public
from nightmail.e2ee.errors import KeySpent, TooFarAhead, WeakKey
from nightmail.e2ee.header import Header
from nightmail.e2ee.ratchet import PAST_MAX, SKIP_MAX, SKIPPED_MAX, SKIPPED_MS, Ratchet

from .devices import DAY, NOW, Seeded

CHANCE = Seeded("ratchet")


def two_ends() -> tuple[Ratchet, Ratchet]:
    secret, prekey = CHANCE.draw(32), CHANCE.draw(32)
    return ratchet.initiate(secret, agreement_public(prekey), CHANCE.draw(32)), ratchet.respond(secret, prekey)


def send(state: Ratchet) -> tuple[Ratchet, Header, bytes]:
    header = Header(state.own_public, state.previous, state.sent)
    after, key = ratchet.to_send(state)
    return after, header, key


def hear(state: Ratchet, header: Header, now: int = NOW) -> tuple[Ratchet, bytes]:
    return ratchet.to_open(state, header, CHANCE, now)


def test_both_ends_find_the_same_key_for_every_message_in_both_directions() -> None:
    ada, bob = two_ends()
    for turn in range(6):
        for _ in range(turn + 1):
            ada, header, key = send(ada)
            bob, heard = hear(bob, header)
            assert heard == key
        ada, bob = bob, ada


def test_every_key_is_another() -> None:
    ada, bob = two_ends()
    keys: set[bytes] = set()
    for _ in range(5):
        for _ in range(5):
            ada, header, key = send(ada)
            bob, _ = hear(bob, header)
            keys.add(key)
        ada, bob = bob, ada
    assert len(keys) == 25


def test_messages_open_in_any_order_within_a_chain_and_across_chains() -> None:
    ada, bob = two_ends()
    rng = random.Random(7)
    waiting: list[tuple[Header, bytes]] = []
    for _ in range(8):
        for _ in range(rng.randint(1, 5)):
            ada, header, key = send(ada)
            waiting.append((header, key))
        # One is heard at once, so that the other side turns; the rest comes whenever it comes.
        header, key = waiting.pop()
        bob, heard = hear(bob, header)
        assert heard == key
        bob, answer, key = send(bob)
        ada, heard = hear(ada, answer)
        assert heard == key
    rng.shuffle(waiting)
    for header, key in waiting:
        bob, heard = hear(bob, header)
        assert heard == key
    assert bob.skipped == {}


def test_a_message_key_is_given_out_once_also_in_chains_that_are_over() -> None:
    ada, bob = two_ends()
    headers: list[Header] = []
    for _ in range(PAST_MAX):
        ada, header, _ = send(ada)
        headers.append(header)
        bob, _ = hear(bob, header)
        bob, answer, _ = send(bob)
        ada, _ = hear(ada, answer)
    for header in headers:
        with pytest.raises(KeySpent):
            hear(bob, header)


def test_a_message_may_skip_so_many_and_not_one_more() -> None:
    _, bob = two_ends()
    ada, bob = two_ends()
    ada, first, _ = send(ada)
    with pytest.raises(TooFarAhead):
        hear(bob, first._replace(number=SKIP_MAX + 1))
    bob, _ = hear(bob, first._replace(number=SKIP_MAX))
    with pytest.raises(TooFarAhead):
        hear(bob, first._replace(number=2 * SKIP_MAX + 2))


def test_what_is_skipped_in_the_old_and_the_new_chain_counts_together() -> None:
    ada, bob = two_ends()
    ada, header, _ = send(ada)
    bob, _ = hear(bob, header)
    half = SKIP_MAX // 2
    fresh = Header(agreement_public(CHANCE.draw(32)), half + 1, half)
    assert len(hear(bob, fresh)[0].skipped) == 2 * half
    with pytest.raises(TooFarAhead):
        hear(bob, fresh._replace(number=half + 1))


def test_no_more_keys_are_kept_than_the_bound_and_the_oldest_go_first() -> None:
    ada, bob = two_ends()
    ada, header, _ = send(ada)
    bob, _ = hear(bob, header._replace(number=SKIP_MAX))
    bob, _ = hear(bob, header._replace(number=SKIP_MAX + 11))
    assert len(bob.skipped) == SKIPPED_MAX
    with pytest.raises(KeySpent):
        hear(bob, header._replace(number=9))
    hear(bob, header._replace(number=10))


def test_a_skipped_key_is_deleted_after_its_time() -> None:
    ada, bob = two_ends()
    ada, late, key = send(ada)
    ada, header, _ = send(ada)
    bob, _ = hear(bob, header)
    assert hear(bob, late, NOW + SKIPPED_MS)[1] == key
    with pytest.raises(KeySpent):
        hear(bob, late, NOW + SKIPPED_MS + 1)
    assert ratchet.forget(bob, NOW + SKIPPED_MS) is bob
    assert ratchet.forget(bob, NOW + 31 * DAY).skipped == {}


def test_a_ratchet_key_of_low_order_is_refused() -> None:
    ada, bob = two_ends()
    _, header, _ = send(ada)
    with pytest.raises(WeakKey):
        hear(bob, header._replace(key=bytes(32)))


def test_a_step_leaves_the_state_it_started_from_as_it_was() -> None:
    ada, bob = two_ends()
    ada, late, key = send(ada)
    ada, header, _ = send(ada)
    before = (bob, dict(bob.skipped))
    after, _ = hear(bob, header)
    assert (bob, dict(bob.skipped)) == before
    assert hear(after, late)[1] == key
    assert hear(after, late)[1] == key
