"""Questions about groups, for all connections of one node; and what each connection still has to be told.

Knows:   the questions of each connection that are not answered, and what waits for keys.
Touches: the desk, to ask; the list of items that goes out next; sessions by what `GroupSession` names.
Never:   decides who may know what: the group's shard does. Never exists for a connection that asks nothing.

Entries of a log may need keys that lie in the device's high lane. So they leave only after that lane was handed out up
to its head, as it was when the device's shard had taken all that the group's shard had told it before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Protocol

from nightmail.model.forms import NUMBER_MAX
from nightmail.model.group_chain import is_group
from nightmail.model.group_questions import (
    ChainAsked,
    ChainShown,
    GroupAnswer,
    GroupQuestion,
    LogAsked,
    LogRun,
    LogShown,
    MembersAsked,
    MembersShown,
    ReceiptsAsked,
    ReceiptsShown,
)
from nightmail.model.ids import DEVICE_BITS
from nightmail.model.refusals import Malformed, NotMember, RateLimited, UnknownGroup
from nightmail.model.refusals.refusal import Refusal
from nightmail.model.words import Lane
from nightmail.wire.items import (
    REF_MAX,
    AboutGroups,
    Answered,
    FromServer,
    GroupChain,
    GroupLog,
    GroupLook,
    GroupMembers,
    GroupSeenBy,
    LogFetch,
    MembersLook,
    ReceiptsLook,
)

from .attended import AttendedGroups
from .group_limits import GroupLimits
from .ports import Shared
from .rates import Shares

COUNTED = 10_000
"""Accounts whose questions are counted: as in `budgets.py`."""
ASKED_AT_ONCE = 4
"""Questions of one connection that are put to the desk at a time: each answer may be as long as a frame."""
MEMBER_OF = 64
"""Groups that are remembered of one connection as its device's own."""
CHAIN_BLOBS = 64
MEMBERS_PAGE = 256
RECEIPT_NUMBERS = 64
RECEIPT_STATES = 8_192
"""Accounts and states in one answer, roughly; the first number is answered whole."""


class GroupSession(Protocol):
    """A connection, as far as groups are concerned."""

    out: list[FromServer]

    @property
    def device(self) -> int: ...

    @property
    def handed_high(self) -> int:
        """How far the device was handed its high lane."""
        ...

    def tell(self, item: FromServer) -> None:
        """Send an item at the end of this turn, unless the connection has ended."""
        ...

    def grew(self, lane: int) -> None:
        """There may be something new in a lane."""
        ...

    def wake(self) -> None:
        """Call `pull` at the end of this turn."""
        ...


class ConnectionGroups:
    """Made when a device says the first item about groups."""

    __slots__ = (
        "_asked", "_heads", "_held", "_node", "_waiting", "attended", "ended", "held_bytes", "member_of", "session",
    )  # fmt: skip

    def __init__(self, node: NodeGroups, session: GroupSession) -> None:
        self._node, self.session = node, session
        self.attended: set[int] = set()
        self.member_of: dict[int, None] = {}
        """Groups that the device was shown as a member of, the latest ones: it may claim keys of its fellows."""
        self.ended = False
        self._waiting: deque[AboutGroups] = deque()
        self._asked = 0
        self._held: deque[tuple[int, FromServer, int]] = deque()
        """(Number of the high lane that goes out before it, item, its bytes), in order."""
        self.held_bytes = 0
        self._heads: dict[int, int] = {}
        """Group → how far its log has come, to be told."""

    # --- what the device asks -----------------------------------------------------------------

    def take(self, item: AboutGroups, now: int) -> Malformed | None:
        """Why the item cannot be taken, if it is malformed."""
        if refusal := malformed(item):
            return refusal
        if len(self._waiting) + self._asked >= self._node.limits.waiting:
            self._node.refuse(self.session, item.ref, RateLimited(self._node.limits.tell_ms))
        elif wait_ms := self._node.wait_ms(self.session.device, item, now):
            self._node.refuse(self.session, item.ref, RateLimited(wait_ms))
        else:
            self._waiting.append(item)
            self.session.wake()
        return None

    @property
    def can_ask(self) -> bool:
        return bool(self._waiting) and self._asked < ASKED_AT_ONCE and self.held_bytes <= self._node.held_bytes_max

    def _ask(self) -> None:
        while self.can_ask:
            self._asked += 1
            self._node.ask(self, self._waiting.popleft())

    def is_member(self, group: int, *, yes: bool) -> None:
        self.member_of.pop(group, None)
        if yes:
            self.member_of[group] = None
            if len(self.member_of) > MEMBER_OF:
                del self.member_of[next(iter(self.member_of))]

    def answered(self, item: FromServer) -> None:
        self._asked -= 1
        self.session.tell(item)

    def found_log(self, high: int, item: FromServer, size: int) -> None:
        """A part of a log that was asked for."""
        self._asked -= 1
        self._hold(high, item, size)

    # --- what it is told ----------------------------------------------------------------------

    def push(self, high: int, item: FromServer, size: int, group: int, head: int) -> None:
        """News with entries. A device that does not keep up is told only how far the log has come."""
        if self.held_bytes + size > self._node.held_bytes_max or group in self._heads:
            self.push_head(group, head)
        elif group in self.attended:
            self._hold(high, item, size)

    def push_head(self, group: int, head: int) -> None:
        if group in self.attended:
            self._heads[group] = max(head, self._heads.get(group, 0))
            self.session.wake()

    def _hold(self, high: int, item: FromServer, size: int) -> None:
        self._held.append((high, item, size))
        self.held_bytes += size
        if high > self.session.handed_high:
            self.session.grew(Lane.HIGH)  # The news of it may have been lost.
        self.session.wake()

    @property
    def owes(self) -> bool:
        return bool(self._held or self._heads or self._waiting)

    def pull(self) -> bool:
        """Add what may go out now, and ask what may be asked. Returns whether more could be asked at once.

        To be called after the high lane was pulled, while the socket has room.
        """
        out, held = self.session.out, self._held
        while held and held[0][0] <= self.session.handed_high:
            _, item, size = held.popleft()
            self.held_bytes -= size
            out.append(item)
        for group, head in self._heads.items():
            out.append(GroupLog(0, group, 0, (), head))
        self._heads.clear()
        self._ask()
        return self.can_ask

    def end(self) -> None:
        """The connection has ended."""
        self.ended = True
        self._node.attended.remove_all(self)


