"""Questions about groups in a cluster: asked of the group's owner, as new as they must be, and with keys in front."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nightmail.engine.cluster import fresh_reads
from nightmail.engine.loop import Loop
from nightmail.model.answers import GroupAccepted
from nightmail.model.group_questions import ChainAsked, ChainShown, LogAsked, LogShown, MembersAsked, MembersShown
from nightmail.model.ids import DEVICE_BITS
from nightmail.model.words import Lane
from tests.engine.cluster.group_rig import GROUP, GROUPS, a_group_message, a_key, asked, with_a_group
from tests.engine.cluster.rig import BOBS
from tests.engine.rig import PHONE, TABLET

LOG = LogAsked(GROUP, TABLET, 0, 100, 1 << 20)
CHAIN = ChainAsked(GROUP, TABLET, 0, 100, 1 << 20)


def test_a_group_is_shown_by_the_owner_of_its_shard() -> None:
    cluster, node = with_a_group()
    node.say(PHONE, a_group_message(cluster))
    cluster.wait()
    assert [type(said) for _, said in node.answers] == [GroupAccepted]
    (chain,), (members,), (log,) = asked(node, CHAIN), asked(node, MembersAsked(GROUP, TABLET, 0, 9)), asked(node, LOG)
    assert isinstance(chain, ChainShown)
    assert isinstance(members, MembersShown)
    assert isinstance(log, LogShown)
    assert (chain.length, len(members.members), log.head, log.told.source) == (1, 2, 1, GROUPS)


def test_a_question_is_asked_again_until_there_is_an_owner() -> None:
    cluster, node = with_a_group()
    cluster.owners.pop(GROUPS).end()
    found = asked(node, CHAIN)
    cluster.wait(1_000)
    assert found == []
    cluster.take_over(GROUPS)
    cluster.wait(1_000)
    assert [type(shown) for shown in found] == [ChainShown]


def test_what_a_group_is_covers_all_that_was_durable_but_a_log_may_lag() -> None:
    cluster, node = with_a_group()
    cluster.log.sleeping = cluster.log.readers(GROUPS)
    node.say(PHONE, a_group_message(cluster))
    cluster.wait()
    chain, log = asked(node, CHAIN), asked(node, LOG)
    assert chain == []
    assert [shown.head for shown in log if isinstance(shown, LogShown)] == [0]
    cluster.log.sleeping = ()
    cluster.log.read()
    assert [shown.seq for shown in chain if isinstance(shown, ChainShown)] == [1]


def test_how_far_keys_have_come_is_told_only_after_the_shard_has_taken_what_the_group_told_it() -> None:
    cluster, node = with_a_group()
    cluster.log.sleeping = cluster.log.readers(BOBS)
    node.say(PHONE, a_key(), a_group_message(cluster))
    cluster.wait()
    (log,) = asked(node, LOG)
    assert isinstance(log, LogShown)
    assert log.head == 1, "the entry is there, its key is on its way"
    found: list[Mapping[int, int]] = []
    node.desk.high_heads((TABLET,), log.told, found.append)
    cluster.wait(1_000)
    assert found == []
    cluster.log.sleeping = ()
    cluster.log.read()
    cluster.wait()
    assert found == [{TABLET: 1}]
    offered: list[object] = []
    node.desk.offer(TABLET, Lane.HIGH, 0, 10, 1 << 20, lambda items, _more: offered.extend(items))
    assert len(offered) == 1


def test_a_key_that_was_heard_and_waits_for_its_rows_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, node = with_a_group()
    node.say(PHONE, a_key(), a_group_message(cluster))
    cluster.wait()
    (log,) = asked(node, LOG)
    assert isinstance(log, LogShown)
    found: list[Mapping[int, int]] = []
    with monkeypatch.context() as loading:
        loading.setattr(Loop, "folded_upto", 0)
        node.desk.high_heads((TABLET,), log.told, found.append)
        cluster.wait(1_000)
        assert found == []
    cluster.wait(1_000)
    assert found == [{TABLET: 1}]


def test_only_so_many_questions_wait_for_what_another_shard_has_told() -> None:
    cluster, node = with_a_group()
    cluster.log.sleeping = cluster.log.readers(BOBS)
    node.say(PHONE, a_key())
    cluster.wait()
    (log,) = asked(node, LOG)
    assert isinstance(log, LogShown)
    found: list[Mapping[int, int]] = []
    mailboxes = cluster.owners[BOBS].mailboxes
    assert mailboxes is not None
    for _ in range(fresh_reads.BEHIND_MAX + 5):
        mailboxes.high_heads((TABLET,), log.told, found.append)
    cluster.log.sleeping = ()
    cluster.log.read()
    assert len(found) == fresh_reads.BEHIND_MAX


def test_growth_reaches_the_nodes_and_is_prompted_after_a_takeover_while_somebody_attends() -> None:
    cluster, node = with_a_group()
    grew = ("grew", GROUP << DEVICE_BITS, Lane.NORMAL)
    node.say(PHONE, a_group_message(cluster))
    cluster.wait()
    assert grew in cluster.news.take()
    node.news.take()
    node.desk.attend_group(GROUP, here=True)
    node.desk.owner_changed(GROUPS)
    cluster.wait()
    assert grew in node.news.take()
    node.desk.attend_group(GROUP, here=False)
    node.desk.owner_changed(GROUPS)
    cluster.wait(60_000)
    assert grew not in node.news.take()
