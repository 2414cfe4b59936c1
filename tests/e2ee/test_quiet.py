from __future__ import annotations

import io

import pytest
from rich.console import Console

from nightmail.e2ee import kem, keys, peers, pqxdh
from nightmail.e2ee.errors import Rejected, SealingError
from nightmail.e2ee.groups.sender_keys import decode_handed, hand_on, to_open

from .devices import NOW, Device, Seeded, acquainted
from .group_people import writer_and_reader


def secrets_of(end: Device) -> list[bytes]:
    found = [end.keys.account, end.keys.identity.signing, end.keys.identity.agreement]
    found += [key.secret for key in (*end.keys.signed, *end.keys.last_resort)]
    found += [key.secret for key in (*end.keys.one_time.values(), *end.keys.one_time_kem.values())]
    for peer in end.peers.values():
        for session in peer.sessions:
            r = session.ratchet
            found += [r.root, r.own, r.sending, r.receiving, *(kept.key for kept in r.skipped.values())]
    return [secret for secret in found if secret]


def shows(text: str, secret: bytes) -> bool:
    return secret[:8].hex() in text.lower() or repr(secret[:8])[2:-1] in text or str(list(secret[:8]))[1:-1] in text


def test_no_key_is_shown_by_any_value_that_holds_one() -> None:
    ada, bob = acquainted()
    ada.seal(bob, b"lost")
    sealed = ada.seal(bob, b"the plaintext itself")
    opened = peers.open_sealed(bob.keys, bob.peer(ada), sealed, bob.chance, bob.now)
    bob.keys, bob.peers[ada.device] = opened.keys, opened.peer
    out = io.StringIO()
    console = Console(file=out, width=10_000)
    agreed, _ = pqxdh.initiate(ada.keys, bob.bundle(), ada.chance, ada.now)
    found = keys.find(bob.keys, bob.keys.signed[0].id, 0, bob.keys.last_resort[0].id, b"")
    session = bob.peers[ada.device].sessions[0]
    values = [
        ada.keys, bob.keys, ada.keys.identity, ada.keys.signed[0], *bob.keys.one_time.values(), opened, agreed, found,
        session, session.ratchet, session.ratchet.skipped, kem.encapsulate(kem.public_of(Seeded(1).draw(64))),
    ]  # fmt: skip
    for value in values:
        console.print(value)
        out.write(repr(value) + str(value))
    text = out.getvalue()
    held = [*secrets_of(ada), *secrets_of(bob), agreed.secret, found.kem]
    assert len(held) > 20
    assert not any(shows(text, secret) for secret in held)
    assert "plaintext itself" not in text


def test_no_chain_of_a_group_is_shown() -> None:
    writer, reader = writer_and_reader()
    reader, key = to_open(reader, 2, NOW)
    handed = decode_handed(hand_on(writer))
    out = io.StringIO()
    console = Console(file=out, width=10_000)
    for value in (writer, reader, handed, [writer], {1: reader}):
        console.print(value)
        out.write(repr(value) + str(value))
    held = [writer.signing, writer.chain, reader.chain, key, *reader.skipped.values()]
    assert not any(shows(out.getvalue(), secret) for secret in held)


def test_no_error_says_more_than_ids_counts_and_purposes() -> None:
    ada, bob = acquainted()
    held = [*secrets_of(ada), *secrets_of(bob)]
    sealed = ada.seal(bob, b"the plaintext itself")
    for at in range(0, len(sealed), 3):
        bad = bytearray(sealed)
        bad[at] ^= 0x55
        with pytest.raises(Rejected) as caught:
            bob.open(ada, bytes(bad))
        told = f"{caught.value!r} {caught.value.__cause__!r} {vars(caught.value)}"
        assert not any(shows(told, secret) for secret in held)


def test_every_error_belongs_to_the_tree_and_can_be_caught_as_one() -> None:
    def below(kind: type[SealingError]) -> set[type[SealingError]]:
        return {kind}.union(*(below(sub) for sub in kind.__subclasses__()))

    tree = below(SealingError)
    assert len(tree) == 33
    drawn = __import__("nightmail.e2ee.errors", fromlist=["x"]).__doc__
    assert not {kind.__name__ for kind in tree if kind.__name__ not in drawn}
