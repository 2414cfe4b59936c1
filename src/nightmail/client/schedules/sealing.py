"""Sealing a message for later: for each device in a session that nobody keeps; for a group with this device's chain.

Knows:   what must be there first: lists that were asked for just now, and keys that everybody gets.
Touches: the own chain of a group. Between two people no state changes.
Never:   takes anybody's one-time key, or seals for an account whose changed key waits for the person's consent.
"""

from __future__ import annotations

from typing import NamedTuple

from nightmail.client.groups.parts import GroupParts
from nightmail.client.machine.context import Context
from nightmail.client.messages import conversation_id
from nightmail.client.store.rows import DeviceList
from nightmail.client.store.schedule_rows import ScheduledRow
from nightmail.client.trust.device_lists import DeviceLists
from nightmail.client.trust.e2ee_sealer import E2eeSealer
from nightmail.client.trust.sealer import Then
from nightmail.e2ee.bundles import PrekeyBundle
from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.note import Note, tag_of
from nightmail.e2ee.peers import Peer
from nightmail.e2ee.sealing import seal_note_once
from nightmail.model.group_chain import is_group
from nightmail.model.records import Envelope
from nightmail.model.schedule_rows import GroupContent, PairContent

from .lasting_keys import LastingKeys

FRESH_MS = 60_000
"""So long a list that was asked for is present enough: what is sealed by an older one may be stale at its time."""


class Sealed(NamedTuple):
    content: PairContent | GroupContent
    sealed_for: tuple[int, ...]
    """The recipient's devices; in a group, none."""


class Unsealable(Exception):
    """It can never be sealed: `word` says why."""

    def __init__(self, word: str) -> None:
        self.word = word
        super().__init__(word)


class ScheduleSealing:
    def __init__(
        self, context: Context, lists: DeviceLists, sealer: E2eeSealer, groups: GroupParts, keys: LastingKeys
    ) -> None:
        self._context, self._lists, self._sealer = context, lists, sealer
        self._groups, self._keys = groups, keys
        self._fresh: dict[int, int] = {}
        """Account → until when its list need not be asked for again."""
        self._nobody: set[int] = set()
        """Accounts that the server has just said do not exist."""
        self._looked: dict[str, int] = {}
        """Message → the time of the last look at its group."""

    def lost(self) -> None:
        self._fresh.clear()
        self._looked.clear()
        self._nobody.clear()
        self._keys.lost()

    def outdate(self, row: ScheduledRow) -> None:
        """What it was sealed by is not what the server has now."""
        self._fresh.pop(row.to, None)
        self._fresh.pop(self._context.identity.account, None)
        self._looked.pop(row.id, None)

    def is_held(self, row: ScheduledRow) -> bool:
        """It waits for the person's consent to a changed key."""
        return not is_group(row.to) and self._sealer.is_held(row.to)

    def tag(self, row: ScheduledRow) -> bytes:
        return tag_of(row.nonce, row.body, conversation_id(self._context.identity.account, row.to))

    def seal(self, row: ScheduledRow, then: Then, otherwise: Then) -> Sealed | None:
        """None: something must come first. `then` is called when it is here, `otherwise` if it cannot be had now; for
        a group nothing is called, and its parts say when it goes on. Raises Unsealable."""
        note = Note(row.nonce, row.id, row.body)
        if is_group(row.to):
            return self._seal_in_group(row, note, then)
        if row.to in self._nobody:
            self._nobody.discard(row.to)  # it may register at any time
            raise Unsealable("unknown_recipient")
        to = self._list(row, row.to, then, otherwise)
        own = self._list(row, self._context.identity.account, then, otherwise)
        if to is None or own is None or self.is_held(row):
            return None
        return self._seal_for_devices(row, note, to, own, then, otherwise)

    def _list(self, row: ScheduledRow, account: int, then: Then, otherwise: Then) -> DeviceList | None:
        """The list of an account, if it was asked for just now."""
        now, known = self._context.now, self._lists.of(account)
        if known is not None and self._fresh.get(account, 0) > now:
            return known

        def found(listed: DeviceList) -> None:
            if listed.version:
                self._fresh[account] = self._context.now + FRESH_MS
            else:
                self._nobody.add(account)
            then()

        if known is not None:
            self._lists.forget(account)
        self._lists.want(account, (self, row.id), found, otherwise)
        return None

    def _seal_for_devices(
        self, row: ScheduledRow, note: Note, to: DeviceList, own: DeviceList, then: Then, otherwise: Then
    ) -> Sealed | None:
        me = self._context.identity
        theirs = [device for device in to.devices if device != me.device]
        mine = [] if row.to == me.account else [device for device in own.devices if device != me.device]
        peers = {device: self._sealer.sessions.listed(device) for device in (*theirs, *mine)}
        keys = {device: self._keys.of(peer) for device, peer in peers.items()}
        missing = [device for device, bundle in keys.items() if bundle is None]
        for device in missing:
            self._keys.want(device, (self, row.id), then, otherwise)
        if missing:
            return None
        registered = {**own.devices, **to.devices}
        made = {
            device: Envelope(device, registered[device], self._seal_one(peers[device], bundle, note))
            for device, bundle in keys.items()
            if bundle is not None
        }
        content = PairContent(
            to.version, tuple(made[device] for device in theirs), tuple(made[device] for device in mine)
        )
        return Sealed(content, tuple(theirs))

    def _seal_one(self, peer: Peer, bundle: PrekeyBundle, note: Note) -> bytes:
        own = self._sealer.key_stock.keys
        try:
            return seal_note_once(own, peer, bundle, note, self._context.secrets)
        except Rejected as error:
            raise Unsealable("keys_refused") from error

    # --- groups ---------------------------------------------------------------------------------

    def _seal_in_group(self, row: ScheduledRow, note: Note, then: Then) -> Sealed | None:
        groups = self._groups
        if groups.known.joined(row.to) is None:
            raise Unsealable("not_member")
        if row.is_stale and row.id not in self._looked:
            # The server does not say what has changed: look at the chain, and at everybody's devices.
            self._looked[row.id] = self._context.now
            groups.audience.outdate(row.to)
            groups.follower.look(row.to, then)
            return None
        content = groups.sealing.seal_for_later(row.to, note)
        return Sealed(content, ()) if content is not None else None
