"""Who watches whom, and what each watcher was told last.

Knows:   the watchers of each account, on this node.
Touches: presence and the desk, to look; sessions, to tell.
Never:   tells of one account more often than `tell_ms`, or anybody what has not changed for them; never tells more than
         `TOLD_AT_ONCE` in one turn, nor a crowd in one go, so that the watchers of one account do not keep others
         waiting.

A look goes through the watchers of one account, a few in each turn: the account's rows are read once for these few, and
each watcher costs a look into memory and one item. Blocks and contacts change in the fold, which tells nobody here; so
every watched account is also looked at every `recheck_ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from nightmail.engine.ports import Failed, Presence, Sighting
from nightmail.model.ids import DEVICE_BITS
from nightmail.model.rows import Account, KnownAccounts
from nightmail.wire.items import FromServer, PersonSeen, Seen

from .ports import Shared
from .presence_limits import PresenceLimits
from .visibility import person_seen
from .wheel import SLOT_MS

TOLD_AT_ONCE = 16
"""Watchers of one account that are told in one turn: as many frames as others wait for at most."""
SHARE = 4 * TOLD_AT_ONCE
"""Likewise, in one slot of the wheel; more, where the crowd is larger than that."""
TOLD_WITHIN = 0.5
"""A crowd is told in so much of `tell_ms`, evenly: before its next look begins."""

GONE = -1


class PresentSession(Protocol):
    """A connection, as far as presence is concerned."""

    @property
    def device(self) -> int: ...

    def tell(self, item: FromServer) -> None:
        """Send an item at the end of this turn, unless the connection has ended."""
        ...


class Watching:
    """One connection watches one account."""

    __slots__ = ("account", "look", "person", "place", "session")

    def __init__(self, session: PresentSession, account: int, place: int) -> None:
        self.session, self.account = session, account
        self.place = place
        """Where it is in the list of the account's watches, or `GONE`."""
        self.look = 0
        """The number of the look that it was told of."""
        self.person: PersonSeen | None = None
        """What it was told then."""


class WatchedAccount:
    """One account that somebody watches."""

    __slots__ = ("is_due", "looked_at", "next_at", "watches")

    def __init__(self, now: int) -> None:
        self.watches: list[Watching] = []
        self.looked_at = now
        self.next_at = 0
        self.is_due = False


