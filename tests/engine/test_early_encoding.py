from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from nightmail.core.state import ShardState
from nightmail.engine.early_encoding import ENTRIES_SHARE, LINES, PIECE_LINES, REST_MS, EarlyEncoding
from nightmail.engine.loop import LoopLimits
from nightmail.engine.ports import Saving
from nightmail.engine.saver import Saver, SaverLimits, take_checkpoint
from nightmail.model.notes import Note, Taken
from nightmail.model.records import Acked
from nightmail.model.rows import queue_id
from nightmail.model.words import Lane
from tests.engine.rig import BOB, PHONE, START, TABLET, Rig, a_message, started

SELDOM = LoopLimits(saver=SaverLimits(checkpoint_ms=10**9))
NORMAL = Lane.NORMAL
QUEUE = queue_id(TABLET, NORMAL)


def decoded(pieces: Sequence[bytes]) -> list[Note]:
    return [note for piece in pieces for note in msgspec.msgpack.decode(piece, type=list[Note])]


def a_rig() -> Rig:
    rig = started(SELDOM)
    rig.loop.save(at_once=True)
    rig.say(PHONE, a_message(1))
    return rig


def rested(encoding: EarlyEncoding, state: ShardState) -> None:
    """Let two looks pass, far enough from each other that what changed before them has come to rest."""
    encoding.look(state, 0)
    encoding.look(state, REST_MS)


def early(encoding: EarlyEncoding) -> list[Saving]:
    """The rows that are encoded already."""
    return [row for table in encoding._tables for row in table._ready if row]  # pyright: ignore[reportPrivateUsage]


def early_entries(encoding: EarlyEncoding) -> dict[tuple[int, int], bytes]:
    return encoding._entries._ready.copy()  # pyright: ignore[reportPrivateUsage]


def keys(rows: Sequence[Saving]) -> list[tuple[int, int]]:
    return [row[1:3] for row in rows]


def test_a_row_at_rest_is_encoded_once_and_taken_as_it_is() -> None:
    rig, encoding = a_rig(), EarlyEncoding()
    rested(encoding, rig.loop.state)
    ready = {id(row) for row in early(encoding)}
    assert ready
    taken = take_checkpoint(rig.loop.state, START, encoding)
    assert ready <= {id(row) for row in taken.rows}


def test_looking_ahead_changes_nothing_of_what_a_checkpoint_holds() -> None:
    patient, hasty, encoding = a_rig(), a_rig(), EarlyEncoding()
    rested(encoding, patient.loop.state)
    for rig in (patient, hasty):
        rig.say(PHONE, a_message(2))
        rig.say(TABLET, Acked(NORMAL, 1))
    encoding.look(patient.loop.state, 2 * REST_MS)
    assert take_checkpoint(patient.loop.state, START, encoding) == take_checkpoint(hasty.loop.state, START)


def test_an_entry_at_rest_is_encoded_once_and_taken_as_it_is() -> None:
    rig, encoding = a_rig(), EarlyEncoding(len("hello") * ENTRIES_SHARE)
    state = rig.loop.state
    encoding.look(state, 0)
    assert early_entries(encoding) == {}, "it has just come"
    rig.say(PHONE, a_message(2))
    encoding.look(state, 0)
    assert list(early_entries(encoding)) == [(QUEUE, 1)]
    ready = early_entries(encoding)[QUEUE, 1]
    taken = take_checkpoint(state, START, encoding)
    assert [(queue, seq) for queue, seq, _ in taken.entries] == [(QUEUE, 1), (QUEUE, 2)]
    assert taken.entries[0][2] is ready


def test_an_entry_that_is_acknowledged_meanwhile_is_never_encoded_or_not_taken() -> None:
    rig, encoding = a_rig(), EarlyEncoding(ENTRIES_SHARE)
    state = rig.loop.state
    encoding.look(state, 0)
    rig.say(PHONE, a_message(2))
    encoding.look(state, 0)
    rig.say(TABLET, Acked(NORMAL, 2))
    rig.say(PHONE, a_message(3))
    encoding.look(state, 0)
    assert list(early_entries(encoding)) == [(QUEUE, 1)]
    assert [(queue, seq) for queue, seq, _ in take_checkpoint(state, START, encoding).entries] == [(QUEUE, 3)]


def test_the_loop_looks_ahead_while_a_checkpoint_is_being_saved() -> None:
    rig = started(SELDOM)
    rig.rows.holds_saves = True
    rig.loop.save(at_once=True)
    rig.loop.state.notes[:] = [Taken(seq, 7, NORMAL, seq, seq, ()) for seq in range(LINES)]
    rig.say(PHONE, a_message())
    rig.wait(1)
    assert (len(rig.rows.saves), rig.loop.state.notes) == (1, [])


def test_a_row_that_was_just_changed_is_left_for_later() -> None:
    rig, encoding = a_rig(), EarlyEncoding()
    encoding.look(rig.loop.state, 0)
    rig.say(PHONE, a_message(2))
    encoding.look(rig.loop.state, REST_MS)
    assert (PHONE, BOB) not in keys(early(encoding))
    encoding.look(rig.loop.state, 2 * REST_MS)
    assert (PHONE, BOB) in keys(early(encoding))


def test_the_next_checkpoint_begins_with_nothing() -> None:
    rig, encoding = a_rig(), EarlyEncoding()
    rested(encoding, rig.loop.state)
    take_checkpoint(rig.loop.state, START, encoding)
    again = take_checkpoint(rig.loop.state, START, encoding)
    assert (len(again.rows), again.notes) == (1, [])  # the shard is in every one


@pytest.mark.parametrize("counts", [(0,), (1, 256), (PIECE_LINES, 3, PIECE_LINES + 1), (5 * PIECE_LINES,)])
def test_lines_are_taken_in_pieces_that_are_never_large(counts: tuple[int, ...]) -> None:
    state, encoding, said = ShardState(), EarlyEncoding(), list[Note]()
    for count in counts:
        state.notes += [Taken(seq, 7, NORMAL, seq, seq, ()) for seq in range(count)]
        said += state.notes
        encoding._take_lines(state)  # pyright: ignore[reportPrivateUsage]
    assert (encoding.lines, state.notes, decoded(encoding.pieces)) == (len(said), [], said)
    assert all(len(decoded([piece])) <= PIECE_LINES for piece in encoding.pieces)


def test_lines_that_the_saver_has_taken_are_unsaved_and_can_be_asked_for() -> None:
    rig = a_rig()
    state, saver = rig.loop.state, Saver(rig.rows, SaverLimits(checkpoint_ms=10**9), lambda _: None, lambda _: None)
    state.notes[:] = lines = [Taken(seq, 7, NORMAL, seq, seq, ()) for seq in range(LINES)]
    lines = lines.copy()
    before = saver.unsaved(state)
    saver.look_ahead(state, 0)
    assert (state.notes, saver.unsaved(state), decoded(saver.notes)) == ([], before, lines)
    state.notes.append(Taken(1, 7, NORMAL, 1, 1, ()))
    saver.start(state, 0, START)
    assert decoded(saver.notes) == [*lines, Taken(1, 7, NORMAL, 1, 1, ())]
    saver.abandon()
    assert saver.notes == []
