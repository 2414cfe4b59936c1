"""Keys that devices publish, and that senders claim before their first message: each one-time key once.

Knows:   one device's keys, and who claimed which recently.
Touches: that row, the mark in its account, and the shard's two counts.
Never:   reads a key: only its length and its id are looked at, and those before it is logged.

A claim is a record, so *never twice* is the log's own order. The row remembers the last claims:
a sender that lost the answer asks again under the same number, and gets the same keys.
"""

from __future__ import annotations

from collections.abc import Callable

from nightmail.model.answers import Bundle, Said, Stocked
from nightmail.model.effects import Answer, Low
from nightmail.model.forms import kem_id, key_id
from nightmail.model.ids import DEVICE_BITS, account_of
from nightmail.model.records import Claimed, FellowClaimed, KeysAsked, Published
from nightmail.model.refusals import IdentityFixed, NoKeys, NotMember, RateLimited, UnknownDevice
from nightmail.model.rows import Account, Claim, Kept, Keys, Need

from .rules import Steps
from .state import ShardState, missing_row

MINUTE_MS = 60_000
FELLOW_ONE_TIME = 4
"""Claims of a device by one account within a day: what it claims beyond that as a fellow member has no one-time key."""

# --- publishing -------------------------------------------------------------------------------


def needs_published(state: ShardState, by: int, _new: Published) -> list[Need]:
    return _needs_keys(state, by)


def step_published(state: ShardState, by: int, via: int, new: Published) -> None:
    """Add what is new to a device's stock. An identity stays what it was."""
    account = state.accounts[account_of(by)]
    said: Said
    if account is None or by not in account.devices:
        said = UnknownDevice(by)
    else:
        keys = state.keys[by]
        mine = account.devices[by].registration
        if new.registration != mine or (keys is not None and keys.identity != new.identity):
            said = IdentityFixed()
        else:
            said = _publish(state, account, by, keys, new)
    state.effects.append(Answer(via, said))


def _publish(state: ShardState, account: Account, by: int, keys: Keys | None, new: Published) -> Stocked:
    if keys is None:
        keys = Keys(new.registration, new.identity, new.signed, new.last_resort)
    # A late repeat of an earlier upload must not bring a prekey back that its device has replaced.
    if key_id(new.signed) >= key_id(keys.signed):
        keys.signed = new.signed
    if kem_id(new.last_resort) >= kem_id(keys.last_resort):
        keys.last_resort = new.last_resort
    limits = state.shard.limits
    keys.highest = _add(keys.one_time, new.one_time, key_id, keys.highest, limits.stock_one_time)
    keys.highest_kem = _add(keys.one_time_kem, new.one_time_kem, kem_id, keys.highest_kem, limits.stock_kem)
    state.keys.put(by, keys, state.offset)
    _mark(state, account, by, keys)
    return Stocked(len(keys.one_time), len(keys.one_time_kem))


def _add(stock: list[bytes], new: tuple[bytes, ...], id_of: Callable[[bytes], int], highest: int, most: int) -> int:
    """Take in what lies above the highest id so far; returns the highest then. Of too many the oldest go."""
    stock += (key for key in new if id_of(key) > highest)
    if len(stock) > most:
        del stock[: -most or None]
    return max(highest, id_of(new[-1])) if new else highest


# --- claiming ---------------------------------------------------------------------------------


def needs_claimed(state: ShardState, _by: int, claimed: Claimed) -> list[Need]:
    return _needs_keys(state, claimed.device)


def step_claimed(state: ShardState, by: int, via: int, claimed: Claimed) -> None:
    state.effects.append(Answer(via, _claim(state, by, claimed)))


def needs_fellow_claimed(state: ShardState, _by: int, claimed: FellowClaimed) -> list[Need]:
    missing = _needs_keys(state, claimed.device)
    missing_row(state.account_groups, Kept.ACCOUNT_GROUPS, account_of(claimed.device), missing)
    return missing


def step_fellow_claimed(state: ShardState, by: int, via: int, claimed: FellowClaimed) -> None:
    """Likewise, if the device's account is in the group. That the claimer is in it was checked at the door."""
    groups = state.account_groups[account_of(claimed.device)]
    is_fellow = groups is not None and claimed.group in groups.groups
    state.effects.append(Answer(via, _claim(state, by, claimed) if is_fellow else NotMember(claimed.group)))


def needs_keys_asked(state: ShardState, _by: int, asked: KeysAsked) -> list[Need]:
    return _needs_keys(state, asked.device)


def step_keys_asked(state: ShardState, _by: int, via: int, asked: KeysAsked) -> None:
    """Show the keys that everybody gets. Nothing is taken, so nothing is remembered."""
    device = asked.device
    account = state.accounts[account_of(device)]
    if account is None or device not in account.devices:
        state.effects.append(Answer(via, UnknownDevice(device)))
        return
    keys = state.keys[device]
    shown = NoKeys(device) if keys is None else _bundle(device, keys, Claim(state.elapsed, None, None))
    state.effects.append(Answer(via, shown))


