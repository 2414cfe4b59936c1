"""A message's whole life, put together from the delivery log.

Knows:   notes, which say what became of records; never rows, and never content.
Never:   is part of the fold: it reads what the fold left behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from nightmail.model.group_chain import is_group
from nightmail.model.ids import SERVER, MessageId, log_of
from nightmail.model.notes import ConnectionChanged, Dropped, Fetched, Looked, Note, Placed, Taken, Withheld
from nightmail.model.spans import contains
from nightmail.model.traces import Event, Trace
from nightmail.model.words import Lane, MessageState, Reason

decode_notes = msgspec.msgpack.Decoder(list[Note]).decode


class FiledEntry(Struct):
    """Where one device's entry of a message, or of a re-seal of it, was filed, and what became of it there."""

    placed: Placed
    device: int
    seq: int
    filed: int = -1
    """Which event tells of it; -1: none, its mailbox was full, or its sender is blocked."""
    online: bool | None = None
    """Whether the device was connected then, as far as it is known."""
    state: MessageState = MessageState.SENT


def author_of(message_id: str) -> int:
    """The device whose notes speak of the message. Raises ValueError for what is no id."""
    return MessageId.parse(message_id).device


def placements(message_id: str, pieces: Iterable[bytes]) -> Iterator[Placed]:
    """Where and when the message, and each re-seal of it, was filed. `pieces` speak of its author."""
    for piece in pieces:
        for note in decode_notes(piece):
            if isinstance(note, Placed) and message_id in (note.id, note.of):
                yield note


BEST_LAST = (MessageState.FAILED, MessageState.SENT, MessageState.DELIVERED, MessageState.READ)
"""A message that failed on a device and was sealed again for it is still on its way."""


def merged(message_id: str, parts: Iterable[Trace]) -> Trace:
    """What several shards know of one message: each tells of its own devices."""
    whole = Trace(message_id, [], {})
    for part in parts:
        whole.events += part.events
        whole.states |= part.states
        whole.group = whole.group or part.group
    whole.events.sort(key=lambda event: event.at)
    return whole


def trace(message_id: str, placed: Iterable[Placed], pieces: Iterable[bytes]) -> Trace:
    """Follow the placements through the notes of the devices they went to. A note that comes twice is told once."""
    found = Trace(message_id, [], {})
    places: list[FiledEntry] = []
    for note in dict.fromkeys(placed):
        found.group = note.to if is_group(note.to) else 0
        found.events.append(Event(note.at, 0, "blocked" if note.blocked else "copied" if note.copy else "accepted"))
        for device, seq in note.places:
            place = FiledEntry(note, device, seq)
            places.append(place)
            if seq:
                place.filed = len(found.events)
                found.events.append(Event(note.at, device, f"queued:{seq}"))
            elif not note.blocked:
                _fail(found, place, note.at, Reason.MAILBOX_FULL)
    connected: set[int] = set()
    for piece in pieces:
        for note in decode_notes(piece):
            if type(note) is ConnectionChanged:
                _note_connection(connected, note)
                continue
            for place in places:
                _follow(found, place, note, connected)
    for place in places:
        if place.online:
            found.events[place.filed] = Event(place.placed.at, place.device, f"online:{place.seq}")
        states = (place.state, found.states.get(place.device, place.state))
        found.states[place.device] = max(states, key=BEST_LAST.index)
    found.events = sorted(dict.fromkeys(found.events), key=lambda event: event.at)
    return found


def _note_connection(connected: set[int], note: ConnectionChanged) -> None:
    """Who is connected from this line on."""
    if note.here:
        connected.add(note.device)
    elif note.device == SERVER:
        connected.clear()
    else:
        connected.discard(note.device)


def _follow(found: Trace, place: FiledEntry, note: Note, connected: set[int]) -> None:
    placed = place.placed
    # A group's log has one lane, whatever that of the message is.
    here = place.device, Lane.NORMAL if place.device == log_of(placed.to) else placed.lane
    match note:
        case Placed() if place.online is None and note == placed:
            place.online = place.filed >= 0 and place.device in connected
        case Taken() if (note.device, note.lane) == here and note.low <= place.seq <= note.high:
            if place.seq in note.unreadable:
                _fail(found, place, note.at, Reason.UNDECRYPTABLE)
            else:
                _reach(found, place, note.at, MessageState.DELIVERED)
            found.events.append(Event(note.at, place.device, "deleted"))
        case Dropped() if (note.device, note.lane) == here and note.seq == place.seq:
            _fail(found, place, note.at, note.reason)
            found.events.append(Event(note.at, place.device, "deleted"))
        case Withheld() if (note.device, note.lane) == here and place.seq in note.seqs:
            # Its state stays: the sender is told nothing.
            found.events += [Event(note.at, place.device, "blocked"), Event(note.at, place.device, "deleted")]
        case Fetched() if (log_of(note.group), contains(note.numbers, place.seq)) == (place.device, True):
            # The entry stays in the group's log for the others: each device that has fetched it is told of by itself.
            reached = FiledEntry(placed, note.device, place.seq)
            if place.seq in note.unreadable:
                _fail(found, reached, note.at, Reason.UNDECRYPTABLE)
            else:
                _reach(found, reached, note.at, MessageState.DELIVERED)
            found.states[note.device] = reached.state
        case Looked() if placed.to & 1 and _was_read(note, placed, here):
            _reach(found, place, note.at, MessageState.READ)
        case _:
            pass


def _was_read(note: Looked, placed: Placed, here: tuple[int, Lane]) -> bool:
    """The numbers are those between two people: a group has others."""
    return (note.device, note.lane, note.by) == (*here, placed.by) and note.low <= placed.n <= note.high


def _reach(found: Trace, place: FiledEntry, at: int, state: MessageState) -> None:
    found.events.append(Event(at, place.device, state.name.lower()))
    place.state = max(place.state, state)


def _fail(found: Trace, place: FiledEntry, at: int, reason: Reason) -> None:
    found.events.append(Event(at, place.device, f"failed:{reason.name.lower()}"))
    place.state = MessageState.FAILED
