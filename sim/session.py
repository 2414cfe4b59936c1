"""A simulated server session: carries records in, and entries and receipts out, for one connection.

Pulls from the mailbox with a next number and a credit window, as the gateway will. Nothing about
what was pushed is durable, and nothing that a client says about its numbers is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from nightmail.core.mailbox import needs_offer, offer
from nightmail.core.receipts import changes_after, needs_changes
from nightmail.core.state import State
from nightmail.model.answers import Said
from nightmail.model.ids import account_of
from nightmail.model.records import Acked, AnyBody
from nightmail.model.rows import Gap, Kept, Need, RowKey
from nightmail.model.words import Lane

from .wire import Link
from .world import World

if TYPE_CHECKING:
    from .client import Client

CREDIT = 24
BATCH = 10


class Backend(Protocol):
    """Whatever holds the mailboxes: one node, or a cluster seen through one of its nodes."""

    def submit(self, by: int, body: AnyBody, answer: Callable[[Said], None] | None) -> None: ...

    def read(self, account: int, wanted: Callable[[State], Sequence[Need]], then: Callable[[State], None]) -> None: ...

    def attach(self, session: Session) -> None: ...

    def detach(self, session: Session) -> None: ...


class Session:
    def __init__(self, world: World, backend: Backend, link: Link, client: Client, cursors: Sequence[int]) -> None:
        self.world, self.backend, self.link, self.client = world, backend, link, client
        self.device = client.device
        self._next = [cursors[0], cursors[1]]
        self._acked = [cursors[0], cursors[1]]
        self._changes = cursors[2]
        link.on_cut.append(self.end)
        backend.attach(self)
        self.pump()

    def end(self) -> None:
        self.link.open = False
        self.backend.detach(self)

    # --- in -----------------------------------------------------------------------------------

    def take(self, body: AnyBody, answer: Callable[[Said], None] | None) -> None:
        """A record arrived. Its answer, if one is wanted, goes back over the same link."""
        if answer is None:
            self.backend.submit(self.device, body, None)
        else:
            self.backend.submit(self.device, body, lambda said: self.link.to_client(partial(answer, said)))
        if isinstance(body, Acked):
            self._acked[body.lane] = max(self._acked[body.lane], body.upto)
            self.pump()

    def look_up(self, account: int, answer: Callable[[int, dict[int, int]], None]) -> None:
        """Tell the client whom a message to `account` must be sealed for."""

        def found(state: State) -> None:
            row = state.accounts[account]
            version, listed = (row.list_version, dict(row.listed)) if row and not row.closed else (0, {})
            self.link.to_client(lambda: answer(version, listed))

        self.backend.read(account, lambda s: () if account in s.accounts else (RowKey(Kept.ACCOUNT, account),), found)

    # --- out ----------------------------------------------------------------------------------

    def pump(self) -> None:
        """Offer whatever is new: the high lane first, then the normal one, then receipts."""
        if not self.link.open:
            return
        for lane in (Lane.HIGH, Lane.NORMAL):
            if self._next[lane] - self._acked[lane] < CREDIT:
                self._pull(lane)
        self._pull_changes()

    def _pull(self, lane: Lane) -> None:
        after = self._next[lane]

        def found(state: State) -> None:
            if not self.link.open or after != self._next[lane]:
                return
            mailbox = state.mailboxes[self.device]
            if mailbox and mailbox.lanes[lane].head < after:
                self.world.hit("owner behind client")
            items = offer(state, self.device, lane, after, BATCH)
            if not items:
                return
            last = items[-1]
            self._next[lane] = last.high if isinstance(last, Gap) else last[0]
            self.link.to_client(lambda: self.client.on_items(self.link, lane, items))
            self.pump()

        self._read(lambda s: needs_offer(s, self.device, lane, after, BATCH), found)

    def _pull_changes(self) -> None:
        after = self._changes

        def found(state: State) -> None:
            if not self.link.open or after != self._changes:
                return
            changes = changes_after(state, self.device, after, BATCH)
            if not changes:
                return
            self._changes = changes[-1].seq
            copies = [(c.key, c.seq, c.reason, list(c.numbers)) for c in changes]
            self.link.to_client(lambda: self.client.on_changes(self.link, copies))
            self.pump()

        self._read(lambda s: needs_changes(s, self.device), found)

    def _read(self, wanted: Callable[[State], Sequence[Need]], found: Callable[[State], None]) -> None:
        self.backend.read(account_of(self.device), wanted, found)
