"""A message on its way out: its id, its tag, and an envelope for every device that must have one.

Knows:   for whom to seal. What sealing is, the sealer knows.
"""

from __future__ import annotations

from msgspec.structs import replace

from nightmail.model.ids import MessageId
from nightmail.model.records import Envelope, Sent
from nightmail.model.words import Lane

from .hub import Hub
from .messages import conversation_id
from .sealer import tag_of
from .store import DeviceList, Outgoing

NONCE_BYTES = 16
CHANCE_DIGITS = 4
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def new_id(hub: Hub) -> str:
    """Unique without asking anybody, offline too: device, time, a count that only grows, and chance."""
    chance = "".join(hub.chance.choices(_DIGITS, k=CHANCE_DIGITS))
    return str(MessageId(hub.now, hub.store.next_sequence(), hub.identity.device, chance))


def address(hub: Hub, to: int, lane: Lane, n: int, ident: str, original: str, body: bytes, only: int) -> Outgoing:
    """A body under its number. The tag is made here once, so that every retry has the same."""
    nonce = hub.chance.randbytes(NONCE_BYTES)
    tag = tag_of(nonce, body, conversation_id(hub.identity.account, to))
    return Outgoing(
        to=to, lane=lane, n=n, id=ident, original=original, only=only, nonce=nonce, tag=tag, composed_at=hub.now
    )


def seal(hub: Hub, row: Outgoing, floor: int, to: DeviceList, own: DeviceList) -> tuple[Outgoing, Sent]:
    """The record to send; and the row, which remembers for whom it was sealed under which list."""
    me = hub.identity
    message = hub.store.message(row.original)
    assert message is not None, row.original

    def envelopes_for(devices: dict[int, int]) -> tuple[Envelope, ...]:
        return tuple(
            Envelope(device, registration, hub.sealer.seal(message.body, row.nonce, device, registration))
            for device, registration in devices.items()
            if device != me.device and row.only in (0, device)
        )

    envelopes = envelopes_for(to.devices)
    # A note to oneself goes to the own devices as to any recipient's, and so once.
    own_envelopes = () if row.to == me.account else envelopes_for(own.devices)
    devices = tuple(envelope.device for envelope in envelopes)
    if row.sealed.get(to.version) != devices:
        row = replace(row, sealed={**row.sealed, to.version: devices})
    sent = Sent(
        to=row.to, lane=row.lane, n=row.n, floor=floor, seen=hub.store.conversation(row.to).seen,
        id=row.id, tag=row.tag, kind=message.kind, of=row.original if row.reseal else None,
        life_ms=message.life_ms, list_version=to.version, envelopes=envelopes, own_envelopes=own_envelopes,
    )  # fmt: skip
    return row, sent