def _claim(state: ShardState, by: int, claimed: Claimed | FellowClaimed) -> Said:
    """Hand out the oldest key of each kind, or what was handed out to the same request before."""
    device, limits = claimed.device, state.shard.limits
    account = state.accounts[account_of(device)]
    if account is None or device not in account.devices:
        return UnknownDevice(device)
    keys = state.keys[device]
    if keys is None:
        return NoKeys(device)
    claim = keys.claims.get((by, claimed.request))
    if claim is not None and claim.at > state.elapsed - limits.claims_kept_ms:
        return _bundle(device, keys, claim)
    if wait_ms := _wait_ms(state, keys, by):
        return RateLimited(wait_ms)
    if isinstance(claimed, FellowClaimed):
        # Anybody can be added to a group by a stranger: that must not be a way to empty a stock.
        since = state.elapsed - limits.claims_kept_ms
        if len(_claims_of(keys, by, since)) >= FELLOW_ONE_TIME:
            return _bundle(device, keys, Claim(state.elapsed, None, None))
    return _bundle(device, keys, _take(state, account, device, keys, (by, claimed.request)))


def _wait_ms(state: ShardState, keys: Keys, by: int) -> int:
    """How long until this account may claim another key of the device; 0: it may now."""
    since, most = state.elapsed - MINUTE_MS, state.shard.limits.claims_per_minute
    mine = _claims_of(keys, by, since)
    return mine[-most] - since if len(mine) >= most else 0


def _claims_of(keys: Keys, by: int, since: int) -> list[int]:
    """When the claimer's account has claimed keys of the device since then."""
    account = by >> DEVICE_BITS
    return [claim.at for (who, _), claim in keys.claims.items() if claim.at > since and who >> DEVICE_BITS == account]


def _take(state: ShardState, account: Account, device: int, keys: Keys, key: tuple[int, int]) -> Claim:
    limits, claims = state.shard.limits, keys.claims
    claim = Claim(
        state.elapsed,
        keys.one_time.pop(0) if keys.one_time else None,
        keys.one_time_kem.pop(0) if keys.one_time_kem else None,
    )
    claims.pop(key, None)  # One that is too old to be answered again.
    claims[key] = claim
    while claims and (
        len(claims) > limits.claims_kept or claims[next(iter(claims))].at <= state.elapsed - limits.claims_kept_ms
    ):
        del claims[next(iter(claims))]
    state.keys.put(device, keys, state.offset)
    _mark(state, account, device, keys)
    return claim


def _bundle(device: int, keys: Keys, claim: Claim) -> Bundle:
    """The one-time keys are those of the claim; the others are the present ones, which the device still has."""
    kem = claim.kem if claim.kem is not None else keys.last_resort
    return Bundle(device, keys.registration, keys.identity, keys.signed, kem, claim.one_time)


# --- how much is left -------------------------------------------------------------------------


def _mark(state: ShardState, account: Account, device: int, keys: Keys) -> None:
    """Keep the marks and the counts true, and say so when the stock has just become low."""
    shard, limits = state.shard, state.shard.limits
    low = len(keys.one_time) < limits.low_one_time or len(keys.one_time_kem) < limits.low_kem
    exhausted = not keys.one_time or not keys.one_time_kem
    shard.low += low - keys.low
    shard.exhausted += exhausted - keys.exhausted
    keys.low, keys.exhausted = low, exhausted
    if low != account.devices[device].low:
        account.devices[device].low = low
        state.accounts.put(account_of(device), account, state.offset)
        if low:
            state.effects.append(Low(device))


def end_keys(state: ShardState, device: int) -> None:
    """The device is no more: nobody can write to it first."""
    if (keys := state.keys[device]) is not None:
        state.shard.low -= keys.low
        state.shard.exhausted -= keys.exhausted
        state.keys.put(device, None, state.offset)


def _needs_keys(state: ShardState, device: int) -> list[Need]:
    """The account; then the keys, if it has such a device: a heavy row is not looked for in vain."""
    missing: list[Need] = []
    if not missing_row(state.accounts, Kept.ACCOUNT, account_of(device), missing):
        account = state.accounts[account_of(device)]
        if account is not None and device in account.devices:
            missing_row(state.keys, Kept.KEYS, device, missing)
    return missing


STEPS: Steps = {
    1: {Published: (needs_published, step_published), Claimed: (needs_claimed, step_claimed)},
    4: {FellowClaimed: (needs_fellow_claimed, step_fellow_claimed)},
    5: {KeysAsked: (needs_keys_asked, step_keys_asked)},
}
