# pyright: reportPrivateUsage=false
"""Bugs in accounts and devices, and in which fold a shard goes by."""

# pyright: basic
# A planted bug is wrong on purpose, in types as well.

from __future__ import annotations

from nightmail.core import devices, lock
from nightmail.core.rules import Step
from nightmail.core.state import ShardState
from nightmail.model.ids import account_of, index_of
from nightmail.model.records import Copied, FoldRaised, Receipted, Registered, Unlinked

from .tools import Bug, Focus, edit, in_step, swap, untold


def _numbers_come_back(step: Step) -> Step:
    """The next device gets the number of one that is no more."""

    def wrong(state: ShardState, by: int, via: int, unlinked: Unlinked) -> None:
        step(state, by, via, unlinked)
        account = state.accounts[account_of(unlinked.device)]
        if account is not None and unlinked.device not in account.devices:
            account.next_index = 1 + max(map(index_of, account.devices), default=0)

    return wrong


def _goes_on(step: Step) -> Step:
    """A fold that this program does not know is ignored."""

    def wrong(state: ShardState, by: int, via: int, raised: FoldRaised) -> None:
        if raised.version <= state.newest_fold:
            step(state, by, via, raised)

    return wrong


def _former_stay(step: Step) -> Step:
    """A person who takes an account over shares it with the former devices."""

    def wrong(state: ShardState, by: int, via: int, new: Registered) -> None:
        step(state, by, via, new)
        state.derived.clear()

    return wrong


def _is_receipt(said: Copied | Receipted) -> bool:
    return isinstance(said, Receipted)


BUGS = (
    Bug("a device is removed and its senders are not told", untold(Unlinked, _is_receipt), ("cluster", "node")),
    Bug("device numbers are used again", in_step(Unlinked, _numbers_come_back), ("node", "cluster"), seconds=15),
    Bug("who asks twice joins twice",
        lambda: swap(devices._joined_before, lambda _account, _new: None), ("cluster", "node")),
    Bug("a device that was removed joins again by a request that comes late",
        edit(devices._joined_before, "if not account.closed:", "if False:"), ("cluster",),
        seconds=8, focus=Focus({"link": 40, "remove": 40, "write": 20}, ("takeovers", "store", "log", "links"))),
    Bug("a takeover leaves the former devices in place", in_step(Registered, _former_stay), ("node", "cluster"),
        seconds=15),
    Bug("wrong PINs are not counted",
        edit(lock.try_lock, "0 if right else lock.wrong + 1", "0"), ("node", "cluster"),
        focus=Focus({"guess": 10})),
    Bug("an old fold goes on past FoldRaised", in_step(FoldRaised, _goes_on), ("cluster",)),
)  # fmt: skip
