"""Makes the shared vectors:  python -m tests.e2ee.vectors

What another implementation must reproduce byte for byte, as JSON in vectors/. The same program always writes the
same bytes: every random value is drawn from a name, and stands in the file. What ML-KEM draws cannot be handed in,
so encapsulations are recorded once (kem-recorded.json) and used again forever.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from nightmail.client.messages import conversation_id
from nightmail.e2ee import bundles, cipher, kdf, keys, lists, peers, pqxdh, ratchet, safety, state
from nightmail.e2ee.content import Content, encode_content
from nightmail.e2ee.curves import agreement_public, signing_public
from nightmail.e2ee.identity import Address
from nightmail.e2ee.labels import Label
from nightmail.e2ee.note import Note, pack, tag_of, unpack
from nightmail.e2ee.padding import bucket, pad
from nightmail.e2ee.peers import Peer
from nightmail.model.ids import account_id, account_of, device_id
from nightmail.model.words import Kind

from .group_control_vectors import make_group_controls
from .group_vectors import make_group_chain, make_group_states, make_sender_keys
from .stream_vectors import make_backups, make_media, make_streams
from .vector_ends import NOW, End, Made

FOLDER = Path(__file__).parents[2] / "vectors"
GOLDEN = Path(__file__).parent / "golden"
RECORDED = FOLDER / "kem-recorded.json"


def make_ids() -> Made:
    ada, ben, bob = (account_id(handle) for handle in ("ada", "ben", "bob"))
    nonce, content = hashlib.shake_256(b"nonce").digest(16), encode_content(Content(Kind.TEXT, "hello"))
    pairs = {
        "the account with fewer digits has the lower number, but sorts behind the other as text": (ada, bob),
        "the same pair from the other side": (bob, ada),
        "both with as many digits": (ada, ben),
        "a note to oneself": (ada, ada),
    }
    return {
        "accounts": [
            {"handle": handle, "probe": probe, "account": str(account_id(handle, probe)),
             "hex": f"{account_id(handle, probe):x}"}
            for handle in ("ada", "ben", "bob", "+491711234567") for probe in (0, 1)
        ],
        "device": {"account": str(bob), "index": 2, "device": str(device_id(bob, 2)), "hex": f"{device_id(bob, 2):x}"},
        "nonce": nonce.hex(),
        "content": content.hex(),
        "conversations": [
            {"why": why, "accounts": [str(one), str(other)], "conversation": conversation_id(one, other),
             "tag": tag_of(nonce, content, conversation_id(one, other)).hex()}
            for why, (one, other) in pairs.items()
        ],
    }  # fmt: skip


def make_kdf() -> Made:
    seed = hashlib.sha256(b"chain").digest()
    chain, key = kdf.chain_step(seed)
    aes_key, mac_key, iv = kdf.message_keys(key, Label.MESSAGE_KEYS.value)
    root, first = kdf.root_step(seed, key, Label.ROOT.value)
    associated, text = b"associated", b"plaintext"
    return {
        "chain_step": {"chain": seed.hex(), "next": chain.hex(), "message_key": key.hex()},
        "message_keys": {"message_key": key.hex(), "aes": aes_key.hex(), "mac": mac_key.hex(), "iv": iv.hex()},
        "root_step": {"root": seed.hex(), "agreed": key.hex(), "next": root.hex(), "chain": first.hex()},
        "encrypt": {
            "message_key": key.hex(), "associated": associated.hex(), "plaintext": text.hex(),
            "sealed": cipher.encrypt(key, Label.MESSAGE_KEYS.value, text, associated).hex(),
        },
    }  # fmt: skip


def make_padding() -> Made:
    lengths = [0, 1, 125, 126, 127, 190, 191, 254, 255, 510, 511, 600, 1022, 1023, 4000, 65_535, 66_000]
    return {
        "buckets": [[length, bucket(length)] for length in lengths],
        "padded": [{"data": data.hex(), "padded": pad(data).hex()} for data in (b"", b"hello", b"\x80\x00")],
    }


def make_notes() -> Made:
    ident = f"{device_id(account_id('ada'), 1):x}:1706745600000:00042:x9k2"
    nonce = hashlib.shake_256(b"nonce").digest(16)
    contents = {
        "text": Content(Kind.TEXT, "Grüße, Bob ✓"),
        "reply": Content(Kind.TEXT, "yes", reply_to=ident),
        "media": Content(Kind.MEDIA, "a photo", data=b"\x00\x01\x02"),
        "control": Content(Kind.CONTROL, data=b"payload", control=513),
        "empty": Content(Kind.TEXT, ""),
        "life": Content(Kind.TEXT, "gone in an hour", life_ms=3_600_000),
        "timer change": Content(Kind.CONTROL, control=7, life_ms=30_000),
        "timer off": Content(Kind.CONTROL, control=7),
    }
    long = encode_content(Content(Kind.TEXT, "the same words again and again, " * 20))
    conversation = "1f-2e"
    return {
        "conversation": conversation,
        "id": ident,
        "nonce": nonce.hex(),
        "notes": [
            {
                "name": name, "kind": int(content.kind), "text": content.text, "reply_to": content.reply_to,
                "data": None if content.data is None else content.data.hex(), "control": content.control,
                "life_ms": content.life_ms,
                "content": encode_content(content).hex(),
                "tag": tag_of(nonce, encode_content(content), conversation).hex(),
                "stamp": stamp, "packed": pack(Note(nonce, ident, encode_content(content), stamp)).hex(),
            }
            for stamp, (name, content) in enumerate(contents.items())
        ],
        "deflated": {
            "why": "to be opened; another compressor may make other bytes of the same text",
            "content": long.hex(), "tag": tag_of(nonce, long, conversation).hex(),
            "packed": recorded_deflate(Note(nonce, ident, long)).hex(),
        },
    }  # fmt: skip


def recorded_deflate(note: Note) -> bytes:
    """Packed once and recorded: another zlib may pack the same text differently."""
    path = FOLDER / "notes.json"
    if path.exists():
        packed = bytes.fromhex(json.loads(path.read_text())["deflated"]["packed"])
        if unpack(packed) == note:
            return packed
    return pack(note)


def make_lists(recorded: dict[str, dict[str, str]]) -> Made:
    ada, bob = End("ada", recorded, 1), End("bob", recorded, 1)
    account = account_of(ada.keys.address.device)
    other = account_of(bob.keys.address.device)
    second = Address(device_id(account, 2), 9)
    devices = {ada.keys.address: ada.keys.identity.public, second: bob.keys.identity.public}
    third = {Address(device_id(account, 3), 11): lists.Departed(bob.keys.identity.public, NOW)}
    key, other_key = signing_public(ada.keys.account), signing_public(bob.keys.account)
    return {
        "account": str(account),
        "account_private": ada.keys.account.hex(),
        "version": 3,
        "devices": [
            {"device": str(where.device), "registration": str(where.registration), "identity": who.encode().hex()}
            for where, who in devices.items()
        ],
        "departed": [
            {
                "device": str(where.device), "registration": str(where.registration),
                "identity": left.identity.encode().hex(), "left_at": str(left.at),
            }
            for where, left in third.items()
        ],
        "signed": lists.sign_list(ada.keys.account, account, 3, devices, third).signed.hex(),
        "handle": "ada",
        "signed_with_handle": lists.sign_list(
            ada.keys.account, account, 3, devices, third, "ada"
        ).signed.hex(),
        "safety_number": {
            "accounts": [str(account), str(other)], "keys": [key.hex(), other_key.hex()],
            "number": safety.safety_number(account, key, other, other_key),
        },
    }  # fmt: skip


def make_set_up(one_time: int, recorded: dict[str, dict[str, str]], made: int = NOW) -> Made:
    ada, bob = End("ada", recorded, 0), End("bob", recorded, one_time)
    drawn = len(ada.chance.drawn)
    bundle = bundles.decode_bundle(bob.bundle())
    agreed, block = pqxdh.initiate(ada.keys, bundle, ada.chance, made)
    secrets = keys.find(bob.keys, block.signed_id, block.one_time_id, block.kem_id, block.ephemeral)
    assert pqxdh.respond(bob.keys, ada.keys.address, ada.keys.identity.public, block, secrets) == agreed
    own = ada.chance.draw(32)
    first = ratchet.initiate(agreed.secret, bundle.signed.key, own)
    return {
        "initiator": ada.told(),
        "responder": bob.told(),
        "bundle": bob.bundle().hex(),
        "ephemeral_private": ada.chance.drawn[drawn].hex(),
        "made": str(made),
        "block": block.encode().hex(),
        "transcript": agreed.transcript.hex(),
        "secret": agreed.secret.hex(),
        "ratchet": {
            "private": own.hex(), "public": agreement_public(own).hex(),
            "root": first.root.hex(), "sending": first.sending.hex(),
        },
    }  # fmt: skip


def make_scheduled(recorded: dict[str, dict[str, str]]) -> Made:
    """A message for later: the set-up of its session, and the one envelope that it carries."""
    ada, bob = End("ada", recorded, 0), End("bob", recorded, 0)
    text = pad(b"happy birthday")
    bundle = bundles.decode_bundle(bob.bundle())
    sealed = peers.seal_once(ada.keys, Peer.of(bob.keys.address, bob.keys.identity.public), bundle, text, ada.chance)
    before = Peer.of(ada.keys.address, ada.keys.identity.public)
    opened = peers.open_sealed(bob.keys, before, sealed, bob.chance, NOW)
    assert (opened.plaintext, opened.peer) == (text, before)
    return {**make_set_up(0, recorded, peers.ONCE), "plaintext": text.hex(), "sealed": sealed.hex()}


SCRIPT = "a1 a2 <2 <1 b3 b4 >4 a5 <5 >3 a6 b7 a8 <8 >7 b9 >9 <6"
"""a3: Ada seals message 3; <3: Bob opens it; b and >: the other way round. Some overtake others."""


def make_conversation(recorded: dict[str, dict[str, str]]) -> Made:
    ada, bob = End("ada", recorded, 0), End("bob", recorded, 2)
    at = {"a": len(ada.chance.drawn), "b": len(bob.chance.drawn)}
    ada.peer = peers.begin(
        ada.keys, Peer.of(bob.keys.address, bob.keys.identity.public), bundles.decode_bundle(bob.bundle()),
        ada.chance, NOW,
    )  # fmt: skip
    bob.peer = Peer.of(ada.keys.address, ada.keys.identity.public)
    sealed: dict[str, bytes] = {}
    steps: list[Made] = []
    for word in SCRIPT.split():
        end = ada if word[0] in "a>" else bob
        assert end.peer
        if word[0] in "ab":
            text = pad(f"message {word[1]}".encode())
            end.peer, sealed[word[1]] = peers.seal(end.peer, text)
            steps.append(
                {"step": "seal", "by": end.chance.name, "n": word[1], "plaintext": text.hex(),
                 "sealed": sealed[word[1]].hex()}
            )  # fmt: skip
        else:
            opened = peers.open_sealed(end.keys, end.peer, sealed[word[1]], end.chance, NOW)
            end.keys, end.peer = opened.keys, opened.peer
            steps.append({"step": "open", "by": end.chance.name, "n": word[1], "plaintext": opened.plaintext.hex()})
    return {
        "initiator": ada.told(),
        "responder": bob.told(),
        "bundle": bob.bundle().hex(),
        "drawn": {
            "why": "further keys, in the order they are drawn: Ada's first is the ephemeral one; the rest are ratchets",
            "ada": [key.hex() for key in ada.chance.drawn[at["a"] :]],
            "bob": [key.hex() for key in bob.chance.drawn[at["b"] :]],
        },
        "steps": steps,
    }


def make_states(recorded: dict[str, dict[str, str]]) -> Made:
    """Stored states of the present form: every later program must read them."""
    ada, bob = End("ada", recorded, 0), End("bob", recorded, 2)
    met = peers.begin(
        ada.keys, Peer.of(bob.keys.address, bob.keys.identity.public), bundles.decode_bundle(bob.bundle()),
        ada.chance, NOW,
    )  # fmt: skip
    met, _ = peers.seal(met, b"lost")
    met, sealed = peers.seal(met, b"hello")
    opened = peers.open_sealed(
        bob.keys, Peer.of(ada.keys.address, ada.keys.identity.public), sealed, bob.chance, NOW
    )  # fmt: skip
    return {
        "keys": state.encode_keys(opened.keys).hex(),
        "initiator": state.encode_peer(met).hex(),
        "responder": state.encode_peer(opened.peer).hex(),
    }


def make(recorded: dict[str, dict[str, str]]) -> dict[Path, Made]:
    return {
        FOLDER / "ids.json": make_ids(),
        FOLDER / "labels.json": {label.name: label.value.decode() for label in Label},
        FOLDER / "kdf.json": make_kdf(),
        FOLDER / "padding.json": make_padding(),
        FOLDER / "notes.json": make_notes(),
        FOLDER / "lists.json": make_lists(recorded),
        FOLDER / "set-up.json": {
            "with_one_time_keys": make_set_up(1, recorded), "exhausted": make_set_up(0, recorded),
        },
        FOLDER / "scheduled.json": make_scheduled(recorded),
        FOLDER / "conversation.json": make_conversation(recorded),
        FOLDER / "group-chain.json": make_group_chain(recorded),
        FOLDER / "group-controls.json": make_group_controls(recorded),
        FOLDER / "sender-keys.json": make_sender_keys(recorded),
        FOLDER / "streams.json": make_streams(),
        FOLDER / "backup.json": make_backups(),
        FOLDER / "media.json": make_media(),
        GOLDEN / f"state-{state.PEER.newest}.json": make_states(recorded),
        GOLDEN / f"group-state-{state.RECEIVING_CHAIN.newest}.json": make_group_states(recorded),
    }  # fmt: skip


def as_text(made: Made) -> str:
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def read_recorded() -> dict[str, dict[str, str]]:
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def main() -> None:
    recorded = read_recorded()
    files = make(recorded) | {RECORDED: recorded}
    for path, made in files.items():
        path.parent.mkdir(exist_ok=True)
        text = as_text(made)
        as_it_was = path.exists() and path.read_text() == text
        path.write_text(text)
        print(f"{path.name}: {'as it was' if as_it_was else 'written'}")


if __name__ == "__main__":
    main()
