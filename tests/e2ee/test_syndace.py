"""Against Syndace's DoubleRatchet, driven with our labels and keys: every byte on the wire must be equal."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from nightmail.e2ee import cipher, ratchet
from nightmail.e2ee.curves import agreement_public
from nightmail.e2ee.errors import KeySpent
from nightmail.e2ee.header import Header, encode_header
from nightmail.e2ee.labels import Label
from nightmail.e2ee.ratchet import Ratchet

from .devices import NOW, Seeded

doubleratchet = pytest.importorskip("doubleratchet", reason="NOT RUN: DoubleRatchet, an oracle, is not installed")

from doubleratchet import DoubleRatchet, EncryptedMessage  # noqa: E402
from doubleratchet import Header as TheirHeader  # noqa: E402
from doubleratchet.recommended import (  # noqa: E402
    HashFunction,
    aead_aes_hmac,
    diffie_hellman_ratchet_curve25519,
    kdf_hkdf,
    kdf_separate_hmacs,
)

T = TypeVar("T")
MESSAGES = 1_000
TRANSCRIPT = bytes(range(32))


class RootKdf(kdf_hkdf.KDF):
    @staticmethod
    def _get_hash_function() -> HashFunction:
        return HashFunction.SHA_256

    @staticmethod
    def _get_info() -> bytes:
        return Label.ROOT.value


class ChainKdf(kdf_separate_hmacs.KDF):
    @staticmethod
    def _get_hash_function() -> HashFunction:
        return HashFunction.SHA_256


class Aead(aead_aes_hmac.AEAD):
    @staticmethod
    def _get_hash_function() -> HashFunction:
        return HashFunction.SHA_256

    @staticmethod
    def _get_info() -> bytes:
        return Label.MESSAGE_KEYS.value


class Twin(DoubleRatchet):
    @staticmethod
    def _build_associated_data(associated_data: bytes, header: TheirHeader) -> bytes:
        return associated_data + encode_header(*header, b"")


def drawing(chance: Seeded) -> type[diffie_hellman_ratchet_curve25519.DiffieHellmanRatchet]:
    class Drawing(diffie_hellman_ratchet_curve25519.DiffieHellmanRatchet):
        @staticmethod
        def _generate_priv() -> bytes:
            return chance.draw(32)

    return Drawing


def common(chance: Seeded) -> dict[str, Any]:
    return {
        "diffie_hellman_ratchet_class": drawing(chance),
        "root_chain_kdf": RootKdf,
        "message_chain_kdf": ChainKdf,
        "message_chain_constant": b"\x02\x01",
        "dos_protection_threshold": 2_000,
        "max_num_skipped_message_keys": 2_000,
        "aead": Aead,
    }


def run(task: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(task)


class End:
    """One end, twice: ours and theirs, from the same keys."""

    def __init__(self, ours: Ratchet, theirs: Twin, chance: Seeded) -> None:
        self.ours, self.theirs, self.chance = ours, theirs, chance

    async def seal(self, text: bytes) -> bytes:
        before = self.ours
        self.ours, key = ratchet.to_send(before)
        header = encode_header(before.own_public, before.previous, before.sent, b"")
        sealed = header + cipher.encrypt(key, Label.MESSAGE_KEYS.value, text, TRANSCRIPT + header)
        message = await self.theirs.encrypt_message(text, TRANSCRIPT)
        assert sealed == encode_header(*message.header, b"") + message.ciphertext
        return sealed

    async def open(self, sealed: bytes) -> bytes:
        header, rest = sealed[:42], sealed[42:]
        parsed = Header(header[2:34], int.from_bytes(header[34:38], "big"), int.from_bytes(header[38:], "big"))
        after, key = ratchet.to_open(self.ours, parsed, self.chance, NOW)
        text = cipher.decrypt(key, Label.MESSAGE_KEYS.value, rest, TRANSCRIPT + header)
        assert text == await self.theirs.decrypt_message(EncryptedMessage(TheirHeader(*parsed), rest), TRANSCRIPT)
        self.ours = after
        return text


async def two_ends(seed: int) -> tuple[End, End]:
    draw = Seeded(seed)
    secret, prekey = draw.draw(32), draw.draw(32)
    # Each implementation draws the same keys in the same order.
    ada_ours, ada_theirs, bob_ours, bob_theirs = Seeded("ada"), Seeded("ada"), Seeded("bob"), Seeded("bob")
    ours = ratchet.initiate(secret, agreement_public(prekey), ada_ours.draw(32))
    theirs, first = await Twin.encrypt_initial_message(
        **common(ada_theirs), shared_secret=secret, recipient_ratchet_pub=agreement_public(prekey),
        message=b"first", associated_data=TRANSCRIPT,
    )  # fmt: skip
    before = ours
    ours, key = ratchet.to_send(before)
    header = encode_header(before.own_public, 0, 0, b"")
    sealed = header + cipher.encrypt(key, Label.MESSAGE_KEYS.value, b"first", TRANSCRIPT + header)
    assert sealed == encode_header(*first.header, b"") + first.ciphertext
    bob = ratchet.respond(secret, prekey)
    bob, key = ratchet.to_open(bob, Header(*first.header), bob_ours, NOW)
    assert cipher.decrypt(key, Label.MESSAGE_KEYS.value, first.ciphertext, TRANSCRIPT + header) == b"first"
    their_bob, text = await Twin.decrypt_initial_message(
        **common(bob_theirs), shared_secret=secret, own_ratchet_priv=prekey, message=first, associated_data=TRANSCRIPT
    )
    assert text == b"first"
    return End(ours, theirs, ada_ours), End(bob, their_bob, bob_ours)


@pytest.mark.parametrize("seed", range(3))
def test_every_byte_equals_syndaces_in_any_order_across_chains(seed: int) -> None:
    async def talk() -> int:
        rng = random.Random(seed)
        ends = await two_ends(seed)
        waiting: list[tuple[int, bytes, bytes]] = []
        opened = 0
        for number in range(MESSAGES):
            me = rng.randrange(2)
            text = b"%d: %s" % (number, rng.randbytes(rng.randrange(300)))
            waiting.append((me, await ends[me].seal(text), text))
            while waiting and rng.random() < 0.52:
                sender, sealed, text = waiting.pop(rng.randrange(len(waiting)))
                if rng.random() < 0.05:
                    continue
                assert await ends[1 - sender].open(sealed) == text
                opened += 1
                if rng.random() < 0.05:
                    with pytest.raises(KeySpent):
                        await ends[1 - sender].open(sealed)
        return opened

    assert run(talk()) > MESSAGES // 2
