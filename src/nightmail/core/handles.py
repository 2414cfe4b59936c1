"""Which handle has a look: two handles that look alike never belong to two accounts.

Knows:   the claims of this shard. A claim's number is a hash of what a handle looks like (`api/skeletons.py`); the
         account itself mostly lives on another shard.
Touches: the row of the claim.

A handle is claimed before its account is registered. If the server crashes in between, the claim stays, and the same
handle takes it again. A closed account releases its claim, and the handle stays its own for a while. The release may
arrive after the next claim of the same account: `index` tells which of them came first.
"""

from __future__ import annotations

from nightmail.model.answers import Done, Said
from nightmail.model.effects import Answer
from nightmail.model.records import HandleClaimed, HandleReleased
from nightmail.model.refusals import HandleConfusable
from nightmail.model.rows import HandleClaim, Kept, Need

from .rules import Steps
from .state import ShardState, missing_row


def needs_claim(state: ShardState, _by: int, body: HandleClaimed | HandleReleased) -> list[Need]:
    missing: list[Need] = []
    missing_row(state.handles, Kept.HANDLE, body.number, missing)
    return missing


def step_handle_claimed(state: ShardState, _by: int, via: int, new: HandleClaimed) -> None:
    claim = state.handles[new.number]
    said: Said
    if claim is not None and claim.handle != new.handle and not 0 < claim.until <= state.now:
        said = HandleConfusable(new.handle)
    else:
        state.handles.put(new.number, HandleClaim(new.handle, new.account, state.now, new.index), state.offset)
        said = Done()
    state.effects.append(Answer(via, said))


def step_handle_released(state: ShardState, _by: int, _via: int, released: HandleReleased) -> None:
    claim = state.handles[released.number]
    if claim is not None and claim.account == released.account and released.index > claim.index:
        claim.until = released.until
        state.handles.put(released.number, claim, state.offset)


STEPS: Steps = {
    2: {
        HandleClaimed: (needs_claim, step_handle_claimed),
        HandleReleased: (needs_claim, step_handle_released),
    }
}
