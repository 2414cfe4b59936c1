from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightmail.core.shard import FoldTooNew
from nightmail.core.state import COMING_FOLD, NEWEST_FOLD
from nightmail.core.step import FOLDS
from nightmail.model.answers import Accepted
from nightmail.model.ids import SERVER, account_of, device_id, shard_of
from nightmail.model.limits import DAY_MS, FoldLimits
from nightmail.model.records import (
    Acked,
    AnyBody,
    Blocked,
    Closed,
    FoldRaised,
    Forwarded,
    LimitsSet,
    PinSet,
    Read,
    Receipted,
    ReceiptsAcked,
    ReceiptsSet,
    Record,
    Registered,
    Span,
    Ticked,
    Unlinked,
    Voided,
    encode_record,
)
from nightmail.model.rows import Kept
from nightmail.model.spans import numbers
from nightmail.model.words import Lane, MessageState, Platform, Reason
from tests.core.world import START, Memory, Node, Person, World, name_of

NORMAL, HIGH = Lane


# --- every record -----------------------------------------------------------------------------


def test_each_fold_takes_the_records_that_say_so() -> None:
    for version, fold in FOLDS.items():
        assert set(fold) == {kind for kind in get_args(AnyBody) if kind.since <= version}


def test_the_coming_fold_takes_every_record() -> None:
    assert set(FOLDS[NEWEST_FOLD]) == set(get_args(AnyBody))


def test_every_fold_is_asked_alike() -> None:
    for fold in FOLDS.values():
        for needs, step in fold.values():
            assert len(inspect.signature(inspect.unwrap(needs)).parameters) == 3
            assert len(inspect.signature(inspect.unwrap(step)).parameters) == 4


def test_limits_are_as_the_log_says(world: World) -> None:
    limits = FoldLimits(mailbox_entries=3, ttl_ms=0)
    node = world.node(0)
    world.fold(node, Record(SERVER, 0, LimitsSet(limits)))
    assert node.state.shard.limits == limits


def test_a_tick_with_nothing_due_does_nothing(world: World) -> None:
    alice, bob = world.join("alice"), world.join("bob")
    world.send(alice[1], bob)
    before = world.everything()
    world.effects = []
    world.fold(world.of(bob.account), Record(SERVER, 0, Ticked()))
    assert world.effects == []
    assert world.texts(bob[1]) == ["hello"]
    rows_before = {k: v for k, v in before[world.of(bob.account).index][0].items() if k.kind is not Kept.SHARD}  # type: ignore[index]
    rows = {k: v for k, v in world.of(bob.account).everything()[0].items() if k.kind is not Kept.SHARD}
    assert rows == rows_before


# --- versions ---------------------------------------------------------------------------------


def test_every_fold_up_to_the_newest_is_known() -> None:
    assert sorted(FOLDS) == [*range(1, NEWEST_FOLD + 1), COMING_FOLD]


def test_a_fold_that_this_program_does_not_know_stops_it(world: World) -> None:
    node = world.node(0)
    words = f"version {NEWEST_FOLD + 1} says; this program knows up to {NEWEST_FOLD}"
    with pytest.raises(FoldTooNew, match=words) as raised:
        world.fold(node, Record(SERVER, 0, FoldRaised(NEWEST_FOLD + 1)))
    assert (raised.value.version, raised.value.newest) == (NEWEST_FOLD + 1, NEWEST_FOLD)
    assert node.state.shard.fold == NEWEST_FOLD


def test_a_fold_is_raised_and_never_lowered() -> None:
    node = Node(0, 1, Memory.KEEPS)
    for version, then in ((1, 1), (2, 2), (1, 2)):
        node.fold(START, encode_record(Record(SERVER, 0, FoldRaised(version))))
        assert node.state.shard.fold == then


# --- what other shards say --------------------------------------------------------------------


