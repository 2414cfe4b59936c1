"""One shard through takeovers: what was durable is answered, by the next owner if need be, and by all alike."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.cluster.owner import STIR_MS
from nightmail.engine.loop import LoopLimits
from nightmail.engine.ports import Damaged, TooNew
from nightmail.engine.saver import SaverLimits
from nightmail.model.answers import Accepted
from nightmail.model.ids import SERVER
from nightmail.model.limits import FoldLimits
from nightmail.model.records import Acked, FoldRaised, Record, encode_record
from nightmail.model.words import Lane
from sim.faults.wide_store import Faults, SimWideStore
from sim.world.cluster import a_later_fold
from tests.engine.cluster.rig import BOBS, PHONES, SHARDS, SmallCluster, with_people
from tests.engine.rig import PHONE, START, TABLET, a_message

EAGER = LoopLimits(saver=SaverLimits(checkpoint_ms=100))


def accepted(n: int, at: int) -> Accepted:
    return Accepted(a_message(n).id, a_message(n).tag, at, 1)


def raised(fold: int) -> list[bytes]:
    return [encode_record(Record(SERVER, 0, FoldRaised(fold)))]


def test_a_takeover_between_append_and_answer_answers_all_the_same() -> None:
    cluster, node = with_people()
    cluster.owners[BOBS].end()
    node.say(PHONE, a_message(1))
    cluster.wait()
    assert node.answers == []
    cluster.take_over(BOBS)
    assert node.answers == [(3, accepted(1, START + 100))]
    assert cluster.news.take() == [("grew", TABLET, Lane.NORMAL), ("settled",)]


def test_the_answer_to_a_node_that_is_gone_is_lost_and_nothing_else() -> None:
    cluster, node = with_people()
    cluster.owners[BOBS].end()
    node.say(PHONE, a_message(1))
    del cluster.nodes[node.number]
    cluster.take_over(BOBS)
    again = cluster.node(2)
    again.say(PHONE, a_message(1))
    assert (node.answers, again.answers) == ([], [(1, accepted(1, START + 100))])
    ((_, entries),) = again.offered()[0][0]  # type: ignore[misc]
    assert len(entries) == 1


def test_a_zombies_answer_equals_the_owners_and_only_one_is_handed_out() -> None:
    cluster, node = with_people()
    zombie = cluster.owners[BOBS]
    owner = cluster.take_over(BOBS)
    cluster.delivered.clear()
    node.say(PHONE, a_message(1))
    first, second = cluster.delivered
    assert (first, node.answers) == (second, [(3, accepted(1, START + 100))])
    assert zombie.loop is not None
    assert owner.loop is not None
    assert zombie.loop.state.offset == owner.loop.state.offset


def test_a_zombie_that_saved_is_overtaken_and_both_go_on_alike() -> None:
    cluster, node = with_people(EAGER)
    zombie = cluster.owners[BOBS]
    cluster.take_over(BOBS)
    for n in (1, 2, 3):
        node.say(PHONE, a_message(n))
        cluster.wait()
        zombie.tick()
    assert [said for _, said in node.answers] == [accepted(n, START + 100 * n) for n in (1, 2, 3)]
    assert all(owner.loop is not None and owner.loop.ready for owner in (zombie, cluster.owners[BOBS]))


def test_an_owner_serves_only_after_it_read_the_log_to_the_end_seen_at_takeover() -> None:
    cluster, node = with_people()
    node.say(PHONE, a_message(1))
    cluster.log.pauses = True
    owner = cluster.take_over(BOBS)
    assert (owner.mailboxes, owner.loop) == (None, None)
    cluster.log.pauses = False
    cluster.log.read()
    assert owner.mailboxes is not None
    ((items, more),) = node.offered()
    assert (len(items), more) == (1, False)


@pytest.mark.parametrize("what", ["rows", "log"])
def test_a_takeover_that_fails_is_tried_again(what: str) -> None:
    cluster, _ = with_people()
    if what == "log":
        cluster.log.end_fails = True
    else:
        cluster.store.faults = Faults(refuses=1.0)
    owner = cluster.take_over(BOBS)
    assert owner.loop is None
    cluster.log.end_fails, cluster.store.faults = False, Faults()
    cluster.wait(49)
    assert owner.loop is None
    cluster.wait(1)
    assert owner.loop is not None
    assert owner.loop.ready


def test_one_that_fell_behind_goes_on_from_the_other_owners_checkpoint() -> None:
    cluster, node = with_people(EAGER)
    behind = cluster.owners[BOBS]
    cluster.log.sleeping = cluster.log.readers(BOBS)
    node.say(PHONE, a_message(1))
    owner = cluster.take_over(BOBS)
    cluster.wait(100)
    cluster.wait(100)
    assert (cluster.log.trimmed[BOBS], owner.rows and owner.rows.pointer) == (2, 2)
    cluster.log.sleeping = []
    cluster.log.read()
    for _ in range(3):
        behind.tick()
    node.say(PHONE, a_message(2))
    assert behind.loop is not None
    assert (cluster.notices.fell_behind, behind.loop.ready, behind.loop.next_offset) == (1, True, 4)


def test_one_that_is_trimmed_away_while_it_takes_over_begins_again() -> None:
    cluster, node = with_people(EAGER)
    owner = cluster.owners[BOBS]
    node.say(PHONE, a_message(1))
    cluster.log.pauses = True
    slow = cluster.take_over(BOBS)
    cluster.log.sleeping = cluster.log.readers(BOBS)[1:]
    cluster.log.pauses = False
    cluster.now += 100
    owner.tick()
    owner.tick()
    assert (slow.loop, cluster.log.trimmed[BOBS]) == (None, 2)
    cluster.log.sleeping = []
    cluster.log.read()
    assert slow.loop is None
    slow.tick()
    assert slow.loop is not None
    assert (slow.loop.ready, cluster.notices.fell_behind) == (True, 1)


def test_the_fold_is_raised_when_every_node_supports_it_and_not_before() -> None:
    cluster, node = with_people()
    owner = cluster.owners[BOBS]
    assert owner.loop is not None
    assert owner.loop.state.shard.fold == 1
    cluster.announced = [NEWEST_FOLD, 1]
    cluster.wait(1_000)
    assert (owner.loop.state.shard.fold, cluster.notices.raised) == (1, [])
    cluster.announced = [NEWEST_FOLD, NEWEST_FOLD]
    cluster.wait(1_000)
    assert owner.loop.state.shard.fold == NEWEST_FOLD
    assert cluster.notices.raised == [NEWEST_FOLD] * SHARDS
    cluster.wait(1_000)
    assert cluster.notices.raised == [NEWEST_FOLD] * SHARDS
    node.say(PHONE, a_message(1))
    assert node.answers == [(3, accepted(1, START + 3_100))]


def test_the_limits_of_a_shard_are_its_owners_once_every_node_knows_the_newest_fold() -> None:
    cluster, _ = with_people()
    small = FoldLimits(mailbox_entries=7)
    owner = cluster.take_over(BOBS, fold_limits=small)
    assert owner.loop is not None
    cluster.announced = [NEWEST_FOLD, 1]
    cluster.wait(1_000)
    assert (owner.loop.state.shard.limits, cluster.notices.limits) == (FoldLimits(), [])
    cluster.announced = [NEWEST_FOLD]
    cluster.wait(1_000)
    cluster.wait(1_000)
    assert (owner.loop.state.shard.limits, cluster.notices.limits) == (small, [(FoldLimits(), small)])
    assert owner.is_settled


def test_owners_with_different_limits_do_not_overrule_each_other_for_ever() -> None:
    cluster, _ = with_people()
    cluster.announced = [NEWEST_FOLD]
    cluster.wait(1_000)
    small, large = FoldLimits(mailbox_entries=7), FoldLimits(mailbox_entries=70_000)
    before = cluster.take_over(BOBS, fold_limits=small)
    for _ in range(2):
        cluster.wait(1_000)
    owner = cluster.take_over(BOBS, fold_limits=large)
    for _ in range(5):
        cluster.wait(1_000)
        before.tick()
    assert before.loop is not None
    assert owner.loop is not None
    assert (owner.loop.state.shard.limits, before.loop.state.shard.limits) == (large, large)
    assert cluster.notices.limits == [(FoldLimits(), small), (small, large)]


def test_an_owner_that_does_not_know_the_fold_stops_in_words_and_another_goes_on() -> None:
    with a_later_fold():
        cluster, node = with_people()
        old = cluster.owners[BOBS]
        cluster.log.put(BOBS, START, raised(NEWEST_FOLD + 1))
        cluster.wait()
        (why,) = cluster.notices.stopped
        assert isinstance(why, TooNew)
        assert not old.alive
        node.say(PHONE, a_message(1))
        assert node.answers == []
        cluster.take_over(BOBS, NEWEST_FOLD + 1)
        assert [said for _, said in node.answers] == [accepted(1, START + 200)]


def test_a_log_that_ends_before_the_checkpoint_is_not_built_upon() -> None:
    cluster, node = with_people(limits=EAGER)
    node.say(PHONE, a_message(1))
    cluster.wait(500)
    cluster.log.batches[BOBS].clear()
    cluster.take_over(BOBS)
    (why,) = cluster.notices.stopped
    assert isinstance(why, Damaged)
    assert f"the log of shard {BOBS} ends at 0, before its checkpoint at" in str(why)
    assert not cluster.owners[BOBS].alive


def test_an_idle_log_is_stirred_while_it_has_something_to_forget() -> None:
    cluster, node = with_people()
    node.say(PHONE, a_message(1))
    cluster.wait(2_000)
    ends = [cluster.log.last(BOBS)]
    for _ in range(3):
        cluster.wait(STIR_MS)
        cluster.wait(2_000)
        ends.append(cluster.log.last(BOBS))
    assert ends == [ends[0], *[ends[0] + 1] * 3]


def test_forwards_reach_the_other_shards_log() -> None:
    cluster, node = with_people()
    before = cluster.log.last(PHONES)
    node.say(PHONE, a_message(1))
    ((_, entries),) = node.offered()[0][0]  # type: ignore[misc]
    node.say(TABLET, Acked(Lane.NORMAL, 1))
    cluster.wait()
    cluster.wait()
    assert BOBS != PHONES
    assert (len(entries), cluster.log.last(PHONES) > before) == (1, True)
    assert ("changed", PHONE) in cluster.news.take()


def test_an_owner_that_ended_tells_nothing() -> None:
    cluster, node = with_people()
    owner = cluster.owners[BOBS]
    owner.end()
    node.say(PHONE, a_message(1))
    cluster.wait()
    assert (node.answers, cluster.delivered, cluster.news.take()) == ([], [], [])


def test_rows_that_open_after_the_end_start_nothing() -> None:
    cluster = SmallCluster()
    scheduled: list[Callable[[], None]] = []
    cluster.store = SimWideStore(Random(1), lambda _, job: scheduled.append(job))
    owner = cluster.take_over(0)
    owner.end()
    while scheduled:
        scheduled.pop()()
    assert (owner.rows, owner.loop) == (None, None)
