"""Seeded worlds of two devices and a network that loses, reorders, repeats and forges."""

from __future__ import annotations

import random

import pytest

from nightmail.e2ee import state
from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.peers import SESSIONS_MAX

from .devices import Device

SEEDS = 40
STEPS = 150


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_the_network_does_each_message_opens_once_or_never_and_nothing_else_does(seed: int) -> None:
    rng = random.Random(seed)
    ends = (Device(f"ada{seed}"), Device(f"bob{seed}", stock=rng.randint(0, 3)))
    for end in ends:
        end.now += rng.randint(-(10**8), 10**8)  # clocks do not agree, and time passes
    wire: list[tuple[int, bytes, bytes]] = []  # (from whom, sealed, text)
    opened: dict[bytes, int] = {}
    lost: set[bytes] = set()
    restarts = 0
    for step in range(STEPS):
        me = rng.randrange(2)
        act = rng.random()
        ends[me].now += rng.randint(0, 10**6)
        if act < 0.45:
            text = b"%d from %d" % (step, me)
            wire.append((me, ends[me].seal(ends[1 - me], text), text))
        elif wire and act < 0.90:
            at = rng.randrange(len(wire))
            sender, sealed, text = wire[at]
            to = ends[1 - sender]
            before = to.states()
            forged = bytearray(sealed)
            forged[rng.randrange(len(forged))] ^= 1 << rng.randrange(8)
            with pytest.raises(Rejected):
                to.open(ends[sender], bytes(forged))
            assert to.states() == before
            fate = rng.random()
            if fate < 0.1:
                lost.add(text)
                wire.pop(at)
                continue
            if fate > 0.2:
                wire.pop(at)  # else it stays, and comes again
            try:
                assert to.open(ends[sender], sealed) == text
                opened[text] = opened.get(text, 0) + 1
            except Rejected:
                assert to.states() == before
                assert opened.get(text) == 1
        elif act < 0.97:
            # Stored and loaded, as between any two transactions.
            end = ends[me]
            end.keys = state.decode_keys(state.encode_keys(end.keys))
            end.peers = {device: state.decode_peer(state.encode_peer(peer)) for device, peer in end.peers.items()}
        elif ends[1 - me].device in ends[me].peers and restarts < SESSIONS_MAX - 2:
            # Two may exist from the start; beyond the bound the oldest session goes, and what was sealed in it.
            restarts += 1
            ends[me].begin(ends[1 - me])
    for sender, sealed, text in wire:
        if text not in opened and ends[1 - sender].open(ends[sender], sealed) == text:
            opened[text] = 1
    assert set(opened.values()) <= {1}
    assert len(opened) >= len({text for _, _, text in wire} - lost)
    # When the storm is over both seal in one session.
    for _ in range(3):
        ends[1].open(ends[0], ends[0].seal(ends[1], b"calm"))
        ends[0].open(ends[1], ends[1].seal(ends[0], b"calm"))
    assert ends[0].peers[ends[1].device].sessions[0].id == ends[1].peers[ends[0].device].sessions[0].id