class Watchers:
    def __init__(
        self, shared: Shared, presence: Presence, limits: PresenceLimits,
        next_turn: Callable[[Callable[[], None]], None],
    ) -> None:  # fmt: skip
        """`next_turn` calls what it is given in a later turn of the event loop."""
        self._shared, self._presence, self._limits, self._next_turn = shared, presence, limits, next_turn
        self._watched: dict[int, WatchedAccount] = {}
        """Those that were looked at longest ago come first."""
        self._looks = 0

    def __len__(self) -> int:
        """How many accounts are watched."""
        return len(self._watched)

    def add(self, session: PresentSession, account: int) -> Watching:
        """Ask for its presence right after this: `ask` tells what changes follow upon."""
        if (watched := self._watched.get(account)) is None:
            watched = self._watched[account] = WatchedAccount(self._shared.pace())
        watch = Watching(session, account, len(watched.watches))
        watched.watches.append(watch)
        return watch

    def remove(self, watch: Watching) -> None:
        """The last watch of the list takes its place: a thousand may leave at once."""
        watches = self._watched[watch.account].watches
        last = watches.pop()
        if last is not watch:
            watches[watch.place], last.place = last, watch.place
        watch.place = GONE
        if not watches:
            del self._watched[watch.account]

    # --- asking -------------------------------------------------------------------------------

    def ask(
        self, session: PresentSession, accounts: Sequence[int], watches: Callable[[], Sequence[Watching]],
        then: Callable[[list[PersonSeen] | Failed], None],
    ) -> None:  # fmt: skip
        """What the session may know of these accounts, in their order.

        `watches` are those of the session when the answer is there: what is watched counts as told.
        """
        self._looks = look = self._looks + 1
        me = session.device >> DEVICE_BITS
        found: dict[int, PersonSeen] = {}

        def seen(sightings: Mapping[int, Sighting] | Failed) -> None:
            if isinstance(sightings, Failed):
                then(sightings)
                return
            if not accounts:
                then([])
            for account in dict.fromkeys(accounts):
                self._shared.desk.relations(account, partial(shown, account, sightings))

        def shown(
            account: int, sightings: Mapping[int, Sighting], row: Account | None, known: KnownAccounts | None
        ) -> None:
            person = person_seen(me, account, sightings, row, known)
            found[account] = _note(watches(), account, look, person)
            if len(found) == len(set(accounts)):
                then([found[account] for account in accounts])

        self._presence.sightings({me, *accounts}, seen)

    # --- changes ------------------------------------------------------------------------------

    def changed(self, account: int) -> None:
        """Tell its watchers: at once, or when it is time again."""
        watched = self._watched.get(account)
        if watched is None or watched.is_due:
            return
        watched.is_due = True
        now = self._shared.pace()
        if now >= watched.next_at:
            self._look(account, now)
        else:
            self._shared.wheel.add(watched.next_at, partial(self._look, account))

    def tick(self, now: int) -> None:
        """Look again at what was not looked at for long."""
        while self._watched:
            account, watched = next(iter(self._watched.items()))
            if now - watched.looked_at < self._limits.recheck_ms:
                return
            self.changed(account)
            if now - watched.looked_at >= self._limits.recheck_ms:
                self._looked(account, watched, now)  # A timer is set: it will look.

    def _looked(self, account: int, watched: WatchedAccount, now: int) -> None:
        watched.looked_at = now
        self._watched[account] = self._watched.pop(account)

    def _look(self, account: int, now: int) -> None:
        watched = self._watched.get(account)
        # A timer may be left from watchers that have gone, and others have come since.
        if watched is None or not watched.is_due or now < watched.next_at:
            return
        watched.is_due, watched.next_at = False, now + self._limits.tell_ms
        self._looked(account, watched, now)
        self._looks += 1
        slots = max(1, int(self._limits.tell_ms * TOLD_WITHIN) // SLOT_MS)
        count = len(watched.watches)
        self._tell_share(account, self._looks, max(SHARE, -(-count // slots)), count, now)

    def _tell_share(self, account: int, look: int, share: int, before: int, now: int) -> None:
        """Tell the last ones of the watches that stand before this place, then the others in later slots of the wheel.

        From the end to the beginning: what takes the place of a watch that leaves comes from the end.
        """
        after = max(0, before - share)
        self._tell_some(account, look, before, after)
        if after:
            self._shared.wheel.add(now, partial(self._tell_share, account, look, share, after))

    def _tell_some(self, account: int, look: int, before: int, after: int) -> None:
        """Tell the last few of the watches between these places, then the others in later turns."""
        watched = self._watched.get(account)
        if watched is None:
            return
        low = max(after, before - TOLD_AT_ONCE)
        some = watched.watches[low:before]

        def seen(sightings: Mapping[int, Sighting] | Failed) -> None:
            # If nothing can be read, nobody is told anything; the next look may succeed.
            if not isinstance(sightings, Failed):
                self._shared.desk.relations(account, partial(shown, sightings))

        def shown(sightings: Mapping[int, Sighting], row: Account | None, known: KnownAccounts | None) -> None:
            for watch in some:
                self._tell(watch, look, sightings, row, known)
            if low > after:
                self._next_turn(partial(self._tell_some, account, look, low, after))

        self._presence.sightings({account, *[watch.session.device >> DEVICE_BITS for watch in some]}, seen)

    def _tell(
        self, watch: Watching, look: int, sightings: Mapping[int, Sighting], row: Account | None,
        known: KnownAccounts | None,
    ) -> None:  # fmt: skip
        # Who came after this look began has asked for itself.
        if watch.look >= look or watch.place == GONE:
            return
        me, told = watch.session.device >> DEVICE_BITS, watch.person
        person = person_seen(me, watch.account, sightings, row, known)
        watch.look = look
        if person != told:
            watch.person = person
            if told is not None:
                self._shared.counters.presence_told += 1
                watch.session.tell(Seen(0, (person,)))


def _note(watches: Sequence[Watching], account: int, look: int, person: PersonSeen) -> PersonSeen:
    """The session is about to be told. Returns what is newer, if a later look was faster."""
    for watch in watches:
        if watch.account == account:
            if watch.look > look and watch.person is not None:
                return watch.person
            watch.look, watch.person = look, person
    return person
