from __future__ import annotations

import pytest

from nightmail.core.state import NEWEST_FOLD
from nightmail.core.step import FOLDS
from nightmail.engine.cluster.append_queue import QueueLimits
from nightmail.engine.cluster.desk import DeskLimits
from nightmail.engine.cluster.prompts import PromptLimits
from nightmail.engine.ports import REF_BITS
from nightmail.model.answers import Done
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS
from nightmail.model.records import Acked, ClockSetBack, Record, Sent
from nightmail.model.refusals import NotYet, Overloaded, Unavailable
from nightmail.model.rows import Gap
from nightmail.model.traces import Trace
from nightmail.model.words import Lane, MessageState, Reason
from tests.engine.cluster.rig import BOBS, PHONES, SHARDS, Node, SmallCluster, with_people
from tests.engine.rig import ALICE, BOB, PHONE, TABLET, a_message


def test_records_go_to_the_log_of_the_shard_that_decides() -> None:
    cluster, node = with_people()
    before = [cluster.log.last(shard) for shard in (BOBS, PHONES)]
    node.say(PHONE, a_message(1), Acked(Lane.NORMAL, 0))
    assert BOBS != PHONES
    assert [cluster.log.last(shard) for shard in (BOBS, PHONES)] == [last + 1 for last in before]


def test_what_concerns_shards_as_a_whole_is_said_to_each_of_them_and_answered_by_each() -> None:
    cluster, node = with_people()
    assert node.desk.shards == SHARDS
    cluster.announced.append(NEWEST_FOLD)
    cluster.wait(1_000)
    wrong = cluster.clock() + DAY_MS
    for shard in range(SHARDS):
        address = node.line << REF_BITS | 100 + shard
        node.desk.submit_to(shard, Record(SERVER, address, ClockSetBack(cluster.clock(), wrong)))
    assert node.answers == [(100 + shard, Done()) for shard in range(SHARDS)]
    loops = [cluster.owners[shard].loop for shard in range(SHARDS)]
    assert [loop.state.shard.newest_time if loop else 0 for loop in loops] == [wrong] * SHARDS


def test_an_append_of_unknown_outcome_is_answered_unavailable_and_its_late_answer_is_dropped() -> None:
    cluster, node = with_people()
    cluster.log.holds = cluster.log.pauses = True
    node.say(PHONE, a_message(1))
    cluster.log.fail(kept=True)
    cluster.log.pauses = False
    cluster.log.read()
    assert node.answers == [(3, Unavailable())]
    assert len(cluster.delivered) == 1


def test_a_question_is_asked_again_when_the_owner_changed() -> None:
    cluster, node = with_people()
    node.say(PHONE, a_message(1))
    cluster.log.pauses = True
    cluster.take_over(BOBS)  # It does not serve yet.
    found = node.offered()
    cluster.wait(300)
    assert found == []
    cluster.log.pauses = False
    cluster.log.read()
    assert found == []
    cluster.wait(300)
    ((items, more),) = found
    assert (len(items), more) == (1, False)


def test_without_an_owner_questions_wait_and_connections_are_not_noted() -> None:
    cluster = SmallCluster()
    node = cluster.node(1)
    accounts: list[object] = []
    node.desk.account(BOB, accounts.append)
    node.desk.note_connection(TABLET, here=True)
    node.desk.receipts(TABLET, 0, 10, accounts.append)
    assert accounts == []
    cluster.take_over_all()
    cluster.wait(300)
    assert accounts == [None, []]


def test_an_account_is_read_at_its_own_shard() -> None:
    cluster, node = with_people()
    found: list[str] = []
    for account in (ALICE, BOB):
        node.desk.account(account, lambda row: found.append(row.handle if row else "none"))
    assert (found, len(cluster.owners)) == (["alice", "bob"], 4)