@pytest.fixture(params=Memory, ids=lambda memory: memory.name.lower())
def shards(request: pytest.FixtureRequest) -> World:
    """Many shards, whose forwards are held back until they are carried by hand."""
    world = World(256, request.param)
    world.carries = False
    return world


def delivered(alice: Person, bob: Person, n: int) -> Receipted:
    return Receipted(alice[1], bob.account, NORMAL, bob[1], MessageState.DELIVERED, Reason.NONE, START, ((n, n),))


def tell(world: World, alice: Person, bob: Person, k: int) -> None:
    """Bob's shard says to alice's, as its `k`-th word, that message `k` was delivered."""
    source = world.of(bob.account).index
    world.fold(world.of(alice.account), Record(SERVER, 0, Forwarded(source, k, delivered(alice, bob, k))))


def heard(world: World, device: int) -> list[list[int]]:
    return [change.numbers for change in world.receipts(device)]


def test_what_another_shard_says_is_taken_in_its_order(shards: World) -> None:
    alice, bob = shards.join("alice"), shards.join("bob")
    for k in (1, 2, 3):
        tell(shards, alice, bob, k)
    assert heard(shards, alice[1]) == [[1, 3]]
    assert shards.shard(alice).heard == {shards.of(bob.account).index: 3}


def test_what_was_heard_before_is_not_taken_again(shards: World) -> None:
    alice, bob = shards.join("alice"), shards.join("bob")
    for k in (1, 2):
        tell(shards, alice, bob, k)
    before = shards.changes(alice[1])
    for k in (1, 2):
        tell(shards, alice, bob, k)
    assert shards.changes(alice[1]) == before
    assert shards.shard(alice).out_of_chain == 0


def test_what_jumps_ahead_is_dropped_and_counted(shards: World) -> None:
    alice, bob = shards.join("alice"), shards.join("bob")
    tell(shards, alice, bob, 1)
    tell(shards, alice, bob, 3)
    assert heard(shards, alice[1]) == [[1, 1]]
    assert shards.shard(alice).out_of_chain == 1
    tell(shards, alice, bob, 2)
    tell(shards, alice, bob, 3)
    assert heard(shards, alice[1]) == [[1, 3]]


def test_each_shard_is_counted_by_itself(shards: World) -> None:
    alice, bob, carol = shards.join("alice"), shards.join("bob"), shards.join("carol")
    tell(shards, alice, bob, 1)
    tell(shards, alice, carol, 1)
    assert shards.shard(alice).heard == {shards.of(bob.account).index: 1, shards.of(carol.account).index: 1}
    assert heard(shards, alice[1]) == [[1, 1], [1, 1]]


def test_a_forward_that_is_repeated_files_one_copy(shards: World) -> None:
    alice, bob = shards.join("alice"), shards.join("bob")
    shards.carries = True
    shards.link(alice)
    shards.carries = False
    shards.send(alice[1], bob)
    ((source, forward),) = shards.forwards
    assert (source, forward.shard, forward.k) == (
        shard_of(bob.account, 256),
        shard_of(alice.account, 256),
        1,
    )
    for _ in range(3):
        shards.hear(source, forward)
    assert shards.texts(alice[2]) == ["hello"]


# --- whatever happens -------------------------------------------------------------------------

HANDLES = ("alice", "bob", "carol")
person = st.integers(0, 2)
device = st.integers(1, 3)
lane = st.sampled_from(Lane)
nearly_right = st.sampled_from([0, 0, 0, 0, -1, 1])

