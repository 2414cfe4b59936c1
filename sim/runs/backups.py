"""People who write, read, lose a device in the middle of it, and come back with a backup: nothing is shown twice, what
waits arrives, and the history is what it was.

Knows:   what the profile held at every backup; from that, what a restore must give.
Touches: the real client machines, sealer, backup and fold, in memory; backups are real files.

    python -m sim.runs.backups --seeds 200
"""

from __future__ import annotations

import tempfile
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import NamedTuple

from nightmail.client.backup.container import BEFORE_BYTES, walk
from nightmail.client.backup.looking import BackupInfo, open_backup
from nightmail.client.backup.making import make_backup, state_with
from nightmail.client.backup.restoring import check_account, restore_into
from nightmail.client.backup.schedule import state_in
from nightmail.client.errors import BackupError, BackupOfAnother
from nightmail.client.messages import Message
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Contact, ReadMark
from nightmail.e2ee.content import Content
from nightmail.e2ee.errors import Rejected
from nightmail.e2ee.streams.backup import BackupSecret, new_code
from nightmail.e2ee.streams.stream import HEAD_BYTES, SEALED_CHUNK_BYTES, StreamOpener, StreamSealer
from nightmail.model.words import Kind
from tests.client.sealed_town import a_town, pass_time, register_again
from tests.client.town import Device

from . import seeded_suite

ACTS = 60
LIFE_MS = 30_000


class Broken(Exception):
    """A promise about backups did not hold."""


class Held(NamedTuple):
    """What a profile holds that a backup must bring back."""

    messages: dict[str, tuple[object, ...]]
    unread: set[str]
    contacts: list[Contact]
    verified: set[int]


def _as_held(m: Message) -> tuple[object, ...]:
    return (m.peer, m.by, m.own, m.at, m.body, m.kind, m.state, m.reason)


def held_by(store: Store) -> Held:
    found = {message.id: _as_held(message) for message in store.messages_after("", 100_000) if message.is_past}
    accounts = [row for account in store.trusted_accounts() if (row := store.trusted(account)) is not None]
    return Held(
        found, {row.id for row in store.marked(ReadMark.UNREAD)} & found.keys(), store.contacts(),
        {row.account for row in accounts if row.verified},
    )  # fmt: skip