def test_a_kind_that_the_shards_fold_does_not_know_is_not_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, node = with_people()
    cluster.known_fold = 1
    monkeypatch.setitem(FOLDS, 1, {kind: steps for kind, steps in FOLDS[1].items() if kind is not Sent})
    before = cluster.log.last(BOBS)
    node.say(PHONE, a_message(1))
    assert (node.answers, cluster.log.last(BOBS)) == ([(3, NotYet())], before)


def test_while_a_log_does_not_get_on_only_what_frees_space_is_taken() -> None:
    cluster, _ = with_people()
    node = cluster.node(2, DeskLimits(queue=QueueLimits(waiting_bytes=0)))
    cluster.log.holds = True
    node.say(PHONE, a_message(1))
    node.say(PHONE, a_message(2))
    node.say(PHONE, a_message(3))
    node.say(TABLET, Acked(Lane.NORMAL, 0))
    assert node.answers == [(3, Overloaded())]
    assert not node.desk.is_idle
    cluster.log.holds = False
    while cluster.log.held:
        cluster.log.succeed()
    assert ([ref for ref, _ in node.answers], node.desk.is_idle) == ([3, 1, 2, 4], True)


def test_news_that_were_lost_are_made_up_for_by_prompts() -> None:
    cluster, _ = with_people()
    node = cluster.node(2, DeskLimits(prompts=PromptLimits(refresh_ms=500)))
    node.desk.note_connection(TABLET, here=True)
    cluster.wait(499)
    assert node.news.take() == []
    cluster.wait(1)
    every = [("grew", TABLET, Lane.NORMAL), ("grew", TABLET, Lane.HIGH), ("changed", TABLET), ("settled",)]
    every += [("low", TABLET), ("settled",)]  # it has published no keys
    assert node.news.take() == every
    node.desk.owner_changed(BOBS)
    cluster.wait(1)
    assert node.news.take() == every


def test_an_unaddressed_record_is_appended_until_it_is_durable() -> None:
    cluster, node = with_people()
    node.say(PHONE, a_message(1))
    cluster.log.holds = True
    node.desk.submit([Record(TABLET, 0, Acked(Lane.NORMAL, 1))])
    cluster.log.fail()
    cluster.log.holds = False
    cluster.wait(300)
    cluster.wait(300)
    assert node.offered() == [([Gap(1, 1, Reason.ACKNOWLEDGED)], False)]


def traced(node: Node, message_id: str) -> list[Trace | None]:
    traces: list[Trace | None] = []
    node.desk.trace(message_id, traces.append)
    return traces


def test_a_trace_tells_what_every_shard_knows() -> None:
    _, node = with_people()
    message = a_message(1)
    node.say(PHONE, message)
    node.say(TABLET, Acked(Lane.NORMAL, 1))
    (found,) = traced(node, message.id)
    assert found is not None
    assert [(event.device, event.what) for event in found.events] == [
        (0, "accepted"), (TABLET, "queued:1"), (TABLET, "delivered"), (TABLET, "deleted"),
    ]  # fmt: skip
    assert (found.states, found.group) == ({TABLET: MessageState.DELIVERED}, 0)
    assert BOBS != PHONES


def test_a_trace_waits_for_a_shard_that_has_no_owner() -> None:
    cluster, node = with_people()
    node.say(PHONE, a_message(1))
    cluster.log.pauses = True
    cluster.take_over(BOBS)  # It does not serve yet.
    traces = traced(node, a_message(1).id)
    assert traces == []
    cluster.log.pauses = False
    cluster.log.read()
    cluster.wait(300)
    cluster.wait(300)
    (found,) = traces
    assert found is not None
    assert found.states == {TABLET: MessageState.SENT}


def test_what_is_no_id_cannot_be_traced() -> None:
    _, node = with_people()
    with pytest.raises(ValueError):
        traced(node, "nothing")


def test_a_closed_line_hears_nothing() -> None:
    cluster, node = with_people()
    cluster.log.holds = True
    node.say(PHONE, a_message(1))
    node.desk.close_line(node.line)
    cluster.log.succeed()
    assert (node.answers, len(cluster.delivered)) == ([], 1)
