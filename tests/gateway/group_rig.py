"""A town of the fold that knows groups, with one group: Ada made it, and Ben is in it."""

from __future__ import annotations

from collections.abc import Callable

from nightmail.core.state import NEWEST_FOLD
from nightmail.engine.ports import Desk
from nightmail.gateway.group_limits import GroupLimits
from nightmail.gateway.limits import GatewayLimits
from nightmail.gateway.presence_limits import PresenceLimits
from nightmail.model.group_chain import NO_HEAD, head_of
from nightmail.model.ids import SERVER, account_id, account_of, device_id
from nightmail.model.limits import FoldLimits
from nightmail.model.records import (
    Envelope,
    FoldRaised,
    GroupChanged,
    GroupMade,
    GroupSealed,
    GroupSent,
    LimitsSet,
)
from nightmail.model.roster import ACCOUNT_KEY_BYTES, Addition, Creation, GroupChange, GroupSettings, NewMember, Removal
from nightmail.model.words import Kind, Lane
from nightmail.wire.items import FromServer, GroupLog, LogGap
from sim.judges.strict import StrictState
from tests.core.group_world import blob_of
from tests.engine.rig import START
from tests.gateway.rig import ADA, BEN, PHONE, TABLET, Town

GROUP = 0x1234_5678
CAROL, EVE = account_id("carol"), account_id("eve")
CAROLS, EVES = device_id(CAROL, 1), device_id(EVE, 1)
ON_WRITE = FoldLimits()
HYBRID = FoldLimits(group_write_members=1)
READ = FoldLimits(group_write_members=1, group_read_members=1)


def key_of(account: int) -> bytes:
    return account.to_bytes(8, "big").ljust(ACCOUNT_KEY_BYTES, b".")


def named(*accounts: int) -> tuple[NewMember, ...]:
    return tuple(NewMember(account, key_of(account)) for account in sorted(accounts))


class GroupTown(Town):
    def __init__(
        self, fold: FoldLimits = HYBRID, groups: GroupLimits | None = None, limits: GatewayLimits | None = None,
        wrap: Callable[[Desk], Desk] = lambda desk: desk, presence: PresenceLimits | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            limits, new_state=lambda: StrictState(0, 1, NEWEST_FOLD), groups=groups, wrap=wrap, presence=presence
        )
        self.fold(SERVER, FoldRaised(NEWEST_FOLD), LimitsSet(fold))
        self.register("ada", "ben", "carol", "eve")
        self.heads: dict[int, bytes] = {}
        self._numbers: dict[tuple[int, int, Lane], int] = {}

    def make(self, *others: int, group: int = GROUP, settings: GroupSettings | None = None) -> None:
        blob = blob_of(group, NO_HEAD, PHONE, Creation(settings or GroupSettings(), named(ADA, *others)), None)
        self.fold(PHONE, GroupMade(group, blob))
        self.heads[group] = head_of(blob)

    def change(self, change: GroupChange, group: int = GROUP) -> None:
        blob = blob_of(group, self.heads[group], PHONE, change, None)
        self.fold(PHONE, GroupChanged(group, blob))
        self.heads[group] = head_of(blob)

    def add(self, *accounts: int) -> None:
        self.change(Addition(named(*accounts)))

    def remove(self, *accounts: int) -> None:
        self.change(Removal(tuple(sorted(accounts))))

    @property
    def epoch(self) -> int:
        row = self.loop.state.groups[GROUP]
        assert row is not None
        return row.epoch

    def _next(self, by: int, group: int, lane: Lane) -> tuple[int, str]:
        n = self._numbers[by, group, lane] = self._numbers.get((by, group, lane), 0) + 1
        return n, f"{by:x}:{START}:{n:05d}:g{lane}"

    def say_in_group(self, text: str, *, by: int = PHONE, group: int = GROUP, lane: Lane = Lane.NORMAL) -> None:
        """Past the gateway."""
        n, id_ = self._next(by, group, lane)
        row = self.loop.state.groups[group]
        assert row is not None
        self.fold(by, GroupSent(
            group, lane, n, 1, 0, id_, bytes(16), Kind.TEXT, row.epoch, row.head, 0, text.encode()
        ))  # fmt: skip

    def hand_key(self, *devices: int, by: int = PHONE) -> None:
        n, id_ = self._next(by, GROUP, Lane.HIGH)
        envelopes = tuple(Envelope(device, 7, b"key") for device in devices)
        self.fold(by, GroupSealed(
            GROUP, Lane.HIGH, n, 1, 0, id_, bytes(16), Kind.CONTROL, self.epoch, None, 0, 0, envelopes
        ))  # fmt: skip


def a_group_town(fold: FoldLimits = HYBRID, groups: GroupLimits | None = None) -> GroupTown:
    town = GroupTown(fold, groups)
    town.make(BEN)
    return town


def logs(items: list[FromServer]) -> list[GroupLog]:
    return [item for item in items if isinstance(item, GroupLog)]


def in_short(log: GroupLog) -> tuple[object, ...]:
    """(ref, after, what it brings, head)."""
    found: list[str] = []
    for part in log.items:
        if isinstance(part, LogGap):
            found.append(f"gap {part.low}-{part.high} {part.reason.name.lower()}")
        else:
            found += [entry.ciphertext.decode() if entry.by else "notice" for entry in part.entries]
    return log.ref, log.after, found, log.head


__all__ = [
    "ADA", "BEN", "CAROL", "CAROLS", "EVE", "EVES", "GROUP", "HYBRID", "ON_WRITE", "PHONE", "READ", "TABLET",
    "GroupTown", "a_group_town", "account_of", "in_short", "key_of", "logs",
]  # fmt: skip
