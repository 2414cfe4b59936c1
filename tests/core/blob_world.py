"""The fold with blobs: what the HTTP side would say, and what it would see."""

from __future__ import annotations

from typing import Any

from nightmail.core.blobs.reading import backups_seen, blob_seen, needs_backups, needs_seen
from nightmail.model.answers import Said
from nightmail.model.blob_rows import AccountBlobs, BlobSeen, Purpose
from nightmail.model.blobs import BlobId
from nightmail.model.effects import LookForBytes, RemoveBytes
from nightmail.model.ids import SERVER
from nightmail.model.records import BlobAddressed, BlobBegun, BlobCompleted, BlobRemoved, BlobVerified
from nightmail.model.rows import Kept

from .world import Person, World


class BlobWorld(World):
    _drawn = 0

    def draw(self, owner: Person) -> BlobId:
        self._drawn += 1
        return BlobId(owner.account, (self._drawn << 32).to_bytes(8, "big") * 2)

    def begin(self, name: BlobId, size: int = 100, purpose: Purpose = Purpose.MEDIA) -> Said | None:
        return self.do(SERVER, BlobBegun(*name, purpose, size))

    def complete(self, name: BlobId) -> Said | None:
        return self.do(SERVER, BlobCompleted(*name))

    def upload(self, owner: Person, size: int = 100, purpose: Purpose = Purpose.MEDIA) -> BlobId:
        name = self.draw(owner)
        self.begin(name, size, purpose)
        self.complete(name)
        return name

    def address(self, name: BlobId, *devices: int, life_ms: int = 0) -> Said | None:
        return self.do(SERVER, BlobAddressed(*name, devices, life_ms))

    def verify(self, name: BlobId, device: int) -> Said | None:
        return self.do(SERVER, BlobVerified(*name, device))

    def remove(self, name: BlobId) -> Said | None:
        return self.do(SERVER, BlobRemoved(*name))

    def seen(self, name: BlobId, device: int = SERVER) -> BlobSeen | None:
        node = self.of(name.owner)
        node.load(lambda state: needs_seen(state, name, device))
        return blob_seen(node.state, name, device)

    def backups(self, owner: Person) -> list[tuple[BlobId, BlobSeen]]:
        node = self.of(owner.account)
        node.load(lambda state: needs_backups(state, owner.account))
        return backups_seen(node.state, owner.account)

    def taken(self, owner: Person) -> AccountBlobs:
        found: Any = self.of(owner.account).row(Kept.ACCOUNT_BLOBS, owner.account)
        return found or AccountBlobs()

    def doomed(self) -> list[BlobId]:
        """The blobs whose bytes may go, after the last record or the time that passed."""
        return [BlobId(each.owner, each.secret) for each in self.effects if isinstance(each, RemoveBytes)]

    def doubted(self) -> list[BlobId]:
        """The blobs whose bytes are to be looked for."""
        return [BlobId(each.owner, each.secret) for each in self.effects if isinstance(each, LookForBytes)]
