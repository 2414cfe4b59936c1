"""One outgoing message: its id, its tag, and an envelope for every device that must have one.

Knows:   for whom to seal, and what was sealed already. How to seal, the sealer knows.
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.client.machine.context import Context
from nightmail.client.messages import conversation_id
from nightmail.client.store.rows import DeviceList, Outgoing
from nightmail.client.timers.lives import left_ms
from nightmail.client.trust.sealer import Sealer
from nightmail.e2ee.note import NONCE_BYTES, Note, tag_of
from nightmail.model.ids import MessageId
from nightmail.model.records import Envelope, Sent
from nightmail.model.words import Kind, Lane

CHANCE_DIGITS = 4
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def new_id(context: Context) -> str:
    """Unique without asking anybody, offline too: device, time, a count that only grows, random digits."""
    chance = "".join(context.chance.choices(_DIGITS, k=CHANCE_DIGITS))
    return str(MessageId(context.now, context.store.next_sequence(), context.identity.device, chance))


def address(
    context: Context, to: int, lane: Lane, n: int, ident: str, original: str, body: bytes, only: int
) -> Outgoing:
    """The row for a body. Its tag is made once, so that every retry has the same."""
    nonce = context.secrets.draw(NONCE_BYTES)
    tag = tag_of(nonce, body, conversation_id(context.identity.account, to))
    return Outgoing(
        to=to, lane=lane, n=n, id=ident, original=original, only=only, nonce=nonce, tag=tag, composed_at=context.now
    )


def addressed(context: Context, row: Outgoing, to: DeviceList, own: DeviceList) -> dict[int, int]:
    """Device → registration: every device that must have an envelope."""
    # A note to oneself: the own devices are the recipient's devices, and get it once.
    both = to.devices if row.to == context.identity.account else to.devices | own.devices
    me = context.identity.device
    return {device: registration for device, registration in both.items() if device != me and row.only in (0, device)}


def unsealed(row: Outgoing, devices: dict[int, int]) -> dict[int, int]:
    """Those of them that have no envelope yet, or one for a former registration."""
    kept = row.envelopes
    return {
        device: registration
        for device, registration in devices.items()
        if device not in kept or kept[device].registration != registration
    }


def seal(
    context: Context, sealer: Sealer, row: Outgoing, floor: int, to: DeviceList, own: DeviceList
) -> tuple[Outgoing, Sent]:  # fmt: skip
    """The record to send; and the row, which keeps what was sealed for which device, by which list.

    A device that has an envelope keeps it: the server may have the first attempt, and every retry is the same bytes.
    """
    devices = addressed(context, row, to, own)
    body, kind, life_ms, stamp = content_of(context, row)
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
        to=row.to, lane=row.lane, n=row.n, floor=floor, seen=context.store.conversation(row.to).seen,
        id=row.id, tag=row.tag, kind=kind, of=row.original if row.reseal else None,
        life_ms=life_ms, list_version=to.version, envelopes=envelopes, own_envelopes=own_envelopes,
    )  # fmt: skip
    return row, sent


def content_of(context: Context, row: Outgoing) -> tuple[bytes, Kind, int, int]:
    """What a row carries, its kind, its life or what is left of it; and for a re-seal, when the server took the
    original."""
    if row.content:
        return row.content, Kind.CONTROL, 0, 0
    message = context.store.message(row.original)
    assert message is not None, row.original
    if row.reseal:
        return message.body, message.kind, left_ms(context, message), message.at
    return message.body, message.kind, message.life_ms, 0
