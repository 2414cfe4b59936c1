"""Whom a blob is for, and who has it.

Knows:   a blob and the pages of its audience.
Touches: the page of the devices that are named, or of the one that has it. After the last one the blob is removed.
"""

from __future__ import annotations

from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_pair
from nightmail.model.answers import Done, Said
from nightmail.model.blob_rows import PAGE_BITS, PAGE_DEVICES, AudiencePage, Blob, Purpose, page_number
from nightmail.model.blobs import BlobId
from nightmail.model.effects import Answer
from nightmail.model.records import BlobAddressed, BlobLooked, BlobVerified
from nightmail.model.refusals import BackupPrivate, BlobUnfinished, TooManyAddressed, UnknownBlob
from nightmail.model.rows import Kept, Need

from .keeping import find, needs_audience, needs_blob, pages_of, remove

# --- named --------------------------------------------------------------------------------------


def needs_addressed(state: ShardState, _by: int, addressed: BlobAddressed) -> list[Need]:
    missing: list[Need] = []
    owner, key = addressed.owner, BlobId(addressed.owner, addressed.secret).key
    if blob := needs_blob(state, owner, key, missing):
        needs_audience(state, owner, key, blob, missing)
        missing_pair(state.audiences, Kept.AUDIENCE, page_number(owner, blob.pages), key, missing)
    return missing


def step_addressed(state: ShardState, _by: int, via: int, addressed: BlobAddressed) -> None:
    name = BlobId(addressed.owner, addressed.secret)
    blob = find(state, name)
    said: Said = Done()
    if blob is None:
        said = UnknownBlob()
    elif blob.purpose is Purpose.BACKUP:
        said = BackupPrivate()
    elif not blob.is_whole:
        said = BlobUnfinished()
    else:
        said = _name(state, name, blob, addressed)
    state.effects.append(Answer(via, said))


def _name(state: ShardState, name: BlobId, blob: Blob, addressed: BlobAddressed) -> Said:
    pages = pages_of(state, name.owner, name.key, blob)
    new = [each for each in dict.fromkeys(addressed.devices) if not any(each in page.devices for page in pages)]
    most = min(state.shard.limits.media_devices, PAGE_DEVICES << PAGE_BITS)
    if blob.devices + len(new) > most:
        return TooManyAddressed(most)
    for device in new:
        number = blob.devices // PAGE_DEVICES
        if number == len(pages):
            pages.append(AudiencePage())
        pages[number].devices[device] = False
        blob.devices += 1
        state.audiences.put((page_number(name.owner, number), name.key), pages[number], state.offset)
    if addressed.life_ms:
        life_ms = state.elapsed - blob.since + addressed.life_ms
        blob.life_ms = min(blob.life_ms, life_ms) if blob.life_ms else life_ms
        state.derived.append(BlobLooked(name.owner, name.key, 0))
    state.blobs.put((name.owner, name.key), blob, state.offset)
    return Done()


# --- verified -----------------------------------------------------------------------------------


def needs_verified(state: ShardState, _by: int, verified: BlobVerified) -> list[Need]:
    missing: list[Need] = []
    key = BlobId(verified.owner, verified.secret).key
    if blob := needs_blob(state, verified.owner, key, missing):
        needs_audience(state, verified.owner, key, blob, missing)
    return missing


def step_verified(state: ShardState, _by: int, via: int, verified: BlobVerified) -> None:
    """A device that was not named is told what one hears that asks for a blob that there is not."""
    name = BlobId(verified.owner, verified.secret)
    blob = find(state, name)
    said: Said = UnknownBlob()
    if blob is not None:
        for number, page in enumerate(pages_of(state, name.owner, name.key, blob)):
            if (has_it := page.devices.get(verified.device)) is None:
                continue
            said = Done()
            if not has_it:
                page.devices[verified.device] = True
                blob.verified += 1
                state.audiences.put((page_number(name.owner, number), name.key), page, state.offset)
                state.blobs.put((name.owner, name.key), blob, state.offset)
                if blob.verified == blob.devices:
                    remove(state, name.owner, name.key, blob)
            break
    state.effects.append(Answer(via, said))


STEPS: Steps = {
    7: {
        BlobAddressed: (needs_addressed, step_addressed),
        BlobVerified: (needs_verified, step_verified),
    }
}