class NodeGroups:
    def __init__(self, shared: Shared, limits: GroupLimits) -> None:
        self._shared, self.limits = shared, limits
        self.held_bytes_max = shared.limits.unsent_bytes
        """Bytes of entries that wait for keys, on one connection; then nothing more is asked for it."""
        self._asks = Shares(limits.asks_per_s, limits.asks_burst, COUNTED)
        self.attended = AttendedGroups(shared, limits)

    def connection(self, session: GroupSession) -> ConnectionGroups:
        return ConnectionGroups(self, session)

    def wait_ms(self, device: int, item: AboutGroups, now: int) -> int:
        amount = max(1, len(item.numbers)) if isinstance(item, ReceiptsLook) else 1
        return self._asks.wait_ms(device >> DEVICE_BITS, now, amount)

    def refuse(self, session: GroupSession, ref: int, refusal: RateLimited) -> None:
        self._shared.counters.groups_limited += 1
        session.tell(Answered(ref, refusal))

    def ask(self, connection: ConnectionGroups, item: AboutGroups) -> None:
        self._shared.counters.groups_asked += 1
        question = self._question(connection.session.device, item)
        self._shared.desk.about_group(question, partial(self._shown, connection, item))

    def _question(self, device: int, item: AboutGroups) -> GroupQuestion:
        limits = self._shared.limits
        match item:
            case GroupLook():
                return ChainAsked(item.group, device, item.after, CHAIN_BLOBS, limits.batch_bytes)
            case MembersLook():
                return MembersAsked(item.group, device, item.after, MEMBERS_PAGE)
            case LogFetch():
                return LogAsked(item.group, device, item.after, limits.batch_entries, limits.batch_bytes)
            case ReceiptsLook():
                return ReceiptsAsked(item.group, device, item.numbers, RECEIPT_STATES)

    def _shown(self, connection: ConnectionGroups, item: AboutGroups, said: GroupAnswer) -> None:
        if connection.ended:
            return
        ref, group = item.ref, item.group
        connection.is_member(group, yes=said.is_member if isinstance(said, LogShown) else not isinstance(said, Refusal))
        match said:
            case UnknownGroup() | NotMember():
                self.attended.remove(connection, group)
                connection.answered(Answered(ref, said))
            case ChainShown():
                connection.answered(GroupChain(
                    ref, group, said.epoch, said.head, said.length, said.seq, said.fan_out, said.blobs
                ))  # fmt: skip
            case MembersShown():
                connection.answered(GroupMembers(
                    ref, group, said.epoch, said.head, said.length, said.settings, said.members, said.more
                ))  # fmt: skip
            case ReceiptsShown():
                connection.answered(GroupSeenBy(ref, group, said.receipts, said.states))
            case LogShown():
                assert isinstance(item, LogFetch)
                self._log_shown(connection, item, said)
            case _:
                raise AssertionError("no device asks for growth")

    def _log_shown(self, connection: ConnectionGroups, item: LogFetch, shown: LogShown) -> None:
        log = GroupLog(item.ref, item.group, item.after, shown.items, shown.head)
        runs = [part for part in shown.items if isinstance(part, LogRun)]
        if not runs:
            connection.answered(log)
        else:
            size = sum(len(entry.ciphertext) for run in runs for entry in run.entries)
            device = connection.session.device

            def found(heads: Mapping[int, int]) -> None:
                if not connection.ended:
                    connection.found_log(heads[device], log, size)

            self._shared.desk.high_heads((device,), shown.told, found)
        if item.attend and shown.is_member:
            self.attended.add(connection, item.group, shown.head)
        else:
            self.attended.remove(connection, item.group)


def malformed(item: AboutGroups) -> Malformed | None:
    if not 1 <= item.ref <= REF_MAX:
        return Malformed("a ref out of range")
    if not is_group(item.group):
        return Malformed("group is not the number of a group")
    if isinstance(item, ReceiptsLook):
        if len(item.numbers) > RECEIPT_NUMBERS:
            return Malformed(f"at most {RECEIPT_NUMBERS} numbers at once")
        if not all(1 <= number <= NUMBER_MAX for number in item.numbers):
            return Malformed("a number out of range")
    elif not 0 <= item.after <= NUMBER_MAX:
        return Malformed("after is out of range")
    return None


def answer_ref(item: AboutGroups) -> int:
    """Under what a refusal can be said; 0: under nothing."""
    return item.ref if 1 <= item.ref <= REF_MAX else 0
