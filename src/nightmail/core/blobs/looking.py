"""A blob is looked at, once a day and when it ends.

Knows:   one blob, and whether its owner's account exists.
Touches: its rows and the due rows; through an effect, the engine, which looks whether the bytes are there.
Never:   ends a blob before its time, whatever the clock did meanwhile.
"""

from __future__ import annotations

from nightmail.core import due
from nightmail.core.rights import check_rights
from nightmail.core.rules import Steps
from nightmail.core.state import ShardState, missing_row
from nightmail.model.blob_rows import Blob
from nightmail.model.effects import LookForBytes
from nightmail.model.ids import SERVER
from nightmail.model.limits import DAY_MS
from nightmail.model.records import BlobLooked
from nightmail.model.rows import DueFor, DueItem, Kept, Need
from nightmail.model.words import Lane

from .keeping import needs_audience, needs_blob, remove


def needs_looked(state: ShardState, _by: int, looked: BlobLooked) -> list[Need]:
    missing: list[Need] = []
    blob = needs_blob(state, looked.owner, looked.key, missing)
    missing_row(state.accounts, Kept.ACCOUNT, looked.owner, missing)
    if blob is None or missing or _is_old(blob, looked):
        return missing
    if _is_over(state, looked.owner, blob):
        needs_audience(state, looked.owner, looked.key, blob, missing)
    elif moment := _next_look(state, blob, looked):
        due.needs_schedule(state, moment, 1, missing)
    return missing


def step_looked(state: ShardState, _by: int, _via: int, looked: BlobLooked) -> None:
    blob = state.blobs[looked.owner, looked.key]
    if blob is None or _is_old(blob, looked):
        return
    if _is_over(state, looked.owner, blob):
        remove(state, looked.owner, looked.key, blob)
        return
    if moment := _next_look(state, blob, looked):
        blob.look = moment
        state.blobs.put((looked.owner, looked.key), blob, state.offset)
        due.schedule(state, moment, DueItem(looked.owner, Lane.NORMAL, looked.key, DueFor.BLOB, moment))
    if looked.moment and blob.is_whole:
        state.effects.append(LookForBytes(looked.owner, blob.secret))


def _is_old(blob: Blob, looked: BlobLooked) -> bool:
    return bool(looked.moment) and looked.moment != blob.look


def _is_over(state: ShardState, owner: int, blob: Blob) -> bool:
    """Its time has come, or nobody owns it any more."""
    if check_rights(SERVER, state.accounts[owner], owner):
        return True
    return bool(blob.life_ms) and not due.waits_until(state, blob.since, blob.since_at, blob.life_ms)


def _next_look(state: ShardState, blob: Blob, looked: BlobLooked) -> int:
    """The moment to look again; 0: it stays as it is planned."""
    moment = due.moment_of(state, state.now + DAY_MS)
    if blob.life_ms:
        moment = min(moment, due.waits_until(state, blob.since, blob.since_at, blob.life_ms))
    is_planned = blob.look and not looked.moment and blob.look <= moment
    return 0 if is_planned else moment


STEPS: Steps = {7: {BlobLooked: (needs_looked, step_looked)}}