class Story:
    """Bob is the one who makes backups, and loses his device."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = Random(sha256(f"backups {seed}".encode()).digest())
        self.town, (ada, self.bob, cleo) = a_town("ada", "bob", "cleo", seed=seed)
        self.others = [ada, cleo]
        self.file = folder / "bob.backup"
        self.secret = new_code(self.town.secrets)
        self.saved: list[tuple[int, Held]] = []
        """Every backup: how many segments it had, and what it held."""
        self.bob.store.put_identity(self.bob.me)
        self.losses = 0
        self.restored: set[str] = set()
        """What the present device had from a backup."""
        self.older = b""
        """The file as it was some time ago."""

    def act(self) -> None:
        chance, other = self.chance, self.chance.choice(self.others)
        match chance.choices(range(9), (10, 6, 4, 3, 3, 5, 3, 2, 1))[0]:
            case 0:
                self._write(other, self.bob)
            case 1:
                self._write(self.bob, other)
            case 2:
                self.bob.read(other)
            case 3 if self.bob.plugged:
                self.bob.cut()
            case 4 if not self.bob.plugged:
                self.bob.connect()
            case 5:
                self._back_up()
            case 6:
                name = f"name {chance.randrange(5)}"
                self.bob.machine.put_contact(Contact(other.me.account, other.me.handle, name), self.town.now)
                self.bob.look()
            case 7:
                key = self.bob.machine.account_key(other.me.account)
                if key:
                    self.bob.machine.agree(other.me.account, self.town.now, key=key, verified=True)
                    self.bob.look()
            case 8 if self.saved and self.losses < 2:
                self._lose_device()
            case _:
                pass_time(self.town, chance.choice((10, 1_000, LIFE_MS)))
        if chance.random() < 0.7:
            self.town.settle()

    def _write(self, by: Device, to: Device) -> None:
        life_ms = LIFE_MS if self.chance.random() < 0.25 else 0
        text = f"text {self.chance.randrange(10**9)}"
        by.machine.write(to.me.account, Content(Kind.TEXT, text), self.town.now, life_ms=life_ms)
        by.look()

    # --- backups --------------------------------------------------------------------------------

    def _back_up(self) -> None:
        store = self.bob.store
        self.bob.look()
        if self.file.exists():
            if self.older and self.chance.random() < 0.2:
                self.file.write_bytes(self.older)  # somebody put an older copy back
            self.older = self.file.read_bytes()
        former = state_in(store)
        state = state_with(former, None if former else self.secret, self.town.secrets)
        made = make_backup(store, None, state, self.file, self.town.now, chance=self.town.secrets)
        self.bob.look()
        if made.is_whole:
            self.saved.clear()
        self.saved.append((made.segments, held_by(store)))
        self._check_saved()
        self._try_changed_files()

    def _check_saved(self) -> None:
        saved: dict[str, tuple[object, ...]] = {}
        for part in open_backup(self.file, self.secret).parts():
            for past in part.messages:
                saved.setdefault(past.id, _as_held(past.message()))
        if saved != self.saved[-1][1].messages:
            raise Broken("a backup holds what the profile holds")

    def _try_changed_files(self) -> None:
        """A file that somebody changed does not open; one that was cut between segments is an older backup."""
        right, walked = self.file.read_bytes(), walk(self.file)
        segments = self._segments(right)
        head, chance = right[: walked.segments[0].at - BEFORE_BYTES], self.chance
        tries: dict[str, bytes] = {"cut": right[: chance.randrange(len(head) + 1, len(right))]}
        place = chance.randrange(len(head), len(right))
        tries["changed"] = right[:place] + bytes((right[place] ^ 1 << chance.randrange(8),)) + right[place + 1 :]
        if len(segments) > 2:
            gone = chance.randrange(1, len(segments) - 1)
            tries["an increment is missing"] = head + b"".join(segments[:gone] + segments[gone + 1 :])
        if len(segments) > 1:
            tries["the beginning is missing"] = head + b"".join(segments[1:])
            tries["another order"] = head + b"".join(reversed(segments))
            tries["an increment twice"] = right + segments[-1]
        if self.older.startswith(head) and len(earlier := self._segments(self.older)) > 1 and earlier[0] != segments[0]:
            tries["an increment of an earlier file"] = head + segments[0] + earlier[1]
        cuts = {walked.segments[n].at - BEFORE_BYTES for n in range(1, len(segments))}
        for why, data in tries.items():
            if why == "cut" and len(data) in cuts:
                continue
            self._must_not_open(why, data, self.secret)
        self._must_not_open("another code", right, new_code(self.town.secrets))

    def _segments(self, data: bytes) -> list[bytes]:
        other = self.file.with_name("other.backup")
        other.write_bytes(data)
        return [data[each.at - BEFORE_BYTES : each.at + each.length] for each in walk(other).segments]

    def _must_not_open(self, why: str, data: bytes, secret: BackupSecret) -> None:
        other = self.file.with_name("changed.backup")
        other.write_bytes(data)
        try:
            open_backup(other, secret)
        except BackupError:
            return
        raise Broken(f"a changed backup is refused: {why}")

    def _lose_device(self) -> None:
        town, old = self.town, self.bob
        self._note_shown()
        self.losses += 1
        new = register_again(town, old, 9 + self.losses)
        new.store.put_identity(new.me)
        new.store.commit()
        opened = open_backup(self.file, self.secret)
        restore_into(new.store, opened, town.now, limits=new.limits, chance=town.secrets)
        wanted, got = self.saved[-1][1], held_by(new.store)
        if wanted != got:
            raise Broken("a restore gives what was saved")
        self._check_account(opened.info)
        self._check_nothing_secret(old.store, new.store)
        new.crash()
        self.bob = new
        # The new device has a history of its own from here on, and makes a backup under a new code.
        self.saved.clear()
        self.secret = new_code(town.secrets)
        self.file.unlink()
        self.older = b""
        self.restored = set(wanted.messages)
        new.connect()
        pass_time(town, 1_000, 10_000)

    def _check_account(self, info: BackupInfo) -> None:
        try:
            check_account(info, self.others[0].me)
        except BackupOfAnother:
            return
        raise Broken("nobody restores the backup of another account")

    def _check_nothing_secret(self, old: Store, new: Store) -> None:
        messages = new.messages_after("", 100_000)
        if timed := [message.id for message in messages if message.life_ms or message.deadline]:
            raise Broken(f"nothing that disappears comes back: {timed}")
        if any(not message.is_past for message in messages) or new.outgoing():
            raise Broken("nothing that waits to be sent comes back")
        if any(new.peer(device) == old.peer(device) for device in new.peers()):
            raise Broken("no session comes back")

    # --- the end --------------------------------------------------------------------------------

    def _note_shown(self) -> None:
        """Whatever the present device was told; none of it may have been restored to it or shown before on it."""
        seen: set[str] = set()
        for message in self.bob.told(Message):
            if message.id in seen or message.id in self.restored:
                raise Broken(f"nothing is shown twice: {message.id}")
            seen.add(message.id)

    def end(self) -> None:
        for device in (*self.others, self.bob):
            if not device.plugged:
                device.connect()
        pass_time(self.town, 1_000, 10_000, 10_000, 60_000, 60_000)
        self._note_shown()
        for other in self.others:
            for message in other.store.messages_after("", 100_000):
                # A restored history may lack what the lost device took after its backup; nothing else.
                if message.own and message.peer == self.bob.me.account and not message.life_ms:
                    self._check_arrived(other, message)

    def _check_arrived(self, other: Device, message: Message) -> None:
        here = self.bob.store.message(message.id) is not None
        places = {device for device, place in message.places.items() if place.state.name in ("DELIVERED", "READ")}
        if message.state.name in ("PENDING", "SENT") or (self.bob.me.device in places and not here):
            raise Broken(f"what waits arrives: {message.id} of {other.me.handle} is {message.state.name}")


def _try_streams(chance: Random) -> None:
    """Streams of several chunks, which these backups are too short for."""
    sealer = StreamSealer(key := chance.randbytes(32))
    content = chance.randbytes(chance.randrange(140_000, 260_000))
    chunks = [chunk.data for chunk in sealer.chunks([content])]
    swapped = [chunks[1], chunks[0], *chunks[2:]]
    other = StreamSealer(chance.randbytes(32))
    tries = {
        "cut": [sealer.head, *chunks[:-1]], "swapped": [sealer.head, *swapped],
        "another commitment": [other.head, *chunks], "extended": [sealer.head, *chunks, chunks[-1]],
        "one twice": [sealer.head, chunks[0], *chunks],
    }  # fmt: skip
    assert all(len(chunk) == SEALED_CHUNK_BYTES for chunk in chunks[:-1])
    assert len(sealer.head) == HEAD_BYTES
    for why, pieces in tries.items():
        try:
            list(StreamOpener(key).content(pieces))
        except Rejected:
            continue
        raise Broken(f"a changed stream is refused: {why}")


def run(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        story = Story(seed, Path(folder))
        _try_streams(story.chance)
        for _ in range(ACTS):
            story.act()
        story.end()


if __name__ == "__main__":
    seeded_suite.main("backups", __doc__, run)
