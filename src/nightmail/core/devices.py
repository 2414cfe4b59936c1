"""Accounts, their devices, the list that senders seal for, and whom they do not want to hear from.

Knows:   one account at a time.
Touches: the account and the mailboxes of its devices.

Each of these is safe to repeat: a client that lost the answer asks again and gets the same one.
"""

from __future__ import annotations

from nightmail.model.answers import Done, Joined, Said
from nightmail.model.effects import Answer, Dismissed
from nightmail.model.ids import DEVICES_EVER, SERVER, account_of, device_id, index_of
from nightmail.model.records import (
    Blocked,
    Closed,
    HandleReleased,
    KnownForgotten,
    Linked,
    Listed,
    ReceiptsSet,
    Registered,
    Relabelled,
    Relisted,
    SchedulesEnded,
    Unlinked,
)
from nightmail.model.refusals import (
    HandleTaken,
    ListConflict,
    TooManyBlocked,
    TooManyDevices,
    TooManyLinked,
    UnknownDevice,
)
from nightmail.model.rows import Account, Device, FormerDevice, Kept, Mailbox, Need

from .expiry import end_mailbox
from .keys import end_keys
from .lock import try_lock
from .mailbox import needs_whole
from .rights import check_listed, check_rights, needs_account
from .rules import Steps
from .state import ShardState, missing_row

FORMER_FOLD = 8
"""Since this one an account remembers devices that were removed."""
FORMER_KEPT = 8
"""More than are removed while a request is on its way."""

# --- coming into being ------------------------------------------------------------------------


def needs_registered(state: ShardState, _by: int, new: Registered | Linked) -> list[Need]:
    """An account, and the mailbox and receipts of the device it would get."""
    number = new.account
    missing: list[Need] = []
    if not missing_row(state.accounts, Kept.ACCOUNT, number, missing):
        account = state.accounts[number]
        index = account.next_index if account else 1
        if index <= DEVICES_EVER:
            missing_row(state.mailboxes, Kept.MAILBOX, device_id(number, index), missing)
            missing_row(state.receipts, Kept.RECEIPTS, device_id(number, index), missing)
    return missing


def step_registered(state: ShardState, _by: int, via: int, new: Registered) -> None:
    """A new account, or one that its owner registers again. Its device is listed at once: others can seal for it."""
    account = state.accounts[new.account] or Account(new.handle)
    said: Said
    if account.handle != new.handle or _is_kept(state, account, new):
        said = HandleTaken(new.handle)
    elif before := _joined_before(account, new):
        said = before
    elif refusal := try_lock(state, account, new):
        said = refusal
    else:
        said = _begin(state, account, new)
    state.effects.append(Answer(via, said))


def _is_kept(state: ShardState, account: Account, new: Registered) -> bool:
    """The account was closed a short while ago, and nobody has verified that this is its owner."""
    return (
        account.closed_at > 0
        and state.now < account.closed_at + state.shard.limits.handle_kept_ms
        and (not new.verified)
    )


def _begin(state: ShardState, account: Account, new: Registered) -> Joined | TooManyDevices:
    """The device is the only one. Former devices end; the block list, the wishes and the lock are the person's."""
    former, listed, is_known = list(account.devices), account.listed, account.next_index > 1
    said = _join(state, account, new)
    if isinstance(said, TooManyDevices):
        return said
    if not former:
        account.read_receipts = True
    account.closed, account.signed_list = False, b""
    if state.shard.fold > 1:
        account.closed_at, account.claim = 0, new.claim or account.claim
    account.listed = {said.device: new.registration}
    account.list_version += 1
    state.derived.extend(Unlinked(device) for device in former)
    if state.knows_groups:
        _relist(state, new.account, account, listed, again=is_known)
    return Joined(said.device, account.list_version)


def step_linked(state: ShardState, by: int, via: int, new: Linked) -> None:
    """Another device. Nobody seals for it before a list names it."""
    account = state.accounts[new.account]
    said: Said | None = check_rights(by, account, new.account)
    if said is None:
        assert account is not None
        said = _joined_before(account, new) or _link(state, account, new)
    state.effects.append(Answer(via, said))