DEEDS = st.one_of(
    st.tuples(st.just("send"), person, device, person, lane, nearly_right, st.sampled_from([0, 0, 30_000])),
    st.tuples(st.just("void"), person, device, person, lane),
    st.tuples(st.just("ack"), person, device, lane, st.integers(0, 4), st.frozensets(st.integers(1, 6), max_size=2)),
    st.tuples(st.just("hear"), person, device, st.integers(0, 3)),
    st.tuples(st.just("read"), person, device, person, device, lane, st.integers(1, 3), st.integers(0, 3)),
    st.tuples(st.just("link"), person, st.booleans()),
    st.tuples(st.just("unlink"), person, device),
    st.tuples(st.just("block"), person, person, st.booleans()),
    st.tuples(st.just("hide"), person, st.booleans()),
    st.tuples(st.just("close"), person),
    st.tuples(st.just("join"), person, st.booleans(), st.sampled_from([b"", b"right", b"wrong"])),
    st.tuples(st.just("lock"), person, st.sampled_from([b"", b"right"])),
    st.tuples(st.just("wait"), st.sampled_from([0, 1, 900, 31_000, DAY_MS, 31 * DAY_MS])),
)  # fmt: skip


class Life:
    """Does the same deeds in any world, and remembers what was answered."""

    def __init__(self, shards: int, memory: Memory) -> None:
        self.world = World(shards, memory)
        self.world.limit(mailbox_entries=4, ring_acks=3, tick_items=2, ttl_ms=30 * DAY_MS)
        self.people = [self.world.join(handle) for handle in HANDLES]
        self.answers: list[object] = []
        self.joined = 0

    def live(self, deeds: list[tuple[Any, ...]]) -> None:
        for deed, *how in deeds:
            self.answers.append(getattr(self, f"_{deed}")(*how))

    def seen(self) -> list[object]:
        """All that people could tell."""
        devices = [device_id(each.account, index) for each in self.people for index in range(1, 8)]
        return [
            [self.world.offer(each, lane) for each in devices for lane in Lane],
            [
                sorted((change.key, change.reason, change.numbers) for change in self.world.receipts(each))
                for each in devices
            ],
        ]

    def devices(self) -> list[int]:
        return [device for each in self.people for device in self.world.account(each).devices]

    def fates(self) -> Iterator[tuple[int, int, int, Lane, int]]:
        """What waits, and what senders were told of."""
        for each in self.devices():
            for lane in Lane:
                for item in self.world.offer(each, lane):
                    if isinstance(item, tuple):
                        yield item[1].by, item[1].to, each, lane, item[1].n
            for change in self.world.receipts(each):
                by, to, lane, peer, state, _ = change.key
                if by == each and state != MessageState.READ:
                    yield from ((by, to, peer, Lane(lane), n) for n in numbers(change.numbers))

    def device(self, whose: int, index: int) -> int:
        return device_id(self.people[whose].account, index)

    def _last(self, by: int, to: Person, lane: Lane) -> int:
        stream = self.world.stream(by, to)
        return stream.lanes[lane].last if stream else 0

    def _send(self, whose: int, index: int, whom: int, lane: Lane, off: int, life_ms: int) -> object:
        by, to = self.device(whose, index), self.people[whom]
        n = max(1, self._last(by, to, lane) + 1 + off)
        return self.world.send(by, to, n, lane=lane, floor=n - 1, text=f"{n}", life_ms=life_ms)

    def _void(self, whose: int, index: int, whom: int, lane: Lane) -> object:
        by, to = self.device(whose, index), self.people[whom]
        n = self._last(by, to, lane) + 1
        return self.world.do(by, Voided(to.account, lane, n, n, name_of(by, n, lane)))

    def _ack(self, whose: int, index: int, lane: Lane, more: int, unreadable: frozenset[int]) -> object:
        by = self.device(whose, index)
        box = self.world.mailbox(by)
        upto = (box.lanes[lane].acked if box else 0) + more
        return self.world.do(by, Acked(lane, upto, tuple(sorted(unreadable))))

    def _hear(self, whose: int, index: int, upto: int) -> object:
        return self.world.do(self.device(whose, index), ReceiptsAcked(upto))

    def _read(self, whose: int, index: int, peer: int, by: int, lane: Lane, low: int, more: int) -> object:
        span = Span(self.device(peer, by), lane, low, low + more)
        return self.world.do(self.device(whose, index), Read(self.people[peer].account, (span,)))

    def _link(self, whose: int, listed: bool) -> object:
        account = self.world.account(self.people[whose])
        if not account.devices or account.next_index > 5:
            return None
        first = next(iter(account.devices))
        self.people[whose].devices = dict(enumerate([first] * (account.next_index - 1), 1))
        return self.world.link(self.people[whose], listed=listed)

    def _unlink(self, whose: int, index: int) -> object:
        return self.world.do(SERVER, Unlinked(self.device(whose, index)))

    def _block(self, whose: int, whom: int, on: bool) -> object:
        return self.world.do(SERVER, Blocked(self.people[whose].account, self.people[whom].account, on))

    def _hide(self, whose: int, on: bool) -> object:
        return self.world.do(SERVER, ReceiptsSet(self.people[whose].account, on))

    def _close(self, whose: int) -> object:
        return self.world.do(SERVER, Closed(self.people[whose].account))

    def _join(self, whose: int, verified: bool, pin: bytes) -> object:
        """Again and again: each time is another device."""
        self.joined += 1
        each, token = self.people[whose], f"again {self.joined}".encode()
        new = Registered(each.account, each.handle, 7, token, "phone", Platform.CLI, verified, pin)
        return self.world.do(SERVER, new)

    def _lock(self, whose: int, digest: bytes) -> object:
        return self.world.do(SERVER, PinSet(self.people[whose].account, digest and b"salt", digest))

    def _wait(self, ms: int) -> object:
        self.world.wait(ms)
        return None


