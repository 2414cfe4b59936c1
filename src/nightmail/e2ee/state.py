"""Stored states: bytes that begin with their form, so that data once written stays readable.

Spec:    none of its own. kind u8 ‖ form u8 ‖ msgpack array.
Knows:   the forms. A change of any stored struct raises its form here and adds the step that lifts the former form.
Never:   encrypts: the store it goes into is sealed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from nightmail.e2ee.groups.chain import Membership
from nightmail.e2ee.groups.sender_keys import ReceivingChain, SenderChain

from .errors import StateDamaged, StateTooNew
from .keys import DeviceKeys
from .peers import Peer
from .quiet import Quiet

T = TypeVar("T", bound=Quiet)
Lift: TypeAlias = Callable[[list[Any]], list[Any]]
"""From the array of one form to that of the next."""


class StoredForm(NamedTuple):
    name: str
    number: int
    """Of the kind. On disk: never used again for another."""
    lifts: tuple[Lift, ...] = ()
    """The first lifts form 1 to form 2, and so on. So the newest form is one more than there are lifts."""

    @property
    def newest(self) -> int:
        return len(self.lifts) + 1


KEYS = StoredForm("device keys", 1)
PEER = StoredForm("sessions", 2)
SENDER_CHAIN = StoredForm("sender chain", 3)
RECEIVING_CHAIN = StoredForm("receiving chain", 4)
MEMBERSHIP = StoredForm("membership", 5)

_encode = msgspec.msgpack.Encoder().encode
_decode_any = msgspec.msgpack.Decoder(list[Any]).decode


def encode_keys(keys: DeviceKeys) -> bytes:
    return bytes((KEYS.number, KEYS.newest)) + _encode(keys)


def decode_keys(data: bytes) -> DeviceKeys:
    return decode_state(data, KEYS, DeviceKeys)


def encode_peer(peer: Peer) -> bytes:
    return bytes((PEER.number, PEER.newest)) + _encode(peer)


def decode_peer(data: bytes) -> Peer:
    return decode_state(data, PEER, Peer)


def encode_sender_chain(chain: SenderChain) -> bytes:
    return bytes((SENDER_CHAIN.number, SENDER_CHAIN.newest)) + _encode(chain)


def decode_sender_chain(data: bytes) -> SenderChain:
    return decode_state(data, SENDER_CHAIN, SenderChain)


def encode_receiving_chain(chain: ReceivingChain) -> bytes:
    return bytes((RECEIVING_CHAIN.number, RECEIVING_CHAIN.newest)) + _encode(chain)


def decode_receiving_chain(data: bytes) -> ReceivingChain:
    return decode_state(data, RECEIVING_CHAIN, ReceivingChain)


def encode_membership(membership: Membership) -> bytes:
    return bytes((MEMBERSHIP.number, MEMBERSHIP.newest)) + _encode(membership)


def decode_membership(data: bytes) -> Membership:
    return decode_state(data, MEMBERSHIP, Membership)


def decode_state(data: bytes, form: StoredForm, into: type[T]) -> T:
    """A stored state, lifted to the newest form if need be. An error says nothing about the content."""
    if len(data) < 2 or data[0] != form.number or data[1] == 0:
        raise StateDamaged(form.name)
    if data[1] > form.newest:
        raise StateTooNew(form.name, data[1], form.newest)
    try:
        if data[1] == form.newest:
            return msgspec.msgpack.decode(data[2:], type=into)
        fields = _decode_any(data[2:])
        for lift in form.lifts[data[1] - 1 :]:
            fields = lift(fields)
        return msgspec.convert(fields, into)
    except (msgspec.DecodeError, msgspec.ValidationError, IndexError, KeyError, TypeError, ValueError):
        raise StateDamaged(form.name) from None
