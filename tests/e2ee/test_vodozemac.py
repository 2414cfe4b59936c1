"""Against vodozemac, driven as an Olm peer: our ratchet with Olm's labels talks to the real thing, both ways."""

from __future__ import annotations

import hmac
import random
from collections.abc import Callable

import pytest

from nightmail.e2ee import ratchet
from nightmail.e2ee.cipher import cbc_decrypt, cbc_encrypt
from nightmail.e2ee.curves import agree, agreement_public
from nightmail.e2ee.header import Header
from nightmail.e2ee.kdf import hkdf, message_keys, root_step
from nightmail.e2ee.ratchet import Ratchet

from .devices import NOW, Seeded

vodozemac = pytest.importorskip("vodozemac", reason="NOT RUN: vodozemac, an oracle, is not installed")

from vodozemac import Account, AnyOlmMessage, Curve25519PublicKey, PreKeyMessage, Session  # noqa: E402

ROOT, RATCHET, KEYS = b"OLM_ROOT", b"OLM_RATCHET", b"OLM_KEYS"
VERSION = b"\x03"
MAC_BYTES = 8
MESSAGES = 1_000


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def field(tag: int, value: bytes) -> bytes:
    return bytes((tag,)) + varint(len(value)) + value


def fields(data: bytes) -> dict[int, bytes | int]:
    """Protobuf, as far as Olm uses it."""
    found: dict[int, bytes | int] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = data[at]
        at += 1
        value = number()
        if tag & 7 == 2:
            found[tag] = data[at : at + value]
            at += value
        else:
            found[tag] = value
    return found


class Olm:
    """Our ratchet in Olm's clothes. Olm's header has no PN: the test knows it, and hands it in."""

    def __init__(self, state: Ratchet, chance: Seeded) -> None:
        self.state, self.chance = state, chance

    def seal(self, text: bytes) -> bytes:
        before = self.state
        self.state, key = ratchet.to_send(before)
        aes_key, mac_key, iv = message_keys(key, KEYS)
        sealed = cbc_encrypt(aes_key, iv, text)
        body = VERSION + field(0x0A, before.own_public) + b"\x10" + varint(before.sent) + field(0x22, sealed)
        return body + hmac.digest(mac_key, body, "sha256")[:MAC_BYTES]

    def open(self, message: bytes, previous: int) -> bytes:
        body, mac = message[:-MAC_BYTES], message[-MAC_BYTES:]
        parsed = fields(body[1:])
        key, number, sealed = parsed[0x0A], parsed[0x10], parsed[0x22]
        assert isinstance(key, bytes)
        assert isinstance(number, int)
        assert isinstance(sealed, bytes)
        header = Header(key, previous, number)
        self.state, message_key = ratchet.to_open(self.state, header, self.chance, NOW, RATCHET)
        aes_key, mac_key, iv = message_keys(message_key, KEYS)
        assert hmac.digest(mac_key, body, "sha256")[:MAC_BYTES] == mac
        return cbc_decrypt(aes_key, iv, sealed)


class Theirs:
    """vodozemac, with a count of what it sent per chain: that is the PN its header lacks."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.chain, self.sent, self.previous = b"", 0, 0

    def seal(self, text: bytes) -> tuple[int, bytes, int]:
        kind, message = self.session.encrypt(text).to_parts()
        inner = fields(message[1:])[0x22] if kind == 0 else message
        assert isinstance(inner, bytes)
        chain = fields(inner[1:-MAC_BYTES])[0x0A]
        assert isinstance(chain, bytes)
        if chain != self.chain:
            self.chain, self.previous, self.sent = chain, self.sent, 0
        self.sent += 1
        return kind, inner, self.previous


def we_begin(seed: int) -> tuple[Olm, Theirs]:
    chance = Seeded(seed)
    account = Account()
    account.generate_one_time_keys(1)
    (one_time,) = account.one_time_keys.values()
    identity, ephemeral, own = chance.draw(32), chance.draw(32), chance.draw(32)
    theirs = account.curve25519_key.to_bytes()
    shared = (
        agree(identity, one_time.to_bytes()) + agree(ephemeral, theirs) + agree(ephemeral, one_time.to_bytes())
    )  # fmt: skip
    secret = hkdf(bytes(32), shared, ROOT, 64)
    olm = Olm(Ratchet(secret[:32], own, agreement_public(own), sending=secret[32:]), chance)
    first = (
        VERSION
        + field(0x0A, one_time.to_bytes())
        + field(0x12, agreement_public(ephemeral))
        + field(0x1A, agreement_public(identity))
        + field(0x22, olm.seal(b"first"))
    )
    parsed = AnyOlmMessage.pre_key(first).to_pre_key()
    assert isinstance(parsed, PreKeyMessage)
    session, text = account.create_inbound_session(Curve25519PublicKey.from_bytes(agreement_public(identity)), parsed)
    assert text == b"first"
    return olm, Theirs(session)


def they_begin(seed: int) -> tuple[Olm, Theirs]:
    chance = Seeded(seed)
    account = Account()
    identity, one_time, own = chance.draw(32), chance.draw(32), chance.draw(32)
    session = account.create_outbound_session(
        Curve25519PublicKey.from_bytes(agreement_public(identity)),
        Curve25519PublicKey.from_bytes(agreement_public(one_time)),
    )
    theirs = Theirs(session)
    kind, message = session.encrypt(b"first").to_parts()
    assert kind == 0
    parsed = fields(message[1:])
    base, sender, inner = parsed[0x12], parsed[0x1A], parsed[0x22]
    assert isinstance(base, bytes)
    assert isinstance(sender, bytes)
    assert isinstance(inner, bytes)
    shared = agree(one_time, sender) + agree(identity, base) + agree(one_time, base)
    secret = hkdf(bytes(32), shared, ROOT, 64)
    remote = fields(inner[1:-MAC_BYTES])[0x0A]
    assert isinstance(remote, bytes)
    root, sending = root_step(secret[:32], agree(own, remote), RATCHET)
    olm = Olm(Ratchet(root, own, agreement_public(own), remote, sending, receiving=secret[32:]), chance)
    assert olm.open(inner, 0) == b"first"
    theirs.chain, theirs.sent = remote, 1
    return olm, theirs


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("begin", [we_begin, they_begin])
def test_vodozemac_and_we_open_each_others_messages_in_any_order(
    begin: Callable[[int], tuple[Olm, Theirs]], seed: int
) -> None:
    olm, theirs = begin(seed)
    rng = random.Random(seed)
    to_us: list[tuple[bytes, int, bytes]] = []
    to_them: list[tuple[bytes, bytes]] = []
    opened = 0
    for number in range(MESSAGES):
        text = b"%d: %s" % (number, rng.randbytes(rng.randrange(200)))
        if rng.random() < 0.5:
            _, inner, previous = theirs.seal(text)
            to_us.append((inner, previous, text))
        else:
            to_them.append((olm.seal(text), text))
        while to_us and rng.random() < 0.5:
            inner, previous, text = to_us.pop(rng.randrange(min(len(to_us), 8)))
            assert olm.open(inner, previous) == text
            opened += 1
        # vodozemac keeps the last five chains, and 40 skipped keys in each: stay within that.
        while len(to_them) > 2 or (to_them and rng.random() < 0.5):
            sealed, text = to_them.pop(rng.randrange(len(to_them)))
            assert theirs.session.decrypt(AnyOlmMessage.normal(sealed)) == text
            opened += 1
    assert opened > MESSAGES - 100