@settings(max_examples=60)
@given(st.lists(DEEDS, min_size=10, max_size=60))
def test_what_is_in_memory_decides_nothing(deeds: list[tuple[Any, ...]]) -> None:
    """The rows after the same log are the same bytes, whether they were kept, saved or loaded each time."""
    for shards in (1, 256):
        keeps, saves, forgets = (Life(shards, memory) for memory in Memory)
        for life in (keeps, saves, forgets):
            life.live(deeds)
        assert keeps.answers == saves.answers == forgets.answers
        assert keeps.world.everything() == saves.world.everything() == forgets.world.everything()


@settings(max_examples=60)
@given(st.lists(DEEDS, min_size=10, max_size=60))
def test_how_many_shards_there_are_cannot_be_told_from_outside(deeds: list[tuple[Any, ...]]) -> None:
    one, many = Life(1, Memory.KEEPS), Life(256, Memory.KEEPS)
    for life in (one, many):
        life.live(deeds)
    assert one.answers == many.answers
    assert one.seen() == many.seen()


Fate = tuple[int, int, int, Lane, int]
"""(sending device, account, device, lane, number)"""


@settings(max_examples=100)
@given(st.lists(DEEDS, min_size=10, max_size=60))
def test_every_accepted_message_waits_or_was_delivered_or_failed_once_for_every_device_it_was_sealed_for(
    deeds: list[tuple[Any, ...]],
) -> None:
    life = Life(1, Memory.KEEPS)
    owed: set[Fate] = set()
    for deed, *how in deeds:
        if deed in {"block", "close", "join", "hear"}:
            continue  # Those who block, leave or have heard are owed nothing that can still be seen.
        life.live([(deed, *how)])
        said = life.answers[-1]
        if deed == "send" and isinstance(said, Accepted):
            whose, index, whom, lane, off, _ = how
            by, to = life.device(whose, index), life.people[whom]
            if by in life.devices() and account_of(by) != to.account and off == 0:
                listed, n = life.world.account(to).listed, int(said.id.split(":")[2])
                owed |= {(by, to.account, each, lane, n) for each in listed}
    found = Counter(fate for fate in life.fates() if fate in owed)
    still_here = {fate for fate in owed if fate[0] in life.devices()}
    assert {fate: found[fate] for fate in still_here if found[fate] != 1} == {}
