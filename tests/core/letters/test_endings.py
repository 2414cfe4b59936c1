from __future__ import annotations

import pytest

from nightmail.core.letters.pages import counts, needs_counts
from nightmail.model.answers import Accepted, Done, GroupAccepted, Said
from nightmail.model.effects import Answer
from nightmail.model.ids import SERVER, log_of
from nightmail.model.letter_rows import LetterStatus
from nightmail.model.limits import DAY_MS
from nightmail.model.records import (
    Acked,
    Blocked,
    ClockSetBack,
    Closed,
    Discarded,
    LettersSettled,
    ReceiptsAcked,
    Record,
    Replayed,
    Unlinked,
    encode_record,
)
from nightmail.model.refusals import LetterSettled, NotReplayable, UnknownLetter
from nightmail.model.words import Lane, MessageState, Reason
from tests.core.group_world import GROUP
from tests.core.schedule_world import ScheduleWorld
from tests.core.world import WORLDS, Person

FAILED = MessageState.FAILED


@pytest.fixture(params=list(WORLDS.values()), ids=list(WORLDS))
def world(request: pytest.FixtureRequest) -> ScheduleWorld:
    shards, memory = request.param
    return ScheduleWorld(shards, memory)


def buried(world: ScheduleWorld, ada: Person, bob: Person, n: int = 1) -> tuple[int, Accepted]:
    offset, said = world.bury(ada[1], bob, world.sent(ada[1], bob, n, text=f"no {n}"))
    assert isinstance(said, Accepted)
    return offset, said


def failures(world: ScheduleWorld, device: int) -> list[tuple[int, Reason]]:
    return [(receipt.key[3], receipt.reason) for receipt in world.receipts(device) if receipt.state is FAILED]


def status(world: ScheduleWorld, bob: Person, offset: int) -> LetterStatus:
    letter = world.letter(bob, offset)
    assert letter is not None
    return letter.status


