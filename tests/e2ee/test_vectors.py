from __future__ import annotations

import json
from pathlib import Path

import pytest

from nightmail.e2ee import note, peers, state
from nightmail.e2ee.identity import PublicIdentity
from nightmail.e2ee.labels import Label
from nightmail.e2ee.peers import Peer

from . import vectors
from .devices import Seeded


def test_the_shared_vectors_are_what_this_program_makes() -> None:
    recorded = vectors.read_recorded()
    made = vectors.make(recorded)
    assert {path.name: vectors.as_text(value) == path.read_text() for path, value in made.items()} == dict.fromkeys(
        (path.name for path in made), True
    )
    assert vectors.as_text(recorded) == vectors.RECORDED.read_text(), "an encapsulation was not recorded"


def test_no_two_labels_are_alike_or_begin_alike_up_to_their_end() -> None:
    values = [label.value for label in Label]
    assert len(set(values)) == len(values)
    assert all(value.startswith(b"nightmail/v1/") and b"\0" not in value for value in values)


def test_what_another_compressor_made_opens() -> None:
    made = json.loads((vectors.FOLDER / "notes.json").read_text())
    opened = note.unpack(bytes.fromhex(made["deflated"]["packed"]))
    assert opened.content.hex() == made["deflated"]["content"]


@pytest.mark.parametrize("path", sorted(vectors.GOLDEN.glob("state-*.json")), ids=lambda path: path.stem)
def test_states_of_every_form_are_read_and_used(path: Path) -> None:
    stored = json.loads(path.read_text())
    keys = state.decode_keys(bytes.fromhex(stored["keys"]))
    ada = state.decode_peer(bytes.fromhex(stored["initiator"]))
    bob = state.decode_peer(bytes.fromhex(stored["responder"]))
    ada, sealed = peers.seal(ada, b"go on")
    opened = peers.open_sealed(keys, bob, sealed, Seeded(1), vectors.NOW)
    assert opened.plaintext == b"go on"
    assert isinstance(opened.peer, Peer)
    assert isinstance(opened.peer.identity, PublicIdentity)