def _link(state: ShardState, account: Account, new: Linked) -> Joined | TooManyDevices | TooManyLinked:
    limit = state.shard.limits.devices
    return TooManyLinked(limit) if len(account.devices) >= limit else _join(state, account, new)


def _joined_before(account: Account, new: Registered | Linked) -> Joined | None:
    """The same token again is the same device, asking again; also if it was removed meanwhile, because a cluster may
    take a request twice, far apart: no device joins by a request that was answered before."""
    known: list[tuple[int, Device | FormerDevice]] = list(account.devices.items())
    if not account.closed:
        known += [(former.device, former) for former in account.former]
    for number, device in known:
        if device.token == new.token and device.registration == new.registration:
            return Joined(number, account.list_version)
    return None


def _join(state: ShardState, account: Account, new: Registered | Linked) -> Joined | TooManyDevices:
    if account.next_index > DEVICES_EVER:
        return TooManyDevices(DEVICES_EVER)
    number = device_id(new.account, account.next_index)
    account.next_index += 1
    account.devices[number] = Device(new.registration, new.token, new.label, new.platform)
    state.accounts.put(new.account, account, state.offset)
    state.mailboxes.put(number, Mailbox(), state.offset)
    return Joined(number, account.list_version)


# --- the device list --------------------------------------------------------------------------


def step_listed(state: ShardState, by: int, via: int, new: Listed) -> None:
    """The next list. Whom it no longer names is removed, and learns it at once."""
    account = state.accounts[new.account]
    said: Said | None = check_rights(by, account, new.account) or check_listed(state, by, account)
    if said is None:
        assert account is not None
        said = _list(state, account, new)
    state.effects.append(Answer(via, said))


def _list(state: ShardState, account: Account, new: Listed) -> Done | ListConflict:
    if (
        new.version == account.list_version
        and new.signed == account.signed_list
        and set(new.devices) == set(account.listed)
    ):
        return Done()  # The same list again.
    if new.version != account.list_version + 1 or not all(device in account.devices for device in new.devices):
        return ListConflict(account.list_version)
    before = account.listed
    gone = [device for device in before if device not in new.devices]
    account.listed = {device: account.devices[device].registration for device in new.devices}
    account.list_version, account.signed_list = new.version, new.signed
    state.accounts.put(new.account, account, state.offset)
    state.derived.extend(Unlinked(device) for device in gone)
    if state.knows_groups:
        _relist(state, new.account, account, before)
    return Done()


def _relist(
    state: ShardState, number: int, account: Account, before: dict[int, int], *, again: bool = False, ends: bool = False
) -> None:
    """Other devices are listed than `before`: the account's groups learn it. Likewise if it is registered `again`."""
    if account.listed.keys() == before.keys() and not ends:
        return
    account.revision += 1
    since = account.listed_since
    account.listed_since = {
        device: since.get(device, 0) if device in before else account.revision for device in account.listed
    }
    state.derived.append(Relisted(number, again))


# --- ending -----------------------------------------------------------------------------------


def needs_unlinked(state: ShardState, _by: int, unlinked: Unlinked) -> list[Need]:
    device = unlinked.device
    missing: list[Need] = []
    missing_row(state.accounts, Kept.ACCOUNT, account_of(device), missing)
    missing_row(state.receipts, Kept.RECEIPTS, device, missing)
    missing_row(state.keys, Kept.KEYS, device, missing)
    if state.knows_pushes:
        missing_row(state.pushes, Kept.PUSH, device, missing)
    needs_whole(state, device, missing)
    return missing


def step_unlinked(state: ShardState, by: int, via: int, unlinked: Unlinked) -> None:
    """A device is revoked: nothing waits for it any more, and everyone who waits for it is told."""
    device = unlinked.device
    number = account_of(device)
    account = state.accounts[number]
    said: Said | None = check_rights(by, account, number)
    if said is None and device != by:
        said = check_listed(state, by, account)
    if said is None:
        assert account is not None
        said = _unlink(state, account, device)
    if via:
        state.effects.append(Answer(via, said))


