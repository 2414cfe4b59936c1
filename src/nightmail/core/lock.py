"""The registration lock: who may take over a handle that is somebody's.

Knows:   one account at a time; whether the operator has verified who asks, and the digest of the PIN they gave.
Touches: the account.

Wrong PINs are counted here, because only the log survives a restart and is asked by every node.
"""

from __future__ import annotations

from nightmail.model.answers import Done, Said
from nightmail.model.effects import Answer
from nightmail.model.records import PinSet, Registered
from nightmail.model.refusals import AnyRefusal, HandleTaken, PinLocked, PinNeeded, PinWrong
from nightmail.model.rows import Account, Lock

from .rights import check_rights, needs_account
from .rules import Steps
from .state import ShardState


def step_pin_set(state: ShardState, by: int, via: int, new: PinSet) -> None:
    """A lock, another one, or none. What was counted against the one before is forgotten."""
    account = state.accounts[new.account]
    said: Said | None = check_rights(by, account, new.account)
    if said is None:
        assert account is not None
        account.lock = Lock(new.salt, new.digest) if new.digest else None
        state.accounts.put(new.account, account, state.offset)
        said = Done()
    state.effects.append(Answer(via, said))


def try_lock(state: ShardState, account: Account, new: Registered) -> AnyRefusal | None:
    """Why this handle is not to be had; None if it is. A wrong PIN counts.

    A handle with devices goes to a person who is verified, or who knows the PIN if there is a lock. With a lock,
    being verified is not enough: numbers are stolen.
    """
    lock = account.lock
    if lock is None:
        return HandleTaken(new.handle) if account.devices and not new.verified else None
    if not new.pin:
        # A stranger learns nothing of the lock, only that the name is taken.
        return HandleTaken(new.handle) if account.devices and not new.verified else PinNeeded(new.handle)
    if lock.until > state.now:
        most = state.shard.limits.pin_lock_ms
        if state.shard.set_backs and lock.until > state.now + most:
            # A wrong clock said when it opens again.
            lock.until = state.now + most
            state.accounts.put(new.account, account, state.offset)
        return PinLocked(lock.until - state.now)
    right = new.pin == lock.digest  # Of digests with a pepper: how long it takes tells nobody anything.
    lock.wrong = 0 if right else lock.wrong + 1
    lock.until = 0
    limits = state.shard.limits
    if lock.wrong >= limits.pin_tries:
        lock.wrong, lock.until = 0, state.now + limits.pin_lock_ms
    state.accounts.put(new.account, account, state.offset)
    if right:
        return None
    return PinLocked(limits.pin_lock_ms) if lock.until else PinWrong(limits.pin_tries - lock.wrong)


STEPS: Steps = {1: {PinSet: (needs_account, step_pin_set)}}
