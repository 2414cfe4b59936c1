"""A server that lies to sealed devices: what stands between its honest gateway and a device's ear.

Knows:   what it has handed to this device before, and a few keys of its own.
Touches: entries, device lists and bundles, as often as the habits say; and notes what it did to them.
Never:   has an account's or a device's key: what it makes must be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.header import HEADER_BYTES
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import make_keys, upload
from nightmail.e2ee.lists import check_list
from nightmail.model.answers import Bundle
from nightmail.model.rows import Entry, GroupEntry
from nightmail.model.words import Kind, Lane
from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import Answered, Devices, Entries, FromServer, GroupChain, GroupLog, GroupMembers
from sim.world.sealed_device import SeededSecrets

from .lying_about_groups import GroupForger

if TYPE_CHECKING:
    from sim.world.device import Device

PREVIOUS = HEADER_BYTES - 5
"""The last byte of PN in a header: what decides least about whether a message opens, and is under its MAC."""
PREKEY = 20
"""A byte of a key inside its published form, whichever key it is."""
KEPT = 40
LIVES_FORGED = 0.3
Forge: TypeAlias = Callable[["Forger", Lane, Entry], Entry | None]


class Forger:
    def __init__(self, device: Device) -> None:
        self._device, self._world, self._town = device, device.world, device.person.town
        self._entries: list[tuple[Lane, Entry]] = []
        """What it handed out honestly, to be handed out again."""
        self._lists: dict[int, list[Devices]] = {}
        self.made: set[Entry] = set()
        """Entries that no device sealed so: none of them may open."""
        self.groups = GroupForger(device)
        self.has_lied = False
        """About a list or a key."""

    def pass_on(self, frame: bytes) -> bytes:
        if not self._town.habits.forges or self._town.healing:
            return frame
        items = decode_from_server(frame)
        told = [self._item(item) for item in items]
        return frame if told == items else encode(told)

    def _item(self, item: FromServer) -> FromServer:
        match item:
            case Entries():
                told = tuple(self._in_group(entry) or self._entry(item.lane, entry) for entry in item.entries)
                return replace(item, entries=told)
            case GroupLog():
                return self.groups.log(item)
            case GroupChain():
                return self.groups.chain(item)
            case GroupMembers():
                return self.groups.members(item)
            case Devices():
                return self._devices(item)
            case Answered(said=Bundle() as bundle):
                return replace(item, said=self._bundle(bundle))
            case _:
                return item

    # --- entries ----------------------------------------------------------------------------------

    def _in_group(self, entry: Entry) -> Entry | None:
        """What it tells of an entry for everybody in a group; None: it is for this device alone."""
        if not isinstance(entry, GroupEntry) or (entry.by and (entry.of is not None or not entry.group_seq)):
            return None
        return self.groups.entries((entry,))[0]

    def _entry(self, lane: Lane, entry: Entry) -> Entry:
        if entry.by in self._device.history.liars:
            return entry
        if self._world.maybe(self._town.habits.forge_entries):
            name, forge = self._world.chance.choice(FORGERIES)
            forged = forge(self, lane, entry)
            if forged is not None and forged != entry:
                self._world.hit(f"forged: {name}")
                self._world.tell(self._device.name, f"is handed {entry.id} with a forged {name}")
                self.made.add(forged)
                return forged
        if len(self._entries) < KEPT:
            self._entries.append((lane, entry))
        if entry.life_ms and self._town.habits.forge_entries and self._town.timer_chance.random() < LIVES_FORGED:
            # It opens, because the life is outside the seal, and it must not live longer for it.
            self._world.hit("forged: life")
            return replace(entry, life_ms=self._town.timer_chance.choice((0, 10 * entry.life_ms)))
        return entry

    def mac(self, _lane: Lane, entry: Entry) -> Entry:
        """Something under the MAC is another; it would open all the same."""
        sealed = bytearray(entry.ciphertext)
        sealed[PREVIOUS] ^= 1
        return replace(entry, ciphertext=bytes(sealed))

    def text(self, _lane: Lane, entry: Entry) -> Entry:
        sealed = bytearray(entry.ciphertext)
        sealed[self._world.between(HEADER_BYTES, len(sealed) - 1)] ^= 1 << self._world.between(0, 7)
        return replace(entry, ciphertext=bytes(sealed))

    def tag(self, _lane: Lane, entry: Entry) -> Entry:
        return replace(entry, tag=bytes((entry.tag[0] ^ 1, *entry.tag[1:])))

    def kind(self, _lane: Lane, entry: Entry) -> Entry:
        return replace(entry, kind=Kind.MEDIA)

    def id(self, _lane: Lane, entry: Entry) -> Entry | None:
        """It is given out as a message that is known already, and so would be shown to nobody."""
        for _, before in self._entries:
            if before.by == entry.by and before.id in self._device.seen.shown and entry.of is None:
                return replace(entry, id=before.id)
        return None

    def replay(self, _lane: Lane, entry: Entry) -> Entry | None:
        """What was opened before comes again, under another number."""
        stored = self._device.seen.stored
        opened = [
            before
            for lane, before in self._entries
            if (before.by, before.to) == (entry.by, entry.to) and (before.by, before.to, lane, before.n) in stored
        ]
        return replace(self._world.chance.choice(opened), n=entry.n, at=entry.at) if opened else None

    # --- lists and keys -----------------------------------------------------------------------------

    def _devices(self, item: Devices) -> Devices:
        if not item.signed:
            return item
        before = self._lists.setdefault(item.account, [])
        if not self._world.maybe(self._town.habits.forge_lists):
            before.append(item)
            return item
        self.has_lied = True
        match self._world.between(0, 2):
            case 0:
                self._world.hit("forged: older list")
                older = [known for known in before if _key(known) == _key(item)]
                return replace(older[0], ref=item.ref) if older else item
            case 1:
                self._world.hit("forged: device more")
                fake = item.account << 12 | 0xFFE
                return replace(item, devices={**item.devices, fake: 1})
            case _:
                self._world.hit("forged: list")
                signed = bytearray(item.signed)
                signed[132] ^= 1  # of the first identity that it names
                return replace(item, signed=bytes(signed))

    def _bundle(self, bundle: Bundle) -> Bundle:
        if not self._world.maybe(self._town.habits.forge_keys):
            return bundle
        self.has_lied = True
        match self._world.between(0, 2):
            case 0:
                self._world.hit("forged: signed prekey")
                return replace(bundle, signed=_turned(bundle.signed))
            case 1:
                self._world.hit("forged: KEM key")
                return replace(bundle, kem=_turned(bundle.kem))
            case _:
                self._world.hit("forged: identity")
                address = Address(bundle.device, bundle.registration)
                made = upload(
                    make_keys(address, SeededSecrets(self._world.chance), self._world.now, count=1, kem_count=1)
                )
                return Bundle(*address, made.identity, made.signed, made.one_time_kem[0], made.one_time[0])

    # --- the verdict --------------------------------------------------------------------------------

    def check_refused(self, entry: Entry) -> None:
        """This was opened: was it what somebody sealed?"""
        if entry in self.made and not self._device.was_older:
            raise self._device.history.broke("nothing forged opens", f"{self._device.name} opened {entry.id}")


def _key(item: Devices) -> bytes:
    try:
        return check_list(item.signed, item.account).key
    except Rejected:
        return b""


def _turned(published: bytes) -> bytes:
    key = bytearray(published)
    key[PREKEY] ^= 1
    return bytes(key)


FORGERIES: tuple[tuple[str, Forge], ...] = (
    ("MAC", Forger.mac),
    ("text", Forger.text),
    ("tag", Forger.tag),
    ("kind", Forger.kind),
    ("id", Forger.id),
    ("replay", Forger.replay),
    ("replay", Forger.replay),
)
