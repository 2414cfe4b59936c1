from __future__ import annotations

from nightmail.e2ee import pqxdh
from nightmail.e2ee.header import InitialBlock
from nightmail.e2ee.identity import Address, PublicIdentity
from nightmail.e2ee.keys import Secrets, find
from nightmail.e2ee.pqxdh import Parties, transcript_of

from .devices import NOW, Device, pair


def responded(bob: Device, ada: Device, block: InitialBlock, **other: bytes) -> pqxdh.Agreed:
    secrets = find(bob.keys, block.signed_id, block.one_time_id, block.kem_id, block.ephemeral)
    return pqxdh.respond(
        bob.keys, ada.keys.address, ada.keys.identity.public, block, Secrets(**(secrets._asdict() | other))
    )  # fmt: skip


def test_both_sides_agree_with_and_without_one_time_keys() -> None:
    for stock in (1, 0):
        ada, bob = Device("ada"), Device("bob", stock=stock)
        agreed, block = pqxdh.initiate(ada.keys, bob.bundle(), ada.chance, NOW)
        assert responded(bob, ada, block) == agreed


def test_the_secret_depends_on_every_key_that_went_in() -> None:
    ada, bob = pair()
    agreed, block = pqxdh.initiate(ada.keys, bob.bundle(), ada.chance, NOW)
    wrong = [responded(bob, ada, block, **{name: bytes(64 if name == "kem" else 32)}) for name in Secrets._fields]
    assert len({agreed.secret, *(other.secret for other in wrong)}) == 1 + len(Secrets._fields)


def test_the_kem_secret_goes_into_the_secret_and_not_only_into_the_transcript() -> None:
    ada, bob = pair()
    bundle = bob.bundle()
    seen: list[tuple[bytes, bytes]] = []

    class Lying:
        """Draws the same keys, and tells another KEM secret beside the same ciphertext."""

        def __init__(self, secret: bytes) -> None:
            self.secret = secret

        def draw(self, count: int) -> bytes:
            return bytes(range(count))

        def encapsulate(self, public: bytes) -> pqxdh.kem.Encapsulated:
            return pqxdh.kem.Encapsulated(self.secret, bytes(1568))

    for secret in (bytes(32), b"\1" * 32):
        agreed, _ = pqxdh.initiate(ada.keys, bundle, Lying(secret), NOW)
        seen.append(agreed)
    assert seen[0][1] == seen[1][1]
    assert seen[0][0] != seen[1][0]


def test_the_transcript_tells_every_part_of_a_set_up_from_another() -> None:
    ada, bob = pair()
    bundle = bob.bundle()
    assert bundle.one_time
    _, block = pqxdh.initiate(ada.keys, bundle, ada.chance, NOW)
    parties = Parties(ada.keys.address, ada.keys.identity.public, bob.keys.address, bob.keys.identity.public)
    keys = bundle.signed.key, bundle.one_time.key, bundle.kem.key
    transcripts = {transcript_of(parties, block, *keys)}
    count = 1
    for side in ("initiator", "responder"):
        for where in (Address(1, parties.initiator.registration), Address(parties.initiator.device, 99)):
            transcripts.add(transcript_of(parties._replace(**{side: where}), block, *keys))
            count += 1
        other = PublicIdentity(b"\1" * 32, b"\2" * 32)
        transcripts.add(transcript_of(parties._replace(**{f"{side}_identity": other}), block, *keys))
        count += 1
    changes = {
        "signed_id": 9, "one_time_id": 9, "kem_id": 9, "made": 9, "ephemeral": bytes(32), "kem_ciphertext": bytes(1568)
    }  # fmt: skip
    for field, value in changes.items():
        transcripts.add(transcript_of(parties, block._replace(**{field: value}), *keys))
        count += 1
    for at in range(3):
        changed = [bytes(len(key)) if at == place else key for place, key in enumerate(keys)]
        transcripts.add(transcript_of(parties, block, *changed))
        count += 1
    swapped = Parties(parties[2], parties[3], parties[0], parties[1])
    transcripts.add(transcript_of(swapped, block, *keys))
    assert len(transcripts) == count + 1
