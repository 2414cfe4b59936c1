"""At the end of every world: what the servers took on is accounted for, to the last copy.

Knows:   each shard's ledger, and the mailboxes of everybody who was ever there.
Touches: the shards' states, by questions that change nothing.

A device may not notice that something never came, and an author may not miss a receipt; the ledger does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nightmail.core.state import PUSH_FOLD, ShardState
from nightmail.engine.loop import Loop
from nightmail.engine.ports import Stored
from nightmail.model.ids import account_of, log_of, shard_of
from nightmail.model.ledger import CopyLedger
from nightmail.model.records import AnyBody, FoldRaised, GroupMade, GroupSent, Sent, decode_record
from nightmail.model.rows import Kept, RowKey
from sim.world.world import Broken, World

ASKED = 50
"""Times that a shard is asked for its mailboxes: it may have to read them first."""


def check_loss(world: World, loops: Sequence[Loop], devices: Iterable[int], batches: Iterable[Stored]) -> None:
    """After everything has settled. `batches` are those of all logs. A fold before 6 counts nothing."""
    if any(loop.state.shard.fold < PUSH_FOLD for loop in loops):
        return
    bodies = [decode_record(data).body for batch in batches for data in batch.records]
    groups = {body.group for body in bodies if isinstance(body, GroupMade)}
    everybody, is_whole = [*devices, *map(log_of, groups)], _is_whole(bodies)
    ledgers = [_ledger(world, loop, everybody, is_whole=is_whole) for loop in loops]
    carried = sum(ledger.carried for ledger in ledgers)
    if carried:
        raise Broken("nothing is lost", f"{carried} copies were handed on, and nobody has taken them")
    world.hit("loss reckoned")


def _ledger(world: World, loop: Loop, devices: list[int], *, is_whole: bool) -> CopyLedger:
    """A shard's ledger, reckoned; if it is whole, compared with what waits."""
    ledger, index = loop.state.ledger, loop.state.index
    lost = ledger.lost - ledger.carried
    if lost:
        raise Broken("nothing is lost", f"shard {index} cannot account for {lost} copies: {ledger}")
    waiting = _waiting(world, loop, devices)
    if waiting != ledger.waiting and is_whole:
        raise Broken("nothing is lost", f"in shard {index} {ledger.waiting} entries should wait, and {waiting} do")
    return ledger


def _is_whole(bodies: Iterable[AnyBody]) -> bool:
    """Whether nothing was filed by an older fold: when that ends, less waits than was ever counted."""
    for body in bodies:
        if isinstance(body, FoldRaised) and body.version >= PUSH_FOLD:
            return True
        if isinstance(body, Sent | GroupSent):
            return False
    return True


def _waiting(world: World, loop: Loop, devices: list[int]) -> int:
    """How many entries wait by what the mailboxes say."""
    found: list[int] = []

    def boxes(state: ShardState) -> set[int]:
        return {device for device in devices if shard_of(account_of(device), state.shards) == state.index}

    def count(state: ShardState) -> None:
        rows = state.mailboxes.rows
        found.append(sum(box.waiting for device in boxes(state) | rows.keys() if (box := rows[device])))

    for _ in range(ASKED):
        loop.read(
            lambda state: [RowKey(Kept.MAILBOX, each) for each in boxes(state) if each not in state.mailboxes.rows],
            count,
        )
        if found:
            return found[0]
        world.run_until(world.now + 200)
    raise Broken("questions are answered", f"shard {loop.state.index} does not say what waits")
