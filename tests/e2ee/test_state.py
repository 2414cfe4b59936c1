from __future__ import annotations

from typing import Any

import pytest

from nightmail.e2ee import state
from nightmail.e2ee.errors import StateDamaged, StateTooNew
from nightmail.e2ee.groups.sender_keys import to_open, to_send
from nightmail.e2ee.quiet import Quiet
from nightmail.e2ee.state import StoredForm, decode_keys, decode_peer, decode_state, encode_keys, encode_peer

from .devices import NOW, acquainted
from .group_people import Trio, writer_and_reader


class Newest(Quiet, frozen=True):
    """What a stored struct may look like after two changes of form."""

    name: str
    count: int
    kept: bytes


def count_added(fields: list[Any]) -> list[Any]:
    return [*fields, 0]


def kept_added(fields: list[Any]) -> list[Any]:
    return [*fields, b"kept"]


FORM = StoredForm("example", 9, (count_added, kept_added))


def test_keys_and_sessions_come_through_their_bytes_and_go_on() -> None:
    ada, bob = acquainted()
    ada.seal(bob, b"lost")
    bob.open(ada, ada.seal(bob, b"skips one"))
    for end in (ada, bob):
        end.keys = decode_keys(encode_keys(end.keys))
        end.peers = {device: decode_peer(encode_peer(peer)) for device, peer in end.peers.items()}
    assert ada.open(bob, bob.seal(ada, b"on")) == b"on"
    assert bob.open(ada, ada.seal(bob, b"and on")) == b"and on"


def test_chains_and_members_of_a_group_come_through_their_bytes_and_go_on() -> None:
    writer, reader = writer_and_reader()
    reader, _ = to_open(reader, 2, NOW)
    again = state.decode_sender_chain(state.encode_sender_chain(writer))
    read_again = state.decode_receiving_chain(state.encode_receiving_chain(reader))
    assert (again, read_again, list(read_again.skipped)) == (writer, reader, [0, 1])
    assert to_open(read_again, 0, NOW)[1] == to_send(again)[1]
    known = Trio().known
    stored = state.decode_membership(state.encode_membership(known))
    assert (stored, stored.roster.hash()) == (known, known.roster.hash())


def test_a_state_of_an_older_form_is_lifted_step_by_step() -> None:
    assert decode_state(b"\x09\x01\x91\xa3ada", FORM, Newest) == Newest("ada", 0, b"kept")
    assert decode_state(b"\x09\x02\x92\xa3ada\x05", FORM, Newest) == Newest("ada", 5, b"kept")
    assert decode_state(b"\x09\x03\x93\xa3ada\x05\xc4\x01x", FORM, Newest) == Newest("ada", 5, b"x")


def test_a_state_of_a_newer_form_is_left_alone() -> None:
    with pytest.raises(StateTooNew, match="newer program"):
        decode_state(b"\x09\x04\x90", FORM, Newest)


@pytest.mark.parametrize("data", [b"", b"\x09", b"\x09\x00\x90", b"\x08\x03\x90", b"\x09\x03\x90", b"\x09\x01\xc1"])
def test_a_damaged_state_or_one_of_another_kind_is_refused(data: bytes) -> None:
    with pytest.raises(StateDamaged):
        decode_state(data, FORM, Newest)


def test_keys_are_not_taken_for_sessions() -> None:
    ada, _ = acquainted()
    with pytest.raises(StateDamaged):
        decode_peer(encode_keys(ada.keys))


def test_what_is_damaged_is_not_shown() -> None:
    ada, _ = acquainted()
    stored = encode_keys(ada.keys)
    with pytest.raises(StateDamaged) as caught:
        decode_keys(stored[:-1])
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert str(caught.value) == "stored device keys cannot be read: it is damaged, or of another kind"
    forms = (state.KEYS, state.PEER, state.SENDER_CHAIN, state.RECEIVING_CHAIN, state.MEMBERSHIP)
    assert [form.number for form in forms] == [1, 2, 3, 4, 5]
