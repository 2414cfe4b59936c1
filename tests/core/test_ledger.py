"""Every copy is accounted for: whatever becomes of it is counted once, and what is lost shows."""

from __future__ import annotations

import pytest

from nightmail.model.ledger import CopyLedger
from nightmail.model.records import Acked, Blocked, Discarded, FoldRaised, Record, Replayed, Unlinked
from nightmail.model.words import Lane, Reason
from sim.judges.strict import strictly
from sim.planted import loss
from sim.planted.tools import Bug
from tests.core.schedule_world import ScheduleWorld
from tests.core.world import World

NORMAL = Lane.NORMAL
DAY_MS = 24 * 3_600_000


@pytest.fixture(autouse=True)
def _strict() -> None:  # pyright: ignore[reportUnusedFunction]
    """Not here: a bug is planted in the steps themselves, before they are watched."""


def live(town: ScheduleWorld) -> None:
    """A life in which copies end in every way."""
    ada, bob, cleo = town.join("ada", 2), town.join("bob", 2), town.join("cleo")
    town.limit(mailbox_entries=3, stranger_parts=1, share_parts=1)
    for n in (1, 2, 3):
        town.send(ada[1], bob, n)
    town.send(ada[1], bob, 3)
    town.do(bob[1], Acked(NORMAL, 3, (2,)))
    # One of bob's devices is full by now, and so is ada's other one.
    town.send(ada[1], bob, 4)
    town.schedule(ada[1], bob, 60_000)
    town.wait(60_000)
    town.send(cleo[1], ada)
    town.do(ada[1], Blocked(ada.account, cleo.account, True))
    town.send(cleo[1], ada, 2)
    town.make(cleo[1], cleo, ada, bob)
    town.write(cleo[1])
    town.do(cleo[1], town.group_sealed(cleo[1], 1, bob[1], 7 << 12 | 1))
    for n, end in ((3, Replayed), (4, Discarded)):
        offset, _ = town.bury(cleo[1], bob, town.sent(cleo[1], bob, n - 2))
        town.command(bob, end(offset))
    town.bury(cleo[1], bob, town.sent(cleo[1], bob, 3))
    town.do(ada[1], Unlinked(ada[2]))
    town.wait(31 * DAY_MS)


def test_each_way_that_a_copy_can_end_is_counted(world: World) -> None:
    with strictly():
        town = ScheduleWorld(world.shards, world.memory)
        live(town)
    ledger = town.ledger()
    assert set(ledger.failed) == {
        Reason.MAILBOX_FULL, Reason.EXPIRED, Reason.DEVICE_REMOVED, Reason.UNDECRYPTABLE,
    }  # fmt: skip
    assert (ledger.lost, ledger.waiting, ledger.buried, ledger.repeated) == (0, 0, 0, 1)
    assert ledger.owed == ledger.delivered + sum(ledger.failed.values()) + ledger.withheld
    assert (ledger.delivered, ledger.withheld) == (2, 3)


@pytest.mark.parametrize("bug", loss.BUGS, ids=lambda bug: bug.name)
def test_what_is_lost_shows_in_the_ledger_alone(bug: Bug) -> None:
    with bug.plant(), strictly():
        town = ScheduleWorld()
        live(town)
    assert town.ledger().lost > 0


def test_what_an_older_fold_has_filed_is_even_when_it_ends() -> None:
    town = World(fold=5)
    ada, bob = town.join("ada"), town.join("bob")
    town.send(ada[1], bob)
    node = town.of(bob.account)
    node.newest_fold = node.state.newest_fold = 6
    town.fold(node, Record(0, 0, FoldRaised(6)))
    town.send(ada[1], bob, 2)
    assert (node.state.ledger, node.state.ledger.lost) == (CopyLedger(owed=1, waiting=1), 0)
    town.do(bob[1], Acked(NORMAL, 2))
    assert (node.state.ledger, node.state.ledger.lost) == (CopyLedger(owed=1, delivered=2, waiting=-1), 0)
