"""A message's whole life, put together from the delivery log.

Knows:   notes, which say what became of records; never rows, and never content.
Never:   is part of the fold: it reads what the fold left behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from nightmail.model.ids import MessageId
from nightmail.model.notes import Dropped, Looked, Note, Placed, Taken
from nightmail.model.words import Lane, Reason, State

decode_notes = msgspec.msgpack.Decoder(list[Note]).decode


class Event(Struct, frozen=True):
    """One thing that happened to a message, on one device (0: at the server)."""

    at: int
    device: int
    what: str
    """accepted, copied, blocked, `queued:{seq}`, delivered, read, `failed:{reason}`, or deleted (from the server)."""


class Place(Struct, frozen=True):
    """Where one device's entry of a message was filed."""

    device: int
    lane: Lane
    seq: int
    copy: bool


class Trace(Struct):
    """Everything the delivery log knows about one message id."""

    id: str
    events: list[Event]
    states: dict[int, State]
    """Device → what became of it there."""


def author_of(message_id: str) -> int:
    """The device whose notes speak of the message. Raises ValueError for what is no id."""
    return MessageId.parse(message_id).device


def placements(message_id: str, blocks: Iterable[bytes]) -> Iterator[Placed]:
    """Where and when the message, and each re-seal of it, was filed. `blocks` speak of its author."""
    for block in blocks:
        for note in decode_notes(block):
            if isinstance(note, Placed) and message_id in (note.id, note.of):
                yield note


def trace(message_id: str, placed: Iterable[Placed], blocks: Iterable[bytes]) -> Trace:
    """Follow the placements through the notes of the devices they went to."""
    found = Trace(message_id, [], {})
    places: list[tuple[Placed, Place]] = []
    for note in placed:
        found.events.append(Event(note.at, 0, "blocked" if note.blocked else "copied" if note.copy else "accepted"))
        for device, seq in note.places:
            if seq:
                places.append((note, Place(device, note.lane, seq, note.copy)))
                found.events.append(Event(note.at, device, f"queued:{seq}"))
                found.states.setdefault(device, State.SENT)
            else:
                _fail(found, note.at, device, Reason.MAILBOX_FULL)
    for block in blocks:
        for note in decode_notes(block):
            _follow(found, places, note)
    found.events.sort(key=lambda event: event.at)
    return found


def _follow(found: Trace, places: list[tuple[Placed, Place]], note: Note) -> None:
    for placed, place in places:
        here = (place.device, place.lane)
        match note:
            case Taken() if (note.device, note.lane) == here and note.low <= place.seq <= note.high:
                if place.seq in note.unreadable:
                    _fail(found, note.at, place.device, Reason.UNDECRYPTABLE)
                else:
                    _reach(found, note.at, place.device, State.DELIVERED)
                found.events.append(Event(note.at, place.device, "deleted"))
            case Dropped() if (note.device, note.lane) == here and note.seq == place.seq:
                _fail(found, note.at, place.device, note.reason)
                found.events.append(Event(note.at, place.device, "deleted"))
            case Looked() if (note.device, note.by, note.lane) == (place.device, placed.by, placed.lane):
                if note.low <= placed.n <= note.high:
                    _reach(found, note.at, place.device, State.READ)
            case _:
                pass


def _reach(found: Trace, at: int, device: int, state: State) -> None:
    found.events.append(Event(at, device, state.name.lower()))
    found.states[device] = max(found.states.get(device, State.SENT), state)


def _fail(found: Trace, at: int, device: int, reason: Reason) -> None:
    found.events.append(Event(at, device, f"failed:{reason.name.lower()}"))
    found.states[device] = State.FAILED
