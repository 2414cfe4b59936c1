"""An account row covers all that was durable when it was asked for, no matter which owner shows it."""

from __future__ import annotations

import pytest

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.cluster import fresh_reads
from nightmail.engine.cluster.owner import Owner
from nightmail.engine.loop import LoopLimits
from nightmail.engine.saver import SaverLimits
from nightmail.model.records import Blocked, Listed
from sim.faults.wide_store import Faults
from tests.engine.cluster.rig import BOBS, NO_CHECKPOINT, Node, SmallCluster, with_people
from tests.engine.rig import ALICE, BOB, TABLET


def a_list(version: int) -> Listed:
    return Listed(BOB, version, (TABLET,), b"signed")


def versions(asked: Owner) -> list[int]:
    """Ask for Bob's account; the version of his list can be seen here once it is shown."""
    found: list[int] = []
    assert asked.mailboxes is not None
    asked.mailboxes.account(BOB, lambda row: found.append(row.list_version if row else 0))
    return found


def lagging() -> tuple[SmallCluster, Node, Owner]:
    """Bob has published his second list; the owner that was replaced has not read it."""
    cluster, node = with_people()
    replaced = cluster.owners[BOBS]
    cluster.take_over(BOBS)
    cluster.log.sleeping = cluster.log.readers(BOBS)[:1]
    node.say(TABLET, a_list(2))
    return cluster, node, replaced


def test_an_owner_that_lags_shows_a_row_only_after_it_has_read_on() -> None:
    cluster, _, replaced = lagging()
    late, at_once = versions(replaced), versions(cluster.owners[BOBS])
    replaced.tick()
    assert (late, at_once) == ([], [2])
    cluster.log.sleeping = ()
    cluster.log.read()
    assert late == [2]


def test_whom_an_account_blocks_is_shown_by_an_owner_that_lags_only_after_it_has_read_on() -> None:
    cluster, node, replaced = lagging()
    node.say(TABLET, Blocked(BOB, ALICE, True))
    found: list[tuple[bool, object]] = []
    assert replaced.mailboxes is not None
    replaced.mailboxes.relations(
        BOB, lambda row, known: found.append((row is not None and ALICE in row.blocked, known))
    )
    replaced.tick()
    assert found == []
    cluster.log.sleeping = ()
    cluster.log.read()
    assert found == [(True, None)]


def test_whom_an_account_blocks_is_asked_of_its_owner_until_it_answers() -> None:
    cluster, node = with_people()
    node.say(TABLET, Blocked(BOB, ALICE, True))
    cluster.log.end_fails = True
    found: list[list[int]] = []
    node.desk.relations(BOB, lambda row, _known: found.append(list(row.blocked) if row else []))
    cluster.log.end_fails = False
    assert found == []
    cluster.wait(300)
    assert found == [[ALICE]]


def test_what_becomes_durable_after_the_question_is_not_waited_for() -> None:
    cluster, node = with_people()
    cluster.log.holds_ends = True
    found = versions(cluster.owners[BOBS])
    cluster.log.pauses = True
    node.say(TABLET, a_list(2))
    cluster.log.on_its_way.pop()()
    assert found == [1]


def test_without_the_logs_end_nothing_is_shown_and_the_desk_asks_again() -> None:
    cluster, node = with_people()
    cluster.log.end_fails = True
    found: list[bool] = []
    node.desk.account(BOB, lambda row: found.append(row is not None))
    cluster.wait(299)
    cluster.log.end_fails = False
    assert found == []
    cluster.wait(1)
    assert found == [True]


def test_questions_share_a_request_that_was_sent_after_them() -> None:
    cluster, node = with_people()
    owner, log = cluster.owners[BOBS], cluster.log
    log.holds_ends = True
    first = versions(owner)
    log.pauses = True
    node.say(TABLET, a_list(2))
    second, third = versions(owner), versions(owner)
    assert len(log.on_its_way) == 1
    log.on_its_way.pop()()
    assert (first, second, third, len(log.on_its_way)) == ([1], [], [], 1)
    log.on_its_way.pop()()
    assert (second, third, log.on_its_way) == ([], [], [])
    log.pauses = False
    log.read()
    assert (first, second, third) == ([1], [2], [2])


def test_a_request_that_fails_drops_only_the_questions_it_served() -> None:
    cluster, _ = with_people()
    owner, log = cluster.owners[BOBS], cluster.log
    log.holds_ends = log.end_fails = True
    first = versions(owner)
    second = versions(owner)
    log.end_fails = False
    log.on_its_way.pop()()
    log.on_its_way.pop()()
    assert (first, second) == ([], [1])


def test_a_row_of_a_state_that_was_rebuilt_before_the_end_is_not_shown() -> None:
    cluster, _ = with_people(LoopLimits(saver=SaverLimits(checkpoint_ms=100)))
    for _ in range(2):
        cluster.wait()
    cluster.limits = NO_CHECKPOINT
    owner = cluster.take_over(BOBS)
    loop = owner.loop
    assert loop is not None
    saved = loop.state.offset
    # It folds its own append at once, although its reader has not brought it yet.
    cluster.log.pauses = True
    loop.adopt(NEWEST_FOLD, loop.state.shard.limits)
    assert loop.state.offset == saved + 1
    cluster.store.faults = Faults(refuses=1.0)
    found = versions(owner)
    loop.fell_behind()
    cluster.store.faults = Faults()
    cluster.wait(1_000)
    assert (loop.ready, loop.state.offset, BOB in loop.state.accounts, found) == (True, saved, True, [])
    cluster.log.pauses = False
    cluster.log.read()
    assert versions(owner) == [1]


def test_only_so_many_questions_wait_and_the_oldest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_reads, "WAITING_MAX", 2)
    cluster, _, replaced = lagging()
    found = [versions(replaced) for _ in range(3)]
    cluster.log.sleeping = ()
    cluster.log.read()
    assert found == [[2], [2], []]
    assert versions(replaced) == [2]


def test_questions_that_failed_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_reads, "WAITING_MAX", 1)
    cluster, _ = with_people()
    cluster.log.end_fails = True
    found = [versions(cluster.owners[BOBS]), versions(cluster.owners[BOBS])]
    cluster.log.end_fails = False
    assert (found, versions(cluster.owners[BOBS])) == ([[], []], [1])


def test_what_a_cursor_guards_is_offered_without_asking_for_the_end() -> None:
    cluster, node = with_people()
    cluster.log.end_fails = True
    receipts: list[int] = []
    node.desk.receipts(TABLET, 0, 10, lambda found: receipts.append(len(found)))
    assert (node.offered(), receipts) == ([([], False)], [0])


def test_an_account_that_nobody_registered_is_shown_as_none() -> None:
    cluster = SmallCluster()
    cluster.take_over_all()
    found: list[object] = []
    cluster.node(1).desk.account(ALICE, found.append)
    assert found == [None]
