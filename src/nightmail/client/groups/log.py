"""Large groups: entries stand once in the group's log, and this device fetches them.

Knows:   how far each log is stored here, and how far it has come.
Touches: rows of groups.
Never:   takes a number out of order, or acknowledges what is not stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from nightmail.client.events import Gap
from nightmail.client.machine.context import Context
from nightmail.client.machine.retry import Retry
from nightmail.client.store.group_rows import GroupRow, GroupStanding
from nightmail.client.trust.sealer import Then
from nightmail.model.answers import Done, Said
from nightmail.model.group_rows import FanOut
from nightmail.model.limits import FormLimits
from nightmail.model.records import GroupAcked
from nightmail.model.refusals import Refusal
from nightmail.model.rows import GroupEntry
from nightmail.model.words import Lane, Reason
from nightmail.wire.items import GroupLog, LogFetch, LogGap, LogRun

from .known_groups import KnownGroups

UNREADABLE_MAX = FormLimits().unreadable
QUIET = (Reason.KEPT_ELSEWHERE, Reason.NOT_MEMBER)
"""Gaps that concern nobody here."""
FETCHED = (GroupStanding.INVITED, GroupStanding.JOINED, GroupStanding.LEFT, GroupStanding.REMOVED)
"""Who fetches. Who has left fetches up to its end. Who was not welcomed yet keeps what comes, and learns here if it is
removed before."""

AWAITING = (GroupStanding.INVITED, GroupStanding.JOINED)
"""Who can fetch everything that there is."""
TRIES = 3
"""After so many attempts in vain nothing counts as being on its way."""

WaitFor = Callable[[GroupEntry], "Callable[[Then], None] | None"]
"""What must come before an entry can be judged."""
Take = Callable[[GroupEntry], bool]
"""Store an entry; False: it could not be opened."""
HasRoom = Callable[[int], bool]
"""Whether another entry of a group can wait until it can be opened."""


class GroupLogs:
    def __init__(
        self, context: Context, known: KnownGroups, wait_for: WaitFor, take: Take, has_room: HasRoom,
        can_judge: Callable[[], bool],
    ) -> None:  # fmt: skip
        """`can_judge`: this device knows its account's key. Before that it believes no list, and so nobody."""
        self._context, self._known, self._wait_for, self._take = context, known, wait_for, take
        self._has_room, self._can_judge = has_room, can_judge
        self._asked: dict[int, int] = {}
        """Group → the ref under which its log was asked for."""
        self._held: dict[int, deque[LogGap | tuple[int, GroupEntry]]] = {}
        """Groups whose next entry must wait, and what stands behind it."""
        self._acking: set[int] = set()
        self.retry = Retry(context, self._fetch_all)

    # --- the connection -------------------------------------------------------------------------

    def connected(self) -> None:
        self.retry.reset()
        self._fetch_all()

    def unblocked(self) -> None:
        """This device may have learned its account's key: fetch what it was told of before."""
        if self._context.online and self._can_judge():
            self._fetch_all()

    def lost(self) -> None:
        self._asked.clear()
        self._held.clear()
        self._acking.clear()
        self.retry.lost()

    def _fetch_all(self) -> None:
        for row in self._context.store.groups():
            if row.fan_out is not FanOut.WRITE:
                self._say_acked(row.group)
                self.fetch(row.group)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is on its way: everything that could be fetched is stored, and the server knows it."""
        is_trying = self.retry.due is not None and self.retry.failures < TRIES
        return not (self._asked or self._held or self._acking or is_trying)

    # --- fetching -------------------------------------------------------------------------------

    def grew(self, group: int, seq: int) -> None:
        """The server says that the log has come so far."""
        row = self._known.row(group) or self._known.invite(group)
        if row is None:
            return
        fan_out = FanOut.HYBRID if row.fan_out is FanOut.WRITE else row.fan_out
        if seq > row.head_seq or fan_out is not row.fan_out:
            self._known.put(replace(row, head_seq=max(seq, row.head_seq), fan_out=fan_out))
        self.fetch(group)

    def begin(self, group: int) -> None:
        """This device takes part from now on. What it was told of the log before was not looked at."""
        row = self._known.row(group)
        if row is not None and row.fan_out is not FanOut.WRITE:
            self.fetch(group)

    def fetch(self, group: int) -> None:
        """Ask for what stands behind the cursor, and to be told of what comes."""
        row = self._known.row(group)
        if row is None or row.standing not in FETCHED or not self._context.online or not self._can_judge():
            return
        if group not in self._asked and group not in self._held:
            after = row.cursor
            self._asked[group] = self._context.ask_item(
                lambda ref: LogFetch(ref, group, after, attend=True), partial(self._refused, group)
            )

    def _refused(self, group: int, said: Said) -> None:
        self._asked.pop(group, None)
        if isinstance(said, Refusal) and said.retry:
            self.retry.later()

    # --- taking ---------------------------------------------------------------------------------

    def take(self, item: GroupLog) -> None:
        """The next entries; or, under ref 0, news of them."""
        group = item.group
        row = self._known.row(group)
        if item.ref:
            self._context.forget_ref(item.ref)
            if self._asked.get(group) != item.ref:
                return
            del self._asked[group]
        if row is None:
            return
        if item.head > row.head_seq:
            row = replace(row, head_seq=item.head)
            self._known.put(row)
        if not item.ref and not item.items:
            if item.head > row.cursor:
                self.fetch(group)
            return
        if group in self._held or item.after > row.cursor:
            if not item.ref:
                self.fetch(group)
            return
        if item.ref and not item.items and not row.head_seq and row.fan_out is not FanOut.WRITE:
            # Nothing was ever in this log. The first entry that is will be told.
            self._known.put(replace(row, fan_out=FanOut.WRITE))
            return
        waiting: deque[LogGap | tuple[int, GroupEntry]] = deque()
        for part in item.items:
            if isinstance(part, LogRun):
                waiting += [(seq, entry) for seq, entry in enumerate(part.entries, part.first) if seq > row.cursor]
            elif part.high > row.cursor:
                waiting.append(part)
        self._go_on(group, waiting)
        if item.ref and item.after < row.cursor < item.head:
            self.fetch(group)  # news has outrun this answer, which may have brought nothing
        elif item.ref and not item.items and row.cursor < row.head_seq and row.standing in AWAITING:
            self.retry.later()  # it was answered by a server that has not come as far as the news

    def _go_on(self, group: int, waiting: deque[LogGap | tuple[int, GroupEntry]]) -> None:
        """Store what can be judged, in order."""
        self._held.pop(group, None)
        taken = False
        while waiting:
            part = waiting[0]
            if isinstance(part, LogGap):
                self._pass(group, part)
            elif part[1].to != group:
                self._advance(group, part[0], opened=False)
            elif self._row(group).standing is GroupStanding.INVITED and not self._has_room(group):
                break  # the rest is fetched once a member has said what this group is
            elif (wait := self._wait_for(part[1])) is not None:
                self._held[group] = waiting
                wait(partial(self._go_on_held, group, waiting))
                break
            else:
                self._advance(group, part[0], opened=self._take(part[1]))
            waiting.popleft()
            taken = True
        if taken:
            self._say_acked(group)
        row = self._known.row(group)
        if row is not None and group not in self._held and row.cursor < row.head_seq and taken:
            self.fetch(group)

    def _go_on_held(self, group: int, waiting: deque[LogGap | tuple[int, GroupEntry]]) -> None:
        if self._held.get(group) is waiting:
            self._go_on(group, waiting)

    def _pass(self, group: int, gap: LogGap) -> None:
        if gap.reason not in QUIET:
            self._context.tell(Gap(Lane.NORMAL, gap.low, gap.high, gap.reason))
        self._advance(group, gap.high, opened=True)

    def _advance(self, group: int, seq: int, *, opened: bool) -> None:
        self.retry.reset()
        row = self._row(group)
        unreadable = row.unreadable if opened else (*row.unreadable, seq)
        self._known.put(replace(row, cursor=max(seq, row.cursor), unreadable=unreadable[-UNREADABLE_MAX:]))

    def _row(self, group: int) -> GroupRow:
        row = self._known.row(group)
        assert row is not None
        return row

    # --- acknowledging --------------------------------------------------------------------------

    def _say_acked(self, group: int) -> None:
        row = self._known.row(group)
        if row is None or not row.cursor or not self._context.online or group in self._acking:
            return
        self._acking.add(group)
        acked = GroupAcked(group, row.cursor, row.unreadable)
        self._context.ask(acked, partial(self._answered, acked))

    def _answered(self, acked: GroupAcked, said: Said) -> None:
        group = acked.group
        self._acking.discard(group)
        row = self._known.row(group)
        if row is None:
            return
        if isinstance(said, Done) and acked.unreadable:
            self._known.put(replace(row, unreadable=tuple(n for n in row.unreadable if n not in acked.unreadable)))
        if isinstance(said, Done) and row.cursor > acked.upto:
            self._say_acked(group)
        elif isinstance(said, Refusal) and said.retry:
            self.retry.later()
