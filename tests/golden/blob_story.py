"""What the golden logs tell of blobs: begun, whole, addressed, verified, removed, ended.

Knows:   a town in which nobody of these people lives yet.
"""

from __future__ import annotations

from nightmail.model.blob_rows import Purpose
from nightmail.model.blobs import BlobId
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS
from nightmail.model.records import BlobAddressed, BlobBegun, BlobCompleted, BlobRemoved, BlobVerified, Closed
from tests.core.schedule_world import ScheduleWorld
from tests.core.world import Person

MEDIA, BACKUP = Purpose


def tell_of_blobs(town: ScheduleWorld) -> None:
    mia, nils = town.join("mia", 2), town.join("nils", 2)
    town.limit(media_bytes=500, media_quota_bytes=1_000, backup_quota_bytes=100, media_uploads=4, backups=2)
    _audiences(town, mia, nils)
    _refusals(town, mia, nils)
    _ends(town, mia, nils)
    town.limit()


def _begin(town: ScheduleWorld, owner: Person, number: int, size: int = 10, purpose: Purpose = MEDIA) -> BlobId:
    name = BlobId(owner.account, bytes([number]) * 16)
    town.do(SERVER, BlobBegun(*name, purpose, size))
    return name


def _upload(town: ScheduleWorld, owner: Person, number: int, size: int = 10, purpose: Purpose = MEDIA) -> BlobId:
    name = _begin(town, owner, number, size, purpose)
    town.do(SERVER, BlobCompleted(*name))
    return name


def _audiences(town: ScheduleWorld, mia: Person, nils: Person) -> None:
    """Named in two requests, verified by each, one of them twice; then it is gone."""
    name = _upload(town, mia, 1)
    town.do(SERVER, BlobCompleted(*name))
    town.do(SERVER, BlobAddressed(*name, (nils[1], nils[2], nils[1])))
    town.do(SERVER, BlobAddressed(*name, (nils[1], mia[2])))
    for device in (nils[1], nils[1], mia[1], mia[2], nils[2], nils[2]):
        town.do(SERVER, BlobVerified(*name, device))
    large = _upload(town, mia, 2)
    for first in (0, 256):
        town.do(SERVER, BlobAddressed(*large, tuple(range(first + 1, first + 257))))
    town.do(SERVER, BlobAddressed(*large, (nils[1],)))
    town.do(SERVER, BlobVerified(*large, nils[1]))
    town.do(SERVER, BlobRemoved(*large))


def _refusals(town: ScheduleWorld, mia: Person, nils: Person) -> None:
    """Too large, beyond a quota, too many, not whole, a backup for others, a name that there is not."""
    town.limit(media_bytes=500, media_quota_bytes=1_000, backup_quota_bytes=100, media_uploads=2, backups=1,
               media_files=4, media_devices=2)  # fmt: skip
    _begin(town, mia, 3, 501)
    first, second = _upload(town, mia, 4, 500), _upload(town, mia, 5, 400)
    _begin(town, mia, 6, 101)
    _begin(town, mia, 4, 1)
    backup = _begin(town, mia, 7, 50, BACKUP)
    town.do(SERVER, BlobAddressed(*backup, (nils[1],)))
    town.do(SERVER, BlobCompleted(*backup))
    _begin(town, mia, 8, 1, BACKUP)
    begun = _begin(town, mia, 9)
    town.do(SERVER, BlobAddressed(*begun, (nils[1],)))
    town.do(SERVER, BlobAddressed(*first, (nils[1], nils[2], mia[1])))
    _begin(town, mia, 10)
    town.do(SERVER, BlobRemoved(*begun))
    for number in (11, 12, 13):
        _begin(town, nils, number, 1)
    unknown = BlobId(mia.account, b"?" * 16)
    town.do(SERVER, BlobCompleted(*unknown))
    town.do(SERVER, BlobRemoved(*unknown))
    town.do(SERVER, BlobVerified(*unknown, nils[1]))
    town.do(SERVER, BlobBegun(1, b"?" * 16, MEDIA, 1))
    town.do(SERVER, BlobRemoved(*second))


def _ends(town: ScheduleWorld, mia: Person, nils: Person) -> None:
    """After a timer, after a day without an end, after thirty days, and with its owner."""
    timed = _upload(town, mia, 20)
    town.do(SERVER, BlobAddressed(*timed, (nils[1],), 60_000))
    town.wait(61_000)
    town.wait(DAY_MS)
    _upload(town, nils, 21)
    _upload(town, nils, 22, 10, BACKUP)
    town.wait(DAY_MS + 1_000)
    town.do(nils[1], Closed(nils.account))
    town.wait(DAY_MS + 1_000)
    town.wait(31 * DAY_MS)
