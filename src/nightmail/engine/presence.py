"""The `Presence` of one machine: who is online in memory, the rest in a file that is written in batches.

Knows:   the last heartbeat of each device in the foreground, and what is not stored yet.
Touches: the store, on the thread of `execute`; the listener.
Never:   touches the message log, or makes a caller wait for the disk.

A device has one heartbeat, so the dict of them, in the order of their times, is also the list of what ends next:
nothing has a timer of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial

from msgspec import Struct

from nightmail.engine.worker import Execute
from nightmail.model.ids import DEVICE_BITS
from nightmail.model.words import Audience

from .ports import EngineError, Failed, Post, PresenceListener, Sighting
from .sqlite.presence_file import NEVER_SEEN, PersonKept, PresenceFile

ASKERS_AT_ONCE = 32
"""Questions that one reading of the file answers: one by one, many would wait in line, and hold memory meanwhile."""
REMEMBERED = 50_000
"""Accounts whose stored row is also in memory: some 10 MB."""


class PresenceSettings(Struct, frozen=True):
    enabled: bool = True
    """Whether the server tells who is online, who was last seen when, and who is typing."""
    lifetime_ms: int = 60_000
    """A device in the foreground counts as online for this long after its last heartbeat, in ms: two heartbeats."""
    save_ms: int = 10_000
    """How often last seen is stored, in ms. A crash loses the heartbeats since then."""


class EmbeddedPresence:
    """Call `attend` first, `tick` often, and `close` before the thread of `execute` ends."""

    def __init__(
        self,
        store: PresenceFile,
        settings: PresenceSettings,
        *,
        post: Post,
        execute: Execute,
        clock: Callable[[], int],
    ) -> None:
        """`clock` is the wall clock, for what people are shown."""
        self._store, self._settings, self._clock = store, settings, clock
        self._post, self._execute = post, execute
        self._listener: PresenceListener | None = None
        self._beats: dict[int, int] = {}
        """Device in the foreground → its last heartbeat; oldest first."""
        self._online: dict[int, int] = {}
        """Account → how many of its devices are in the foreground."""
        self._kept: dict[int, PersonKept] = {}
        """What is stored, of accounts that were asked for."""
        self._unsaved: dict[int, int] = {}
        """Account → last seen."""
        self._saving: dict[int, int] = {}
        """Likewise, while it is being stored."""
        self._askers: deque[tuple[Collection[int], Callable[[Mapping[int, Sighting] | Failed], None]]] = deque()
        """Who has asked for accounts that are not in memory."""
        self._is_reading = False
        self._save_at = 0
        self.failed_saves = 0

    def attend(self, listener: PresenceListener) -> None:
        self._listener = listener

    @property
    def online(self) -> int:
        """How many accounts are online."""
        return len(self._online)

    # --- coming and going ---------------------------------------------------------------------

    def beat(self, device: int, now: int) -> None:
        account = device >> DEVICE_BITS
        self._unsaved[account] = self._clock()
        is_new = self._beats.pop(device, None) is None
        self._beats[device] = now
        if is_new:
            count = self._online[account] = self._online.get(account, 0) + 1
            if count == 1:
                self._changed(account)

    def leave(self, device: int) -> None:
        if self._beats.pop(device, None) is None:
            return
        account = device >> DEVICE_BITS
        if left := self._online[account] - 1:
            self._online[account] = left
        else:
            del self._online[account]
            self._changed(account)

    def tick(self, now: int) -> None:
        while self._beats:
            device, beat = next(iter(self._beats.items()))
            if now - beat < self._settings.lifetime_ms:
                break
            self.leave(device)
        if now >= self._save_at:
            self._save_at = now + self._settings.save_ms
            self.save()

    def _changed(self, account: int) -> None:
        assert self._listener is not None
        self._listener.presence_changed(account)

    # --- what is stored -----------------------------------------------------------------------

    def sightings(self, accounts: Collection[int], then: Callable[[Mapping[int, Sighting] | Failed], None]) -> None:
        kept = self._kept
        for account in accounts:
            if account not in kept:
                self._askers.append((accounts, then))
                self._read()
                return
        then({account: self._sighting(account, kept[account]) for account in accounts})

    def _read(self) -> None:
        """Ask the store for what the next askers want, unless it is still being asked."""
        if self._is_reading or not self._askers:
            return
        self._is_reading = True
        askers = [self._askers.popleft() for _ in range(min(ASKERS_AT_ONCE, len(self._askers)))]
        wanted = {account for accounts, _ in askers for account in accounts}

        def found(rows: Mapping[int, PersonKept] | Failed) -> None:
            self._is_reading = False
            for accounts, then in askers:
                then(rows if isinstance(rows, Failed) else self._found(accounts, rows))
            self._read()

        self._execute(lambda: self._answer(lambda: self._store.read(wanted), found))

    def _found(self, accounts: Collection[int], rows: Mapping[int, PersonKept]) -> dict[int, Sighting]:
        found: dict[int, Sighting] = {}
        for account in accounts:
            # It may have been stored, and so be newer in memory, since the file was read.
            kept = self._kept.get(account) or self._remember(account, rows.get(account, NEVER_SEEN))
            found[account] = self._sighting(account, kept)
        return found

    def _sighting(self, account: int, kept: PersonKept) -> Sighting:
        newest = self._unsaved.get(account) or self._saving.get(account) or kept.last_seen
        return Sighting(account in self._online, newest, kept.audience)

    def _remember(self, account: int, row: PersonKept) -> PersonKept:
        self._kept.pop(account, None)
        self._kept[account] = row
        if len(self._kept) > REMEMBERED:
            del self._kept[next(iter(self._kept))]
        return row

    def show_to(self, account: int, audience: Audience, then: Callable[[Failed | None], None]) -> None:
        def stored(outcome: Failed | None) -> None:
            if outcome is None and (row := self._kept.get(account)):
                self._kept[account] = row._replace(audience=audience)
            then(outcome)
            if outcome is None and self._listener is not None:
                self._listener.audience_changed(account)

        self._execute(lambda: self._answer(lambda: self._store.put_audience(account, audience), stored))

    def save(self) -> None:
        """Store the heartbeats since the last call, unless the last ones are still being stored."""
        if self._saving or not self._unsaved:
            return
        self._saving, self._unsaved = self._unsaved, {}
        batch = dict(self._saving)

        def saved(outcome: Failed | None) -> None:
            if outcome is not None:
                self.failed_saves += 1
                self._unsaved = {**self._saving, **self._unsaved}
            else:
                for account, last_seen in self._saving.items():
                    if row := self._kept.get(account):
                        self._kept[account] = PersonKept(last_seen, row.audience)
            self._saving = {}

        self._execute(lambda: self._answer(lambda: self._store.put_last_seen(batch), saved))

    def close(self) -> None:
        """Store what is not stored yet, on the thread of `execute`, as its last job."""
        batch = {**self._saving, **self._unsaved}
        self._unsaved = {}
        self._execute(lambda: self._answer(lambda: self._store.put_last_seen(batch), self._written))

    def forget(self, account: int) -> None:
        for held in (self._unsaved, self._saving, self._kept):
            held.pop(account, None)
        # Until it is removed the account is closed, and so shown to nobody.
        self._execute(lambda: self._answer(lambda: self._store.remove(account), self._written))

    def _written(self, outcome: Failed | None) -> None:
        self.failed_saves += outcome is not None

    def _answer(self, job: Callable[[], object], then: Callable[..., None]) -> None:
        """Runs on the store's thread."""
        try:
            outcome = job()
        except EngineError as error:
            outcome = Failed(str(error))
        self._post(partial(then, outcome))