def _unlink(state: ShardState, account: Account, device: int) -> Said:
    if device not in account.devices:
        # A client that lost the answer asks again: the device is gone already.
        return Done() if index_of(device) < account.next_index else UnknownDevice(device)
    removed = account.devices.pop(device)
    if state.shard.fold >= FORMER_FOLD and not account.closed:
        account.former.append(FormerDevice(device, removed.registration, removed.token))
        del account.former[:-FORMER_KEPT]
    before = dict(account.listed)
    account.listed.pop(device, None)
    if state.knows_groups:
        _relist(state, account_of(device), account, before)
    state.accounts.put(account_of(device), account, state.offset)
    end_mailbox(state, device)
    end_keys(state, device)
    if state.knows_pushes and state.pushes[device] is not None:
        state.pushes.put(device, None, state.offset)
    state.effects.append(Dismissed(device))
    return Done()


def step_closed(state: ShardState, by: int, via: int, closed: Closed) -> None:
    """An account ends. The row stays: its handle may come back, its device numbers may not."""
    account = state.accounts[closed.account]
    said: Said | None = check_rights(by, account, closed.account) or check_listed(state, by, account)
    if by == SERVER and account is not None and account.closed:
        said = Done()  # Asked again.
    elif said is None:
        assert account is not None
        account.closed, before = True, account.listed
        account.listed = {}
        account.blocked.clear()
        account.lock = None
        if state.shard.fold > 1:
            account.closed_at = state.now
            until = state.now + state.shard.limits.handle_kept_ms
            if account.claim:
                state.tell(account.claim, HandleReleased(account.claim, closed.account, account.next_index, until))
        state.accounts.put(closed.account, account, state.offset)
        state.derived.extend(Unlinked(device) for device in account.devices)
        if state.counts_shares:
            state.derived.append(KnownForgotten(closed.account))
        if state.knows_groups:
            _relist(state, closed.account, account, before, ends=True)
        if state.knows_schedules:
            state.derived.append(SchedulesEnded(closed.account, 0))
        said = Done()
    state.effects.append(Answer(via, said))


# --- names ------------------------------------------------------------------------------------


def needs_relabelled(state: ShardState, _by: int, new: Relabelled) -> list[Need]:
    missing: list[Need] = []
    missing_row(state.accounts, Kept.ACCOUNT, account_of(new.device), missing)
    return missing


def step_relabelled(state: ShardState, by: int, via: int, new: Relabelled) -> None:
    number = account_of(new.device)
    account = state.accounts[number]
    said: Said | None = check_rights(by, account, number)
    if said is None:
        assert account is not None
        if device := account.devices.get(new.device):
            device.label = new.label
            state.accounts.put(number, account, state.offset)
            said = Done()
        else:
            said = UnknownDevice(new.device)
    state.effects.append(Answer(via, said))


# --- wishes -----------------------------------------------------------------------------------


def step_blocked(state: ShardState, by: int, via: int, wish: Blocked) -> None:
    state.effects.append(Answer(via, block(state, by, wish)))


def block(state: ShardState, by: int, wish: Blocked) -> Said:
    """Change the block list; returns the answer."""
    account = state.accounts[wish.account]
    said: Said | None = check_rights(by, account, wish.account)
    if said is None:
        assert account is not None
        limit = state.shard.limits.blocked_accounts
        if wish.on and len(account.blocked) >= limit and wish.peer not in account.blocked:
            said = TooManyBlocked(limit)
        else:
            if wish.on:
                account.blocked.setdefault(wish.peer, state.now)
            else:
                account.blocked.pop(wish.peer, None)
            state.accounts.put(wish.account, account, state.offset)
            said = Done()
    return said


def step_receipts_set(state: ShardState, by: int, via: int, wish: ReceiptsSet) -> None:
    account = state.accounts[wish.account]
    said: Said | None = check_rights(by, account, wish.account)
    if said is None:
        assert account is not None
        account.read_receipts = wish.on
        state.accounts.put(wish.account, account, state.offset)
        said = Done()
    state.effects.append(Answer(via, said))


STEPS: Steps = {
    1: {
        Registered: (needs_registered, step_registered),
        Linked: (needs_registered, step_linked),
        Listed: (needs_account, step_listed),
        Unlinked: (needs_unlinked, step_unlinked),
        Closed: (needs_account, step_closed),
        Blocked: (needs_account, step_blocked),
        ReceiptsSet: (needs_account, step_receipts_set),
        Relabelled: (needs_relabelled, step_relabelled),
    }
}
