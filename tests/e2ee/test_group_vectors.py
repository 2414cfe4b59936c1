"""The vectors of groups, replayed with our own functions, and from docs/e2ee.md with the primitives alone."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from nightmail.e2ee import note, state
from nightmail.e2ee.errors import KeySpent
from nightmail.e2ee.groups import chain as group_chain
from nightmail.e2ee.groups import sealing as group_sealing
from nightmail.e2ee.groups import sender_keys
from nightmail.e2ee.groups.chain import Signer
from nightmail.e2ee.identity import Address
from nightmail.model.ids import account_of
from nightmail.model.roster import ChangeFault

from . import vectors

NOW = vectors.NOW


def read(name: str) -> Any:
    return json.loads((vectors.FOLDER / name).read_text())


def context_of(made: Any) -> group_sealing.GroupContext:
    return group_sealing.GroupContext(
        int(made["group"]), bytes.fromhex(made["genesis"]), int(made["epoch"]), bytes.fromhex(made["head"])
    )


def test_the_messages_open_in_another_order_and_once_each() -> None:
    made = read("sender-keys.json")
    messages = made["messages"]
    sender = Address(int(made["sender"]["device"]), int(made["sender"]["registration"]))
    chain = sender_keys.receive_chain(
        sender_keys.decode_handed(bytes.fromhex(messages[0]["handed_on_before"])), sender, NOW
    )
    assert chain.key_id.hex() == made["key_id"]
    for n in (2, 0, 3, 1):
        sealed = bytes.fromhex(messages[n]["sealed"])
        chain, plaintext = group_sealing.open_sealed(chain, context_of(made), sealed, NOW)
        opened = note.unpack(plaintext)
        tag = note.tag_of(opened.nonce, opened.content, made["conversation"])
        assert (plaintext.hex(), opened.id, tag.hex()) == (
            messages[n]["plaintext"], messages[n]["id"], messages[n]["tag"],
        )  # fmt: skip
        with pytest.raises(KeySpent):
            group_sealing.open_sealed(chain, context_of(made), sealed, NOW)


def test_a_message_is_what_the_page_says_byte_by_byte() -> None:
    made = read("sender-keys.json")
    verify = bytes.fromhex(made["verify"])
    assert Ed25519PrivateKey.from_private_bytes(bytes.fromhex(made["signing_private"])).public_key() == (
        Ed25519PublicKey.from_public_bytes(verify)
    )
    key_id = hashlib.sha256(b"nightmail/v1/sender-key-id\0" + verify).digest()[:8]
    address = b"".join(int(made["sender"][part]).to_bytes(8, "big") for part in ("device", "registration"))
    genesis, head = bytes.fromhex(made["genesis"]), bytes.fromhex(made["head"])
    chain = bytes.fromhex(made["messages"][0]["chain"])
    for n, message in enumerate(made["messages"]):
        number = n.to_bytes(4, "big")
        assert bytes.fromhex(message["handed_on_before"]) == (
            b"\1" + int(made["group"]).to_bytes(8, "big") + genesis + verify + number + chain
        )
        message_key, chain = (hmac.digest(chain, byte, "sha256") for byte in (b"\1", b"\2"))
        spread = HKDF(SHA256(), 80, bytes(32), b"nightmail/v1/group-message-keys").derive(message_key)
        header = b"\1\3" + key_id + number + int(made["epoch"]).to_bytes(8, "big") + head
        padded = bytes.fromhex(message["plaintext"])
        fill = 16 - len(padded) % 16
        ciphertext = Cipher(AES256(spread[:32]), CBC(spread[64:])).encryptor().update(padded + bytes((fill,)) * fill)
        covered = genesis + address + header + ciphertext
        mac = hmac.digest(spread[32:64], covered, "sha256")
        sealed = bytes.fromhex(message["sealed"])
        assert sealed[:-64] == header + ciphertext + mac
        Ed25519PublicKey.from_public_bytes(verify).verify(sealed[-64:], b"nightmail/v1/group-message\0" + covered + mac)


def test_the_chain_is_followed_to_the_same_heads_and_members() -> None:
    made = read("group-chain.json")
    signers = {
        Address(int(person["device"]), int(person["registration"])): Signer(
            bytes.fromhex(person["account_public"]), bytes.fromhex(person["identity_signing_public"])
        )
        for person in made["people"].values()
    }
    first, *others = made["steps"]
    known = group_chain.begin(int(made["group"]), bytes.fromhex(first["blob"]), signers.get)
    assert group_chain.GroupWelcome.of(known).encode().hex() == made["welcome_after_creation"]
    reached: list[tuple[str, int | None, str]] = [(known.head.hex(), None, known.roster.hash().hex())]
    for step in others:
        followed = group_chain.follow(known, bytes.fromhex(step["blob"]), signers.get)
        known = followed.membership
        reached.append((known.head.hex(), followed.fault, known.roster.hash().hex()))
    assert reached == [(step["head"], step["fault"], step["roster"]["hash"]) for step in made["steps"]]
    assert {step["kind"] for step in made["steps"]} == {
        "creation", "addition", "removal", "departure", "rolechange", "settingschange",
    }  # fmt: skip
    assert made["steps"][-1]["fault"] == ChangeFault.BAD_SIGNATURE


def test_a_change_is_what_the_page_says_byte_by_byte() -> None:
    made = read("group-chain.json")
    previous = bytes(32)
    for step in made["steps"]:
        blob, person = bytes.fromhex(step["blob"]), made["people"][step["by"]]
        front = b"\1" + b"".join(
            (
                int(made["group"]).to_bytes(8, "big"), previous,
                int(person["device"]).to_bytes(8, "big"), int(person["registration"]).to_bytes(8, "big"),
            )
        )  # fmt: skip
        assert blob.startswith(front)
        previous = hashlib.sha256(b"nightmail/v1/group-head\0" + blob).digest()
        assert previous.hex() == step["head"]
        if step["fault"] is None:
            assert blob[-96:-64].hex() == step["roster"]["hash"] == roster_hash(step["roster"])
            signing = Ed25519PublicKey.from_public_bytes(bytes.fromhex(person["identity_signing_public"]))
            signing.verify(blob[-64:], b"nightmail/v1/group-change\0" + blob[:-64])


def roster_hash(roster: Any) -> str:
    settings, members = roster["settings"], roster["members"]
    data = bytes((settings["writers"], settings["changers"], settings["receipts"]))
    data += settings["timer_ms"].to_bytes(4, "big") + len(members).to_bytes(2, "big")
    for member in members:
        data += int(member["account"]).to_bytes(8, "big") + bytes.fromhex(member["key"]) + bytes((member["role"],))
    return hashlib.sha256(b"nightmail/v1/group-roster\0" + data).hexdigest()


@pytest.mark.parametrize("path", sorted(vectors.GOLDEN.glob("group-state-*.json")), ids=lambda path: path.stem)
def test_group_states_of_every_form_are_read_and_used(path: Path) -> None:
    stored = json.loads(path.read_text())
    writer = state.decode_sender_chain(bytes.fromhex(stored["sender_chain"]))
    reader = state.decode_receiving_chain(bytes.fromhex(stored["receiving_chain"]))
    known = state.decode_membership(bytes.fromhex(stored["membership"]))
    context = group_sealing.GroupContext(known.group, known.genesis, 1, known.head)
    reader, late = group_sealing.open_sealed(reader, context, bytes.fromhex(stored["lost"]), NOW)
    writer, sealed = group_sealing.seal(writer, context, b"go on")
    reader, plaintext = group_sealing.open_sealed(reader, context, sealed, NOW)
    assert (note.unpad(late), plaintext) == (b"lost", b"go on")
    assert account_of(writer.sender.device) in known.roster.members
