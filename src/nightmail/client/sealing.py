"""A message on its way out: its id, its tag, and an envelope for every device that must have one.

Knows:   for whom to seal, and what was sealed already. What sealing is, the sealer knows.
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.e2ee.note import NONCE_BYTES
from nightmail.model.ids import MessageId
from nightmail.model.records import Envelope, Sent
from nightmail.model.words import Kind, Lane

from .hub import Hub
from .messages import conversation_id
from .sealer import Note, Sealer, tag_of
from .store import DeviceList, Outgoing

CHANCE_DIGITS = 4
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def new_id(hub: Hub) -> str:
    """Unique without asking anybody, offline too: device, time, a count that only grows, and chance."""
    chance = "".join(hub.chance.choices(_DIGITS, k=CHANCE_DIGITS))
    return str(MessageId(hub.now, hub.store.next_sequence(), hub.identity.device, chance))


def address(hub: Hub, to: int, lane: Lane, n: int, ident: str, original: str, body: bytes, only: int) -> Outgoing:
    """A body under its number. The tag is made here once, so that every retry has the same."""
    nonce = hub.secrets.draw(NONCE_BYTES)
    tag = tag_of(nonce, body, conversation_id(hub.identity.account, to))
    return Outgoing(
        to=to, lane=lane, n=n, id=ident, original=original, only=only, nonce=nonce, tag=tag, composed_at=hub.now
    )


def addressed(hub: Hub, row: Outgoing, to: DeviceList, own: DeviceList) -> dict[int, int]:
    """Device → registration: everyone who must have an envelope."""
    # A note to oneself goes to the own devices as to any recipient's, and so once.
    both = to.devices if row.to == hub.identity.account else to.devices | own.devices
    me = hub.identity.device
    return {device: registration for device, registration in both.items() if device != me and row.only in (0, device)}


def unsealed(row: Outgoing, devices: dict[int, int]) -> dict[int, int]:
    """Those of them that have no envelope yet, or one from before they were reset."""
    kept = row.envelopes
    return {
        device: registration
        for device, registration in devices.items()
        if device not in kept or kept[device].registration != registration
    }


def seal(
    hub: Hub, sealer: Sealer, row: Outgoing, floor: int, to: DeviceList, own: DeviceList
) -> tuple[Outgoing, Sent]:  # fmt: skip
    """The record to send; and the row, which keeps what was sealed for whom, under which list.

    What has an envelope keeps it: the server may have the first attempt, and every retry is the same bytes.
    """
    devices = addressed(hub, row, to, own)
    body, kind, life_ms, stamp = _content(hub, row)
    if fresh := unsealed(row, devices):
        note = Note(row.nonce, row.original, body, stamp)
        made = {device: Envelope(device, reg, sealer.seal(device, reg, note)) for device, reg in fresh.items()}
        row = replace(row, envelopes={d: e for d, e in row.envelopes.items() if d in devices} | made)
    envelopes = tuple(row.envelopes[device] for device in to.devices if device in devices)
    own_envelopes = tuple(row.envelopes[device] for device in devices if device not in to.devices)
    theirs = tuple(envelope.device for envelope in envelopes)
    if row.sealed.get(to.version) != theirs:
        row = replace(row, sealed={**row.sealed, to.version: theirs})
    sent = Sent(
        to=row.to, lane=row.lane, n=row.n, floor=floor, seen=hub.store.conversation(row.to).seen,
        id=row.id, tag=row.tag, kind=kind, of=row.original if row.reseal else None,
        life_ms=life_ms, list_version=to.version, envelopes=envelopes, own_envelopes=own_envelopes,
    )  # fmt: skip
    return row, sent


def _content(hub: Hub, row: Outgoing) -> tuple[bytes, Kind, int, int]:
    """What a row carries, of which kind, for how long; and for a re-seal, when the server took the original."""
    if row.content:
        return row.content, Kind.CONTROL, 0, 0
    message = hub.store.message(row.original)
    assert message is not None, row.original
    return message.body, message.kind, message.life_ms, message.at if row.reseal else 0
