"""Seeded groups: devices come and go, and the network loses, reorders, repeats and forges."""

from __future__ import annotations

import random

import pytest

from nightmail.e2ee import state
from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.groups.chain import Followed, Membership, begin, follow
from nightmail.e2ee.groups.sealing import GroupContext, decode_group_message, open_sealed, seal
from nightmail.e2ee.groups.sender_keys import (
    ReceivingChain,
    SenderChain,
    decode_handed,
    hand_on,
    left_holders,
    make_chain,
    receive_chain,
    renewal,
)
from nightmail.e2ee.identity import Address
from nightmail.model.roster import Addition, ChangeFault, GroupChange, Removal, Role, RoleChange

from .group_people import GROUP, People, Person, change_by, creation, in_order

SEEDS = 30
STEPS = 120


class Sent:
    """A message, for whom it was sealed, and what it says."""

    def __init__(
        self, text: bytes, sender: Address, context: GroupContext, sealed: bytes, readers: set[Address]
    ) -> None:
        self.text, self.sender, self.context, self.sealed, self.readers = text, sender, context, sealed, readers


class End:
    """A device in a group. Chains of others are under (sender, key id)."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.own: SenderChain | None = None
        self.holders: set[Address] = set()
        self.chains: dict[tuple[Address, bytes], ReceivingChain] = {}
        self.opened: list[bytes] = []

    def take(self, handed: bytes, sender: Address, now: int) -> None:
        chain = receive_chain(decode_handed(handed), sender, now)
        at = (sender, chain.key_id)
        self.chains[at] = receive_chain(decode_handed(handed), sender, now, self.chains.get(at))

    def open(self, sent: Sent, sealed: bytes, context: GroupContext, now: int) -> bytes:
        at = (sent.sender, decode_group_message(sealed).key_id)
        if at not in self.chains:
            raise Rejected
        self.chains[at], text = open_sealed(self.chains[at], context, sealed, now)
        return text


class World:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 1_760_000_000_000
        people = [Person(f"{name}{seed}") for name in ("ada", "bob", "cyd", "dan", "eve")]
        self.people = People(*people)
        self.ends = {person.address: End(person) for person in people}
        self.founder = people[0]
        self.known = begin(GROUP, creation(*people[:3]), self.people.lookup)
        self.epoch = 1
        self.wire: list[Sent] = []
        self.sent: list[Sent] = []

    @property
    def audience(self) -> set[Address]:
        return {self.people[account].address for account in self.known.roster.members}

    @property
    def context(self) -> GroupContext:
        return GroupContext(GROUP, self.known.genesis, self.epoch, self.known.head)

    def send(self, end: End, text: bytes) -> None:
        me = end.person
        behind = self.rng.random() < 0.02
        if renewal(end.own, left_holders(end.holders, self.audience), behind, self.now) is not None:
            end.own = make_chain(me.address, GROUP, self.known.genesis, me.device.chance, self.now)
            end.holders = set()
        assert end.own
        for reader in self.audience - end.holders - {me.address}:
            self.ends[reader].take(hand_on(end.own), me.address, self.now)
        end.holders |= self.audience
        end.own, sealed = seal(end.own, self.context, text)
        sent = Sent(text, me.address, self.context, sealed, self.audience - {me.address})
        self.wire += [sent] * len(sent.readers)
        self.sent.append(sent)

    def deliver(self, sent: Sent, end: End) -> None:
        before = dict(end.chains)
        forged = bytearray(sent.sealed)
        forged[self.rng.randrange(len(forged))] ^= 1 << self.rng.randrange(8)
        lies = [
            (bytes(forged), sent.context),
            (sent.sealed, sent.context._replace(epoch=sent.context.epoch + 1)),
            (sent.sealed, sent.context._replace(head=bytes(32))),
        ]
        for sealed, context in lies:
            with pytest.raises(Rejected):
                end.open(sent, sealed, context, self.now)
        assert end.chains == before
        try:
            assert end.open(sent, sent.sealed, sent.context, self.now) == sent.text
            end.opened.append(sent.text)
        except Rejected:
            assert end.chains == before
            assert sent.text in end.opened or end.person.address not in sent.readers

    def change(self) -> None:
        members = self.known.roster.members
        inside = [self.people[account] for account in members if account != self.founder.account]
        outside = [person for account, person in self.people.items() if account not in members]
        if outside and self.rng.random() < 0.5:
            change: GroupChange = Addition(in_order(self.rng.choice(outside)))
        elif inside:
            change = Removal((self.rng.choice(inside).account,))
        else:
            return
        followed = follow(self.known, change_by(self.founder, self.known, change), self.people.lookup)
        assert followed.fault is None
        self.known, self.epoch = followed.membership, self.epoch + 1

    def restart(self, end: End) -> None:
        end.own = end.own and state.decode_sender_chain(state.encode_sender_chain(end.own))
        end.chains = {
            at: state.decode_receiving_chain(state.encode_receiving_chain(chain)) for at, chain in end.chains.items()
        }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_the_network_does_each_message_opens_once_for_each_member_and_for_nobody_else(seed: int) -> None:
    world = World(seed)
    rng, lost = world.rng, set[tuple[Address, bytes]]()
    for step in range(STEPS):
        world.now += rng.randint(0, 3 * 10**6)
        act = rng.random()
        if act < 0.35:
            world.send(world.ends[rng.choice(sorted(world.audience))], b"%d" % step)
        elif act < 0.85 and world.wire:
            # Each device of the world, a former member and a stranger too, may be handed every message, and twice.
            at = rng.randrange(len(world.wire))
            world.deliver(world.wire.pop(at), rng.choice(list(world.ends.values())))
        elif act < 0.93:
            world.change()
        else:
            world.restart(rng.choice(list(world.ends.values())))
    for sent in world.sent:
        for address, end in world.ends.items():
            if address in sent.readers and rng.random() < 0.1:
                lost.add((address, sent.text))
            else:
                world.deliver(sent, end)
    for address, end in world.ends.items():
        meant = [sent.text for sent in world.sent if address in sent.readers]
        assert len(end.opened) == len(set(end.opened))
        assert {text for text in meant if (address, text) not in lost} <= set(end.opened) <= set(meant)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_the_server_shows_members_only_change_by_what_an_admin_signed(seed: int) -> None:
    rng = random.Random(seed)
    people = [Person(f"{name}{seed}") for name in ("ada", "bob", "cyd", "dan")]
    lookup = People(*people).lookup
    start = begin(GROUP, creation(*people[:3]), lookup)
    # The head that everybody sees passes over bad changes; the members are what honest changes made.
    known: Membership = start
    honest = start.roster
    blobs: list[bytes] = []
    faults: list[ChangeFault | None] = []
    for _ in range(30):
        admin = next(p for p in people if (m := honest.member(p.account)) and m.role is Role.ADMIN)
        other = rng.choice([p for p in people if p is not admin])
        changes: list[GroupChange] = (
            [Removal((other.account,)), RoleChange(other.account, rng.choice(list(Role)))]
            if other.account in honest.members
            else [Addition((other.new,))]
        )
        blob = change_by(admin, known, rng.choice(changes))
        is_forged = rng.random() < 0.4
        if is_forged:
            # Any bit behind the previous hash: what breaks the form never gets past the server.
            forged = bytearray(blob)
            forged[-rng.randint(1, 96)] ^= 1 << rng.randrange(8)
            blob = bytes(forged)
        followed: Followed = follow(known, blob, lookup)
        assert (followed.fault is not None) is is_forged
        known = followed.membership
        honest = honest if is_forged else known.roster
        assert known.roster == honest
        blobs.append(blob)
        faults.append(followed.fault)
    again, seen = start, list[ChangeFault | None]()
    for blob in blobs:
        followed = follow(again, blob, lookup)
        again = state.decode_membership(state.encode_membership(followed.membership))
        seen.append(followed.fault)
    assert (again, seen) == (known, faults)
