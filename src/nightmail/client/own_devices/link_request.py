"""Another device for an account: it shows a code, and the account's primary device vouches for it.

    new device       request = begin("laptop.profile", "alice")      → request.code, on its screen
    primary device   device = await client.link(code)
    new device       a client on that profile: it waits until it was vouched for and provisioned

The token never leaves the new device; the code holds its digest. The code also holds a secret that the server must
never see: it is carried from screen to screen, by a person.
"""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from random import SystemRandom
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nightmail.client.errors import Misused
from nightmail.client.link.clock import ClientClock
from nightmail.client.profile.profile import Profile
from nightmail.client.profile.protection import Secret
from nightmail.client.store.port import Store
from nightmail.client.store.rows import Identity, OwnKeys
from nightmail.e2ee.chance import SYSTEM
from nightmail.e2ee.identity import IDENTITY_BYTES, Address
from nightmail.e2ee.keys import make_keys
from nightmail.e2ee.provision import SECRET_BYTES
from nightmail.e2ee.state import decode_keys, encode_keys
from nightmail.model.handles import spelled, spellings
from nightmail.model.ids import account_id, account_ids, account_of
from nightmail.model.words import Platform

from .pairing import ERRAND

TOKEN_BYTES = 32
REGISTRATION_BITS = 31
PREFIX = "nightmail-link:"


class LinkRequest(Struct, frozen=True, array_like=True):
    """What a new device asks of the primary device."""

    handle: str
    registration: int
    token_digest: str
    identity: bytes
    """The public keys that it will publish."""
    secret: bytes
    """A device that knows it may provision the new one."""
    label: str = ""
    platform: Platform = Platform.CLI

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("handle", self.handle), ("label", self.label)]

    @property
    def code(self) -> str:
        """The whole request, to be shown as text or as a QR code."""
        return PREFIX + base64.urlsafe_b64encode(msgspec.msgpack.encode(self)).rstrip(b"=").decode()

    @classmethod
    def parse(cls, code: str) -> LinkRequest:
        """Raises Misused."""
        text = "".join(code.split())
        if not text.startswith(PREFIX):
            raise Misused(f"that is not the code of a device: it would begin with {PREFIX!r}")
        try:
            packed = text.removeprefix(PREFIX)
            raw = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
            request = msgspec.msgpack.decode(raw, type=cls)
        except (ValueError, msgspec.DecodeError):
            raise Misused("that code is not complete, or not a code of this version") from None
        if len(request.identity) != IDENTITY_BYTES or len(request.secret) != SECRET_BYTES:
            raise Misused("that code is not of a form that this version knows")
        return request

    def __repr__(self) -> str:
        return f"<link request of {self.handle!r}>"


def choose_identity(handle: str) -> Identity:
    """The identity of a device to which the server has not given a number yet. Its handle is as it was written."""
    chance = SystemRandom()
    token, registration = chance.randbytes(TOKEN_BYTES), chance.getrandbits(REGISTRATION_BITS)
    return Identity(handle, account_id(spelled(handle)), 0, registration, token)


def token_digest(identity: Identity) -> str:
    return hashlib.sha256(identity.token).hexdigest()


def begin(
    path: str | os.PathLike[str], handle: str, label: str = "", platform: Platform = Platform.CLI,
    secret: Secret | None = None,
) -> LinkRequest:  # fmt: skip
    """Make a profile for a new device. Asking again gives the same request."""
    profile = Profile(Path(path).expanduser(), secret)
    try:
        store = profile.store
        identity = store.identity()
        if identity is None:
            identity = choose_identity(handle)
            keys = make_keys(Address(0, identity.registration), SYSTEM, ClientClock()())
            store.put_identity(identity)
            store.put_own_keys(OwnKeys(encode_keys(keys)))
            store.put_errand(ERRAND, SYSTEM.draw(SECRET_BYTES))
            store.commit()
        row, secret_word = store.own_keys(), store.errand(ERRAND)
        if identity.device or spelled(identity.handle) != spelled(handle) or row is None or secret_word is None:
            raise Misused(f"the profile {path} is in use already")
        public = decode_keys(row.state).identity.public.encode()
        return LinkRequest(
            identity.handle, identity.registration, token_digest(identity), public, secret_word, label, platform
        )  # fmt: skip
    finally:
        profile.close()


def finish(path: str | os.PathLike[str], device: int, secret: Secret | None = None) -> None:
    """The server has given this number to the new device, by way of the primary device."""
    profile = Profile(Path(path).expanduser(), secret)
    try:
        become(profile.store, device)
    except Misused:
        raise Misused(f"the profile {path} did not ask to become that device") from None
    finally:
        profile.close()


def become(store: Store, device: int) -> Identity:
    """The server has given this device its number, and so decided which handle was meant.

    Raises Misused if the number is not for this device.
    """
    identity, row, account = store.identity(), store.own_keys(), account_of(device)
    meant = [each for each in spellings(identity.handle) if account in account_ids(each)] if identity else []
    if identity is None or not meant or identity.device not in (0, device):
        raise Misused("this device did not ask for that number")
    identity = replace(identity, handle=meant[0], account=account, device=device)
    store.put_identity(identity)
    if row is not None:
        keys = replace(decode_keys(row.state), address=Address(device, identity.registration))
        store.put_own_keys(replace(row, state=encode_keys(keys)))
    store.commit()
    return identity
