"""A small cluster of the fold that knows groups: Alice made one, and Bob is in it, each on a shard of its own."""

from __future__ import annotations

from nightmail.core.state import NEWEST_FOLD
from nightmail.model.group_chain import NO_HEAD, head_of
from nightmail.model.group_questions import GroupAnswer, GroupQuestion
from nightmail.model.ids import SERVER
from nightmail.model.limits import FoldLimits
from nightmail.model.records import Envelope, GroupMade, GroupSealed, GroupSent, LimitsSet, Record
from nightmail.model.roster import ACCOUNT_KEY_BYTES, Creation, GroupSettings, NewMember
from nightmail.model.words import Kind, Lane
from tests.core.group_world import blob_of
from tests.engine.cluster.rig import BOBS, PHONES, SHARDS, Node, SmallCluster, home
from tests.engine.rig import ALICE, BOB, PHONE, START, TABLET, a_person

GROUP = next(number for number in range(0x1000, 0x2000, 2) if home(number) not in (BOBS, PHONES))
GROUPS = home(GROUP)
"""The shard that decides about the group."""


def with_a_group() -> tuple[SmallCluster, Node]:
    """The group stores its entries in its log."""
    cluster = SmallCluster()
    cluster.known_fold = NEWEST_FOLD
    cluster.announced.append(NEWEST_FOLD)
    for shard in range(SHARDS):
        cluster.take_over(shard, NEWEST_FOLD)
    cluster.wait(1_000)
    node = cluster.node(1)
    for shard in range(SHARDS):
        node.desk.submit_to(shard, Record(SERVER, 0, LimitsSet(FoldLimits(group_write_members=1))))
    node.say(PHONE, a_person("alice"))
    node.say(TABLET, a_person("bob"))
    cluster.wait()
    members = tuple(NewMember(account, b"k" * ACCOUNT_KEY_BYTES) for account in sorted((ALICE, BOB)))
    node.say(PHONE, GroupMade(GROUP, blob_of(GROUP, NO_HEAD, PHONE, Creation(GroupSettings(), members), None)))
    for _ in range(5):
        cluster.wait()
    node.answers.clear()
    cluster.news.take()
    return cluster, node


def head() -> bytes:
    members = tuple(NewMember(account, b"k" * ACCOUNT_KEY_BYTES) for account in sorted((ALICE, BOB)))
    return head_of(blob_of(GROUP, NO_HEAD, PHONE, Creation(GroupSettings(), members), None))


def epoch_of(cluster: SmallCluster) -> int:
    loop = cluster.owners[GROUPS].loop
    assert loop is not None
    row = loop.state.groups[GROUP]
    assert row is not None
    return row.epoch


def a_group_message(cluster: SmallCluster, n: int = 1, text: bytes = b"hello") -> GroupSent:
    id_ = f"{PHONE:x}:{START}:{n:05d}:x0"
    return GroupSent(
        GROUP, Lane.NORMAL, n, 1, 0, id_, bytes(16), Kind.TEXT, epoch_of(cluster), head(), 0, text
    )  # fmt: skip


def a_key(n: int = 1) -> GroupSealed:
    id_ = f"{PHONE:x}:{START}:{n:05d}:x1"
    envelopes = (Envelope(TABLET, 101, b"key"),)
    return GroupSealed(GROUP, Lane.HIGH, n, 1, 0, id_, bytes(16), Kind.CONTROL, 1, None, 0, 0, envelopes)


def asked(node: Node, question: GroupQuestion) -> list[GroupAnswer]:
    """What was answered so far can be seen in the list."""
    found: list[GroupAnswer] = []
    node.desk.about_group(question, found.append)
    return found
