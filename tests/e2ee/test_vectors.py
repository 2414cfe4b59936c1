from __future__ import annotations

import hashlib
import json
import re
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


def test_the_ids_in_the_vectors_follow_from_the_handles_as_the_documents_say() -> None:
    made = json.loads((vectors.FOLDER / "ids.json").read_text())
    for each in made["accounts"]:
        salt = each["probe"].to_bytes(16, "little")
        digest = hashlib.blake2b(each["handle"].encode(), digest_size=8, salt=salt, person=b"account").digest()
        account = int.from_bytes(digest, "big") >> 15 | 1
        assert (each["account"], each["hex"]) == (str(account), f"{account:x}")
    device = made["device"]
    assert int(device["device"]) == int(device["hex"], 16) == int(device["account"]) * 4_096 + device["index"]


def test_a_conversation_is_named_by_its_accounts_in_the_order_of_their_numbers() -> None:
    made = json.loads((vectors.FOLDER / "ids.json").read_text())
    nonce, content = bytes.fromhex(made["nonce"]), bytes.fromhex(made["content"])
    differs = 0
    for each in made["conversations"]:
        one, other = map(int, each["accounts"])
        named = each["conversation"]
        assert named == (f"{one:x}-{other:x}" if one <= other else f"{other:x}-{one:x}")
        assert each["tag"] == hashlib.sha256(nonce + content + named.encode()).hexdigest()[:32]
        differs += named != "-".join(sorted(named.split("-")))
    assert differs == 2, "one pair, from both sides, whose order as text is another"


def test_the_readme_of_each_folder_names_every_file_in_it_and_no_other() -> None:
    for folder in (vectors.FOLDER, vectors.FOLDER / "wycheproof"):
        rows = re.findall(r"^\| `([^`]+)` \|", (folder / "README.md").read_text(), re.MULTILINE)
        there = (f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir())
        assert sorted(rows) == sorted(set(there) - {"README.md"})


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
