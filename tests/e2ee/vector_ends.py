"""The devices of the shared vectors, and where their keys come from."""

from __future__ import annotations

import hashlib
from typing import Any

from nightmail.e2ee import bundles, kem, keys
from nightmail.e2ee.curves import signing_public
from nightmail.e2ee.identity import Address
from nightmail.e2ee.keys import DeviceKeys
from nightmail.e2ee.peers import Peer
from nightmail.model.ids import account_id, device_id

NOW = 1_760_000_000_000

Made = dict[str, Any]


class Named:
    """Chance from a name: SHAKE-256(name ‖ count). Remembers what it drew."""

    def __init__(self, name: str, recorded: dict[str, dict[str, str]]) -> None:
        self.name, self.recorded = name, recorded
        self.drawn: list[bytes] = []

    def draw(self, count: int) -> bytes:
        seed = f"nightmail vectors/{self.name}/{len(self.drawn)}".encode()
        self.drawn.append(hashlib.shake_256(seed).digest(count))
        return self.drawn[-1]

    def encapsulate(self, public: bytes) -> kem.Encapsulated:
        name = hashlib.sha256(public).hexdigest()
        if name not in self.recorded:
            secret, ciphertext = kem.encapsulate(public)
            self.recorded[name] = {"secret": secret.hex(), "ciphertext": ciphertext.hex()}
        found = self.recorded[name]
        return kem.Encapsulated(bytes.fromhex(found["secret"]), bytes.fromhex(found["ciphertext"]))


class End:
    """A device in a vector: every key it ever drew is told."""

    def __init__(self, name: str, recorded: dict[str, dict[str, str]], one_time: int) -> None:
        self.chance = Named(name, recorded)
        bare = DeviceKeys(
            Address(device_id(account_id(name), 1), 7), keys.IdentityKeys.make(self.chance), self.chance.draw(32)
        )  # fmt: skip
        self.keys = keys.stock(keys.rotate(bare, self.chance, NOW), self.chance, NOW, one_time, one_time)
        self.secrets = self.keys
        self.upload = keys.upload(self.keys)
        self.peer: Peer | None = None

    def told(self) -> Made:
        own = self.secrets
        return {
            "device": str(own.address.device),
            "registration": str(own.address.registration),
            "account_private": own.account.hex(),
            "account_public": signing_public(own.account).hex(),
            "identity_signing_private": own.identity.signing.hex(),
            "identity_agreement_private": own.identity.agreement.hex(),
            "signed_prekey_private": own.signed[0].secret.hex(),
            "last_resort_seed": own.last_resort[0].secret.hex(),
            "one_time_private": {str(i): key.secret.hex() for i, key in own.one_time.items()},
            "one_time_kem_seed": {str(i): key.secret.hex() for i, key in own.one_time_kem.items()},
            "upload": {
                "identity": self.upload.identity.hex(),
                "signed": self.upload.signed.hex(),
                "last_resort": self.upload.last_resort.hex(),
                "one_time": [part.hex() for part in self.upload.one_time],
                "one_time_kem": [part.hex() for part in self.upload.one_time_kem],
            },
        }

    def bundle(self) -> bytes:
        up = self.upload
        return bundles.encode_bundle(
            self.keys.address, up.identity, up.signed,
            up.one_time_kem[0] if up.one_time_kem else up.last_resort, up.one_time[0] if up.one_time else None,
        )  # fmt: skip
