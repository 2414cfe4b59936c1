"""Frames that are well formed, and say what no server of ours would: refused before anything of them counts."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace
from rich.console import Console

from nightmail.client.errors import Misbehaved, TooLarge
from nightmail.client.machine.machine import Machine
from nightmail.client.own_devices.device_linking import PendingLink
from nightmail.client.own_devices.link_request import LinkRequest
from nightmail.client.store.rows import Outgoing, OwnKeys
from nightmail.client.store.sqlite import SqliteStore
from nightmail.model.answers import Accepted, Stocked
from nightmail.model.group_rows import FanOut, MemberState
from nightmail.model.refusals import OutOfOrder, StaleDevices
from nightmail.model.roster import GroupReceipts, GroupSettings, Role
from nightmail.model.rows import GroupEntry, PendingReceipt, ReceiptKey
from nightmail.model.words import Kind, Lane, MessageState, Reason
from nightmail.wire.frames import encode
from nightmail.wire.items import (
    VERSION,
    Answered,
    Devices,
    Drained,
    Entries,
    FromServer,
    Gone,
    Goodbye,
    GroupChain,
    GroupLog,
    GroupMembers,
    GroupSeenBy,
    KeysLow,
    LogGap,
    LogRun,
    MemberShown,
    Pong,
    Receipts,
    Welcome,
)
from tests.client.script import ALICE, BOB, ME, PHONE, START, TABLET, Script, an_entry, entries
from tests.client.sealed_town import a_town
from tests.client.town import Town
from tests.e2ee.devices import Seeded

HUGE = (1 << 64) - 1
WELCOME = Welcome(VERSION, START, "here", 30_000, 256, 65_536, 1 << 20)
ENTRY = an_entry(1)
KEY: ReceiptKey = (PHONE, BOB, 0, TABLET, 2, 0)
CHANGE = PendingReceipt(KEY, 1, START, Reason.NONE, [1, 2, 5, 5])


def with_number(at: int, value: int) -> ReceiptKey:
    by, to, lane, device, state, n = (*KEY[:at], value, *KEY[at + 1 :])
    return by, to, lane, device, state, n


TAKERS = Script().machine.parts.takers
GOOD: tuple[FromServer, ...] = (
    WELCOME,
    Entries(Lane.NORMAL, 1, (ENTRY,)),
    Receipts((CHANGE,)),
    Gone(Lane.HIGH, 3, 3, Reason.EXPIRED),
    Devices(1, ALICE, 1, {PHONE: 7}, b""),
    Answered(1, Accepted("an id", b"tag", START, 1)),
    Answered(1, StaleDevices(1, (PHONE,), (), ())),
    Drained(0, 0, 0),
    Pong(1, START),
    Goodbye(4000, "later", 1_000),
    KeysLow(),
)
GROUP, HEAD = 0x1234_5678, bytes(32)
CHAIN = GroupChain(1, GROUP, 1, HEAD, 2, 5, FanOut.WRITE, ((1, b"first"), (2, b"second")))
MEMBERS = (MemberShown(ALICE, bytes(32), Role.ADMIN, MemberState.JOINED),)
PAGE = GroupMembers(1, GROUP, 1, HEAD, 1, GroupSettings(), MEMBERS, False)
GROUP_ENTRY = GroupEntry(PHONE, GROUP, 1, "an id", b"tag", Kind.TEXT, None, START, 0, b"sealed", 7, 1, Lane.NORMAL)
LOG = GroupLog(1, GROUP, 3, (LogGap(4, 6, Reason.NOT_MEMBER), LogRun(7, (GROUP_ENTRY,))), 7)
SEEN_BY = GroupSeenBy(1, GROUP, GroupReceipts.EACH_MEMBER, ((7, ((BOB, MessageState.READ),)),))
GOOD += (CHAIN, PAGE, LOG, SEEN_BY, GroupLog(0, GROUP, 0, (), 9), Entries(Lane.NORMAL, 1, (GROUP_ENTRY,)))
BAD: tuple[FromServer, ...] = (
    *(replace(CHAIN, **{name: value}) for name in ("group", "epoch", "length", "seq") for value in (-1, HUGE)),
    replace(CHAIN, group=GROUP + 1),
    replace(CHAIN, head=b"short"),
    *(replace(CHAIN, blobs=blobs) for blobs in (((0, b""),), ((2, b""), (1, b"")), ((1, b""), (1, b"")), ((3, b""),))),
    *(replace(PAGE, **{name: value}) for name in ("group", "epoch", "length") for value in (-1, HUGE)),
    replace(PAGE, head=b"short"),
    replace(PAGE, members=MEMBERS * 2),
    *(replace(PAGE, members=(replace(MEMBERS[0], account=value),)) for value in (0, -1, HUGE)),
    replace(PAGE, members=(replace(MEMBERS[0], key=b"short"),)),
    replace(PAGE, settings=GroupSettings(timer_ms=HUGE)),
    *(replace(LOG, **{name: value}) for name in ("group", "after", "head") for value in (-1, HUGE)),
    replace(LOG, after=2),
    replace(LOG, items=(LogRun(4, ()),)),
    replace(LOG, items=(LogGap(4, 3, Reason.NOT_MEMBER),)),
    replace(LOG, items=(LogGap(4, HUGE, Reason.NOT_MEMBER),)),
    replace(LOG, items=(LogRun(5, (GROUP_ENTRY,)),)),
    *(
        item
        for name in ("by", "group_seq", "epoch")
        for value in (-1, HUGE)
        for entry in (replace(GROUP_ENTRY, **{name: value}),)
        for item in (replace(LOG, items=(LogRun(4, (entry,)),)), Entries(Lane.NORMAL, 1, (entry,)))
    ),
    replace(SEEN_BY, group=3),
    *(replace(SEEN_BY, states=((number, ()),)) for number in (0, -1, HUGE)),
    *(replace(SEEN_BY, states=((1, ((account, MessageState.READ),)),)) for account in (-1, HUGE)),
    *(replace(WELCOME, **{name: value}) for name in ("at", "window", "body_bytes") for value in (-1, HUGE)),
    *(
        Entries(Lane.NORMAL, 1, (ENTRY, replace(ENTRY, **{name: value})))
        for name in ("by", "to", "n", "at", "life_ms")
        for value in (-1, HUGE, 1 << 63)
    ),
    Entries(Lane.NORMAL, HUGE, (ENTRY,)),
    *(
        Receipts((PendingReceipt(with_number(at, value), 1, START, Reason.NONE, [1, 1]),))
        for at in range(6)
        for value in (-1, HUGE)
    ),
    Receipts((PendingReceipt((PHONE, BOB, 9, TABLET, 2, 0), 1, START, Reason.NONE, [1, 1]),)),
    *(
        Receipts((PendingReceipt(KEY, 1, START, Reason.NONE, numbers),))
        for numbers in ([1, HUGE], [1, 2, 3], [2, 1], [0, 1], [1, 4, 3, 5], [-1, 1])
    ),
    Receipts((PendingReceipt(KEY, HUGE, START, Reason.NONE, [1, 1]),)),
    Receipts((PendingReceipt((*KEY[:4], MessageState.FAILED, -1), 1, START, Reason.EXPIRED, [1, 1]),)),
    Receipts((PendingReceipt(KEY, 1, HUGE, Reason.NONE, [1, 1]),)),
    Gone(Lane.NORMAL, 1, HUGE, Reason.EXPIRED),
    Gone(Lane.NORMAL, 2, 1, Reason.EXPIRED),
    Gone(Lane.NORMAL, -1, 1, Reason.EXPIRED),
    Devices(1, ALICE, HUGE, {PHONE: 7}, b""),
    Devices(1, HUGE, 1, {PHONE: 7}, b""),
    Devices(1, ALICE, 1, {HUGE: 7}, b""),
    Devices(1, ALICE, 1, {PHONE: HUGE}, b""),
    Answered(1, Accepted("an id", b"tag", HUGE >> 2, 1)),
    Answered(1, Accepted("an id", b"tag", START, HUGE)),
    Answered(1, StaleDevices(1, (PHONE,), (HUGE,), ())),
    Answered(1, Stocked(-1, 1)),
    Answered(1, OutOfOrder(-1)),
    Drained(0, HUGE, 0),
    Goodbye(4000, "later", HUGE),
)


@pytest.mark.parametrize("item", GOOD, ids=lambda item: type(item).__name__)
def test_what_a_server_says_is_within_bounds(item: FromServer) -> None:
    assert TAKERS[type(item)].is_sound(item)


@pytest.mark.parametrize("item", BAD, ids=repr)
def test_what_no_server_can_mean_is_refused(item: FromServer) -> None:
    assert not TAKERS[type(item)].is_sound(item)


@pytest.mark.parametrize("item", BAD, ids=repr)
def test_nothing_of_it_reaches_the_store_and_the_connection_ends(item: FromServer, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, bytes(32))
    machine = Machine(store, ME, None, Random(1), Seeded(1))
    machine.connected(START)
    machine.turn()
    if not isinstance(item, Welcome):
        machine.receive(encode([WELCOME]), START)
    machine.turn()
    machine.receive(encode([entries(1, an_entry(1)), item]), START)
    assert not store.dirty
    assert "cannot be" in str(machine.turn().hang_up)


def test_a_number_before_the_first_that_must_come_first_ends_the_connection_and_not_the_stream() -> None:
    script = Script()
    script.connect()
    messages = [script.write() for _ in range(3)]
    script.bodies()
    script.answer(OutOfOrder(0))
    assert script.hang_up
    script.lose()
    script.connect()
    script.accept()
    assert [script.state(message) for message in messages] == [("sent", "")] * 3


def test_a_lane_that_stands_still_holds_what_a_server_may_hand_out_and_no_more() -> None:
    _, (alice, _) = a_town("alice", "bob")
    stranger = 12_345 << 12 | 1

    def brings(first: int, count: int, size: int) -> str | None:
        some = tuple(an_entry(n, by=stranger, to=alice.me.account, body=bytes(size)) for n in range(count))
        alice.machine.receive(encode([Entries(Lane.NORMAL, first, some)]), START)
        return alice.machine.turn().hang_up

    for at in range(25):
        assert brings(1 + at * 10, 10, 4_000) is None
        assert brings(1 + at * 10, 10, 4_000) is None  # repeats are no more than what they repeat
    assert alice.machine.parts.inbox.held_entries == 250
    assert "was due" in str(brings(252, 1, 1))


@pytest.mark.parametrize(("count", "size"), [(100, 1), (10, 60_000)])
def test_a_server_that_goes_on_without_acknowledgements_is_left(count: int, size: int) -> None:
    _, (alice, _) = a_town("alice", "bob")
    stranger = 12_345 << 12 | 1
    for at in range(100):
        some = tuple(an_entry(n, by=stranger, to=alice.me.account, body=bytes(size)) for n in range(count))
        alice.machine.receive(encode([Entries(Lane.NORMAL, 1 + at * count, some)]), START)
    assert "acknowledged" in str(alice.machine.turn().hang_up)
    assert alice.machine.parts.inbox.held_bytes < 2 * alice.machine.limits.held_bytes
    assert alice.machine.parts.inbox.held_entries < 2 * alice.machine.limits.held_entries
    alice.machine.closed(1006, START)
    assert alice.machine.parts.inbox.held_entries == alice.machine.parts.inbox.held_bytes == 0


def test_a_list_that_is_forgotten_while_somebody_waits_is_asked_for_again() -> None:
    town, (alice, bob) = a_town("alice", "bob")
    lost: list[Devices] = []

    def loses(device: int, item: FromServer) -> FromServer | None:
        if device == alice.me.device and isinstance(item, Devices) and item.account == bob.me.account and not lost:
            lost.append(item)
            return None
        return item

    town.meddle = loses
    bob.says(alice, "hello")
    for _ in range(10):
        bob.exchange()
        alice.exchange()
        town.wait(2)
    assert lost
    alice.machine.parts.lists.forget(bob.me.account)
    town.settle()
    town.wait(60_000)
    town.settle()
    assert alice.heard() == ["hello"]


@pytest.mark.parametrize("forged", ["a stranger's device", "a device that they never had"])
def test_what_a_device_that_never_was_could_not_open_is_not_sealed_for_it(forged: str) -> None:
    town, (alice, bob) = a_town("alice", "bob")
    message = alice.says(bob, "hello")
    town.settle()
    account = bob.me.account if "they" in forged else 777
    for count in range(1, 101):
        key = (alice.me.device, bob.me.account, 0, account << 12 | (count + 2), MessageState.FAILED, 0)
        for reason in (Reason.UNDECRYPTABLE, Reason.STALE_DEVICES):
            seq = 1_000 + 2 * count + (reason is Reason.STALE_DEVICES)
            item = Receipts((PendingReceipt(key, seq, START, reason, [1, 1]),))
            alice.machine.receive(encode([item]), town.now)
    found = alice.store.message(message.id)
    assert found is not None
    assert (list(found.places), alice.store.outgoing()) == ([bob.me.device], [])


def test_what_is_larger_than_a_note_can_be_is_refused_when_it_is_written() -> None:
    """Whatever the server would take."""
    town = Town(0, sealed=True)
    alice, bob = town.join("alice"), town.join("bob")
    town.meddle = lambda _, item: replace(item, body_bytes=262_144) if isinstance(item, Welcome) else item
    alice.connect()
    bob.connect()
    town.settle()
    with pytest.raises(TooLarge):
        alice.says(bob, "x" * 70_000)
    with pytest.raises(TooLarge):
        alice.machine.parts.outbox.control(bob.me.account, bytes(70_000))
    alice.says(bob, "x" * 65_000)
    town.settle()
    assert [len(text) for text in bob.heard()] == [65_000]


def test_nothing_that_may_be_printed_shows_a_secret() -> None:
    page = Console(file=StringIO(), width=400)
    secret = b"SECRETSECRETSECR"
    outgoing = Outgoing(
        to=1, lane=Lane.HIGH, n=1, id="1", original="1", nonce=secret, tag=b"", composed_at=1, content=secret
    )
    request = LinkRequest("ada", 1, "", bytes(64), secret)
    for what in (request, PendingLink(1, 2, bytes(64), secret), OwnKeys(secret), outgoing):
        page.print(what, repr(what))
    assert isinstance(page.file, StringIO)
    assert "SECRET" not in page.file.getvalue()


def test_what_was_opened_and_the_cursor_behind_it_are_never_apart() -> None:
    """Whatever an entry in the middle of many does."""
    town, (alice, bob) = a_town("alice", "bob")
    alice.says(bob, "hello")
    town.settle()
    bob.cut()
    for count in range(3):
        alice.says(bob, f"{count}")
    town.settle()
    show, shown = bob.machine.parts.inbox.show, bob.store.cursors().normal

    def misbehaves(message: object) -> None:
        if b"2" in getattr(message, "body", b""):
            raise Misbehaved("in the middle")
        show(message)  # pyright: ignore[reportArgumentType]

    bob.machine.parts.inbox.show = misbehaves
    bob.connect()
    town.settle()
    assert len(bob.store.history(alice.me.account, 10)) == 3
    assert bob.store.cursors().normal == shown + 2


def test_an_item_that_nobody_foresaw_is_raised_as_misbehaviour_and_can_be_undone() -> None:
    script = Script()
    script.connect()
    script.turn()

    def fails(row: object) -> None:
        raise OverflowError("too large")

    script.store.put_numbered = fails
    with pytest.raises(Misbehaved, match="OverflowError"):
        script.say(entries(1, an_entry(1)))
    script.machine.roll_back()
    assert (script.store.dirty, script.store.cursors().normal) == (False, 0)