def test_a_replayed_message_is_delivered_once_under_its_first_stamp(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada", 2), world.join("bob", 2)
    offset, said = buried(world, ada, bob)
    world.wait(5_000)
    world.send(ada[1], bob, 2)
    assert world.command(bob, Replayed(offset)) == Done()
    assert world.command(bob, Replayed(offset)) == LetterSettled(offset)
    assert world.command(bob, Discarded(offset)) == LetterSettled(offset)
    (_, item) = world.offer(bob[1])
    assert isinstance(item, tuple)
    assert (item[1].n, item[1].at) == (1, said.at)
    assert world.texts(bob[2]) == world.texts(ada[2]) == ["hello", "no 1"]
    assert failures(world, ada[1]) == []
    assert world.of(bob.account).state.shard.dead == 0
    assert status(world, bob, offset) is LetterStatus.REPLAYED


def test_a_letter_shows_the_message_until_it_is_settled(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    sent = world.sent(ada[1], bob, 1)
    offset, said = buried(world, ada, bob)
    letter = world.letter(bob, offset)
    assert letter is not None
    original = letter.original
    assert (original.msg_id, original.sender, original.recipient) == (sent.id, ada[1], bob.account)
    assert isinstance(said, Accepted)
    assert (original.timestamp, len(original.content), letter.is_replayable) == (said.at, 1, True)
    world.command(bob, Discarded(offset))
    letter = world.letter(bob, offset)
    assert letter is not None
    assert (letter.original.content, letter.is_replayable) == ((), False)


def test_a_discarded_message_has_failed(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    offset, _ = buried(world, ada, bob)
    assert failures(world, ada[1]) == []
    assert world.command(bob, Discarded(offset)) == Done()
    assert failures(world, ada[1]) == [(bob[1], Reason.EXPIRED)]
    assert world.command(bob, Replayed(offset)) == LetterSettled(offset)


def test_a_letter_that_nobody_settles_has_failed_after_30_days(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    offset, _ = buried(world, ada, bob)
    world.wait(30 * DAY_MS - 1_000)
    assert (failures(world, ada[1]), status(world, bob, offset)) == ([], LetterStatus.WAITING)
    world.wait(1_000)
    assert failures(world, ada[1]) == [(bob[1], Reason.EXPIRED)]
    assert status(world, bob, offset) is LetterStatus.EXPIRED


def test_a_settled_letter_is_listed_for_30_days_more(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    offset, _ = buried(world, ada, bob)
    world.wait(29 * DAY_MS)
    world.command(bob, Replayed(offset))
    world.do(bob[1], Acked(Lane.NORMAL, 1))
    node = world.of(bob.account)
    world.wait(29 * DAY_MS)
    node.load(needs_counts)
    assert counts(node.state) == {"ValueError in Sent": 1}
    world.wait(DAY_MS + 100)
    node.load(needs_counts)
    assert (counts(node.state), world.letter(bob, offset)) == ({}, None)
    assert failures(world, ada[1]) == []


def test_a_device_that_was_unlinked_meanwhile_fails_alone(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob", 2)
    offset, _ = buried(world, ada, bob)
    world.do(bob[1], Unlinked(bob[2]))
    assert world.command(bob, Replayed(offset)) == Done()
    assert world.texts(bob[1]) == ["no 1"]
    assert failures(world, ada[1]) == [(bob[2], Reason.DEVICE_REMOVED)]


def test_to_an_account_that_was_closed_a_replayed_message_fails(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    offset, _ = buried(world, ada, bob)
    world.do(bob[1], Closed(bob.account))
    assert world.command(bob, Replayed(offset)) == Done()
    assert failures(world, ada[1]) == [(bob[1], Reason.DEVICE_REMOVED)]


def test_a_full_device_fails_when_a_message_is_replayed(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    offset, _ = buried(world, ada, bob)
    world.limit(mailbox_entries=1)
    world.send(ada[1], bob, 2)
    world.command(bob, Replayed(offset))
    assert failures(world, ada[1]) == [(bob[1], Reason.MAILBOX_FULL)]


def test_a_sender_that_was_blocked_meanwhile_learns_nothing(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    offset, _ = buried(world, ada, bob)
    world.do(bob[1], Blocked(bob.account, ada.account, on=True))
    assert world.command(bob, Replayed(offset)) == Done()
    assert (world.texts(bob[1]), failures(world, ada[1])) == ([], [])


def test_what_is_no_message_can_be_seen_and_discarded_but_not_replayed(world: ScheduleWorld) -> None:
    bob = world.join("bob")
    offset, _ = world.bury(bob[1], bob, Acked(Lane.NORMAL, 1), "KeyError in Acked")
    assert world.command(bob, Replayed(offset)) == NotReplayable(offset)
    assert world.command(bob, Discarded(offset)) == Done()
    assert world.command(bob, Discarded(offset + 100)) == UnknownLetter(offset + 100)


def test_a_retry_that_was_buried_is_not_replayed(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.send(ada[1], bob, 1)
    offset, said = world.bury(ada[1], bob, world.sent(ada[1], bob, 1))
    assert isinstance(said, Accepted)
    assert world.command(bob, Replayed(offset)) == NotReplayable(offset)
    assert world.texts(bob[1]) == ["hello"]
    world.do(bob[1], Acked(Lane.NORMAL, 1))
    world.wait(30 * DAY_MS)
    assert failures(world, ada[1]) == []


def test_bytes_that_are_no_record_end_in_time(world: ScheduleWorld) -> None:
    bob = world.join("bob")
    node = world.of(bob.account)
    node.bury(world.now, b"poison", "not a record")
    offset = node.offset
    assert world.command(bob, Replayed(offset)) == NotReplayable(offset)
    world.wait(30 * DAY_MS)
    world.wait(30 * DAY_MS)
    assert world.letter(bob, offset) is None


def test_several_letters_are_settled_each_by_itself(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    first, _ = buried(world, ada, bob, 1)
    second, _ = buried(world, ada, bob, 2)
    world.command(bob, Discarded(first))
    assert world.command(bob, LettersSettled((first, second, second, 999), replay=True)) == Done()
    assert world.texts(bob[1]) == ["no 2"]
    assert (status(world, bob, first), status(world, bob, second)) == (
        LetterStatus.DISCARDED,
        LetterStatus.REPLAYED,
    )


def test_a_letter_of_an_older_fold_can_be_discarded_and_its_sender_hears_it_in_time() -> None:
    world = ScheduleWorld()
    ada, bob = world.join("ada"), world.join("bob")
    node = world.of(bob.account)
    node.state.shard.fold = 4
    node.state.notice_fold()
    record = Record(ada[1], 7, world.sent(ada[1], bob, 1))
    node.bury(world.now, encode_record(record), "ValueError in Sent", record)
    offset = node.offset
    node.state.shard.fold = 5
    node.state.notice_fold()
    assert world.command(bob, Replayed(offset)) == NotReplayable(offset)
    assert world.command(bob, Discarded(offset)) == Done()
    assert failures(world, ada[1]) == []
    world.wait(30 * DAY_MS)
    assert failures(world, ada[1]) == [(bob[1], Reason.EXPIRED)]
    assert world.letter(bob, offset) is None


def test_where_letters_wait_for_ever_a_settled_one_is_forgotten_all_the_same(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.limit(dead_letters_ms=0)
    settled_one, _ = buried(world, ada, bob, 1)
    waiting, _ = buried(world, ada, bob, 2)
    world.wait(100 * DAY_MS)
    assert world.command(bob, Discarded(settled_one)) == Done()
    world.wait(29 * DAY_MS)
    assert status(world, bob, settled_one) is LetterStatus.DISCARDED
    world.wait(2 * DAY_MS)
    assert world.letter(bob, settled_one) is None
    assert status(world, bob, waiting) is LetterStatus.WAITING


@pytest.mark.parametrize("discards", [False, True])
def test_a_message_that_an_older_fold_has_buried_fails_once(discards: bool) -> None:
    world = ScheduleWorld(fold=4)
    ada, bob = world.join("ada"), world.join("bob")
    offset, _ = buried(world, ada, bob)
    world.raise_fold(5)
    if discards:
        assert world.command(bob, Replayed(offset)) == NotReplayable(offset)
        assert world.command(bob, Discarded(offset)) == Done()
    heard: list[tuple[int, Reason]] = []
    for _ in range(70):
        world.wait(DAY_MS)
        heard += failures(world, ada[1])
        for receipt in world.receipts(ada[1]):
            world.do(ada[1], ReceiptsAcked(receipt.seq))
    assert heard == [(bob[1], Reason.EXPIRED)]
    assert world.letter(bob, offset) is None


# --- messages to groups ---------------------------------------------------------------------------


def buried_in_a_group(world: ScheduleWorld, *, seals: bool = False) -> tuple[Person, Person, int]:
    ada, bob = world.join("ada"), world.join("bob")
    world.make(ada[1], ada, bob)
    body = world.group_sealed(ada[1], 1, bob[1]) if seals else world.group_sent(ada[1], 1)
    node, record = world.of(GROUP), Record(ada[1], 7, body)
    (effect,) = node.bury(world.now, encode_record(record), "ValueError in GroupSent", record)
    assert isinstance(effect, Answer)
    assert isinstance(effect.said, GroupAccepted)
    return ada, bob, node.offset


def settled(world: ScheduleWorld, body: Replayed | Discarded) -> Said:
    (answer,) = world.fold(world.of(GROUP), Record(SERVER, 1, body))
    while world.forwards:
        world.hear(*world.forwards.popleft())
    return answer.said


@pytest.mark.parametrize("seals", [False, True])
def test_a_message_to_a_group_has_failed_when_it_is_discarded(world: ScheduleWorld, seals: bool) -> None:
    ada, bob, offset = buried_in_a_group(world, seals=seals)
    assert failures(world, ada[1]) == []
    assert settled(world, Discarded(offset)) == Done()
    assert failures(world, ada[1]) == [(bob[1] if seals else log_of(GROUP), Reason.EXPIRED)]


def test_a_message_to_a_group_is_replayed_once_under_its_number_and_stamp(world: ScheduleWorld) -> None:
    ada, bob, offset = buried_in_a_group(world)
    first = world.letter_row(GROUP, offset)
    world.wait(1_000)
    world.write(ada[1], 2, text="after it")
    assert settled(world, Replayed(offset)) == Done()
    assert settled(world, Replayed(offset)) == LetterSettled(offset)
    later, replayed = [entry for entry in world.entries(bob[1]) if entry.by]
    assert (replayed.n, replayed.at, replayed.group_seq) == (1, first.stamp, first.group_seq)
    assert (later.n, later.group_seq) == (2, first.group_seq + 1)
    world.do(bob[1], Acked(Lane.NORMAL, len(world.entries(bob[1]))))
    seqs = first.group_seq, first.group_seq + 1
    delivered = {seq: {bob.account: MessageState.DELIVERED} for seq in seqs}
    assert (world.receipts_in_group(ada, *seqs), failures(world, ada[1])) == (delivered, [])


def test_no_copy_counts_as_lost_at_any_step_of_a_replay_in_a_group(world: ScheduleWorld) -> None:
    """`owed` is a gauge: a replayed letter's copies are taken back, and owed again where they are filed."""
    _, bob, offset = buried_in_a_group(world)
    owed, unaccounted = world.ledger().owed, [world.ledger().lost]

    def look() -> None:
        ledger = world.ledger()
        unaccounted.append(ledger.lost - ledger.carried)

    world.fold(world.of(GROUP), Record(SERVER, 1, Replayed(offset)))
    look()
    while world.forwards:
        world.hear(*world.forwards.popleft())
        look()
    world.do(bob[1], Acked(Lane.NORMAL, len(world.entries(bob[1]))))
    look()
    assert (set(unaccounted), world.ledger().lost, world.ledger().owed) == ({0}, 0, owed)


def test_a_replayed_message_reaches_nobody_who_was_added_or_removed_since(world: ScheduleWorld) -> None:
    ada, bob, offset = buried_in_a_group(world)
    cleo = world.join("cleo")
    world.add(ada[1], cleo)
    world.remove(ada[1], bob)
    assert settled(world, Replayed(offset)) == Done()
    for person in (bob, cleo):
        assert [entry for entry in world.entries(person[1]) if entry.by] == []
    assert failures(world, ada[1]) == [(log_of(GROUP), Reason.EXPIRED)]


def test_a_message_to_a_group_that_has_a_log_is_replayed_into_mailboxes(world: ScheduleWorld) -> None:
    world.limit(group_write_members=1)
    _, bob, offset = buried_in_a_group(world)
    assert settled(world, Replayed(offset)) == Done()
    assert [entry.n for entry in world.entries(bob[1]) if entry.by] == [1]


def test_keys_for_members_of_a_group_are_replayed(world: ScheduleWorld) -> None:
    ada, bob, offset = buried_in_a_group(world, seals=True)
    assert settled(world, Replayed(offset)) == Done()
    entries = [entry for lane in Lane for entry in world.entries(bob[1], lane) if entry.by]
    assert [(entry.by, entry.n, entry.at) for entry in entries] == [(ada[1], 1, entries[0].at)]
    assert failures(world, ada[1]) == []


def test_a_message_to_a_group_has_failed_after_30_days(world: ScheduleWorld) -> None:
    ada, _, _ = buried_in_a_group(world)
    world.wait(30 * DAY_MS - 100)
    assert failures(world, ada[1]) == []
    world.wait(200)
    assert failures(world, ada[1]) == [(log_of(GROUP), Reason.EXPIRED)]


# --- wrong clocks -------------------------------------------------------------------------------


def set_back(world: ScheduleWorld, ms: int) -> None:
    world.now -= ms
    for node in list(world.nodes.values()):
        world.fold(node, Record(SERVER, 7, ClockSetBack(world.now, world.now + ms)))


def test_a_letter_of_a_wrong_clock_ends_30_days_after_it_was_buried(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    world.wait(300 * DAY_MS)
    buried(world, ada, bob)
    set_back(world, 300 * DAY_MS)
    world.wait(29 * DAY_MS)
    assert failures(world, ada[1]) == []
    world.wait(DAY_MS + 100)
    assert failures(world, ada[1]) == [(bob[1], Reason.EXPIRED)]


def test_a_letter_of_before_a_wrong_clock_ends_30_days_after_it_was_buried(world: ScheduleWorld) -> None:
    ada, bob = world.join("ada"), world.join("bob")
    buried(world, ada, bob)
    world.now += 300 * DAY_MS
    world.do(ada[1], Acked(Lane.NORMAL, 0))
    set_back(world, 300 * DAY_MS)
    world.wait(29 * DAY_MS)
    assert failures(world, ada[1]) == []
    world.wait(DAY_MS + 100)
    assert failures(world, ada[1]) == [(bob[1], Reason.EXPIRED)]
