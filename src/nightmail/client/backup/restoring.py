"""Putting a backup into a profile that was registered again, or linked: the history is there, and sessions begin again.

Knows:   that the newest segment counts, and that what this device learned by itself counts more.
Touches: what `own_devices/past.py` touches; the settings of the profile.
Never:   changes anything before the whole backup was verified, or only a part: it is one transaction.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from nightmail.client.errors import BackupOfAnother, BackupOlder, ClientError, Misused
from nightmail.client.limits import ClientLimits
from nightmail.client.machine.machine import Machine
from nightmail.client.own_devices.contact_sync import is_noted
from nightmail.client.profile import settings
from nightmail.client.profile.profile import Profile
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Identity
from nightmail.e2ee.chance import SYSTEM, Chance

from .forms import BackupPart
from .looking import BackupInfo, OpenBackup
from .making import Progress
from .newest import newer_than


class Restored(NamedTuple):
    messages: int
    """How many were not here yet."""
    contacts: int


def check_account(info: BackupInfo, identity: Identity | None) -> Identity:
    """The device that this backup can be restored to. Raises Misused, BackupOfAnother."""
    if identity is None or not identity.device:
        raise Misused("the profile is not registered yet: register its handle, or link it; then restore")
    if identity.account != info.account:
        raise BackupOfAnother(
            f"{info.file} is a backup of {info.handle!r}, and this profile belongs to {identity.handle!r}"
        )
    return identity


def check_newest(opened: OpenBackup, store: Store) -> None:
    """Raises BackupOlder if this device knows of a newer one than this: somebody has put an older copy in its place."""
    newest = newer_than(store, opened.lineage, opened.info.at)
    if newest is not None:
        raise BackupOlder(opened.info.at, newest)


def restore(
    profile: Profile, opened: OpenBackup, now: int, progress: Progress | None = None, *, may_be_older: bool = False
) -> Restored:
    """All of it, or nothing. No client may use the profile meanwhile. Raises BackupError, Misused, StoreFailed.

    `may_be_older`: the person knows that there was a newer one, and wants this.
    """
    if not may_be_older:
        check_newest(opened, profile.store)
    wanted = next((part.settings for part in opened.parts()), dict[str, float]())
    restored = restore_into(profile.store, opened, now, progress)
    _restore_settings(profile.path, wanted)
    return restored


def restore_into(
    store: Store, opened: OpenBackup, now: int, progress: Progress | None = None, limits: ClientLimits | None = None,
    chance: Chance = SYSTEM,
) -> Restored:  # fmt: skip
    identity = check_account(opened.info, store.identity())
    machine = Machine(store, identity, limits, secrets=chance)
    try:
        machine.tick(now)
        restoring = _Restoring(machine, store, now)
        for part in opened.parts():
            restoring.take(part)
            if progress is not None:
                progress(min(restoring.seen, opened.info.messages), opened.info.messages)
        machine.turn()
    except BaseException:
        store.rollback()
        raise
    return Restored(restoring.messages, restoring.contacts)


class _Restoring:
    def __init__(self, machine: Machine, store: Store, now: int) -> None:
        self._past, self._people, self._store = machine.past(now), machine.parts.known_people, store
        self._taken: set[tuple[str, int]] = set()
        """Rows of which a newer segment has said how they are."""
        self.seen = self.messages = self.contacts = 0

    def take(self, part: BackupPart) -> None:
        for row in part.trusted:
            if self._is_newest("trusted", row.account):
                self._past.trust(row)
        for account in part.dropped_contacts:
            self._is_newest("contact", account)
        for contact in part.contacts:
            # A change that another own device has told, also that it was deleted, is newer.
            if self._is_newest("contact", contact.account) and not is_noted(self._store, contact.account):
                self._past.keep_contact(contact)
                self.contacts += 1
                if contact.name:
                    self._people.know(contact.account)
        for conversation in part.conversations:
            if self._is_newest("conversation", conversation.peer) and conversation.handle:
                self._past.keep_handle(conversation.peer, conversation.handle)
        for group in part.groups:
            if self._is_newest("group", group.group):
                self._past.keep_group(group)
        for past in part.messages:
            self.seen += 1
            self.messages += self._past.keep_message(past)

    def _is_newest(self, kind: str, number: int) -> bool:
        known = (kind, number) in self._taken
        self._taken.add((kind, number))
        return not known


def _restore_settings(folder: Path, wanted: dict[str, float]) -> None:
    """Those that the person has not changed here, if this version knows them."""
    here = settings.changed(folder)
    for name, value in wanted.items():
        if name not in here:
            with suppress(ClientError):
                settings.put(folder, name, str(value))
