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


class UnsavedTimes:
    """When accounts, or devices, were last seen, as far as it is not stored yet."""

    def __init__(self) -> None:
        self.new: dict[int, int] = {}
        self.saving: dict[int, int] = {}
        """While they are being stored."""

    def newest(self, key: int) -> int:
        return self.new.get(key) or self.saving.get(key) or 0

    def all(self) -> dict[int, int]:
        return {**self.saving, **self.new}

    def begin(self) -> dict[int, int]:
        """What to store now."""
        self.saving, self.new = self.new, {}
        return dict(self.saving)

    def end(self, outcome: Failed | None) -> None:
        if outcome is not None:
            self.new = self.all()
        self.saving = {}

    def forget(self, key: int) -> None:
        self.new.pop(key, None)
        self.saving.pop(key, None)


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
        self._people, self._devices = UnsavedTimes(), UnsavedTimes()
        self._is_saving = False
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
        self._people.new[account] = self._clock()
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
        newest = self._people.newest(account) or kept.last_seen
        return Sighting(account in self._online, newest, kept.audience)

    def saw(self, device: int, ago_ms: int) -> None:
        self._devices.new[device] = self._clock() - ago_ms

    def devices_seen(self, devices: Collection[int], then: Callable[[Mapping[int, int] | Failed], None]) -> None:
        def found(kept: Mapping[int, int] | Failed) -> None:
            if isinstance(kept, Failed):
                then(kept)
                return
            seen = {device: self._devices.newest(device) or kept.get(device, 0) for device in devices}
            then({device: at for device, at in seen.items() if at})

        self._execute(lambda: self._answer(lambda: self._store.read_devices(devices), found))

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
        if self._is_saving or not (self._people.new or self._devices.new):
            return
        self._is_saving = True
        people, devices = self._people.begin(), self._devices.begin()

        def saved(outcome: Failed | None) -> None:
            self._is_saving = False
            if outcome is not None:
                self.failed_saves += 1
            else:
                for account, last_seen in self._people.saving.items():
                    if row := self._kept.get(account):
                        self._kept[account] = PersonKept(last_seen, row.audience)
            self._people.end(outcome)
            self._devices.end(outcome)

        self._execute(lambda: self._answer(lambda: self._store.put_last_seen(people, devices), saved))

    def close(self) -> None:
        """Store what is not stored yet, on the thread of `execute`, as its last job."""
        people, devices = self._people.all(), self._devices.all()
        self._people.new, self._devices.new = {}, {}
        self._execute(lambda: self._answer(lambda: self._store.put_last_seen(people, devices), self._written))

    def forget(self, account: int) -> None:
        self._kept.pop(account, None)
        self._people.forget(account)
        for device in [each for each in self._devices.all() if each >> DEVICE_BITS == account]:
            self._devices.forget(device)
        # Until it is removed the account is closed, and so shown to nobody.
        self._execute(lambda: self._answer(lambda: self._store.remove(account), self._written))

    def forget_device(self, device: int) -> None:
        self._devices.forget(device)
        self._execute(lambda: self._answer(lambda: self._store.remove_device(device), self._written))

    def _written(self, outcome: Failed | None) -> None:
        self.failed_saves += outcome is not None

    def _answer(self, job: Callable[[], object], then: Callable[..., None]) -> None:
        """Runs on the store's thread."""
        try:
            outcome = job()
        except EngineError as error:
            outcome = Failed(str(error))
        self._post(partial(then, outcome))
