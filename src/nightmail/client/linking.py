"""A further device of an account: it chooses its token, an older device vouches for it.

    new device     request = begin("laptop.profile", "alice")        → shown as a code
    older device   device = await client.link(request)
    new device     finish("laptop.profile", device)

The token never leaves the new device; the code holds its digest, and nothing that is secret.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from random import SystemRandom

from msgspec import Struct
from msgspec.structs import replace

from nightmail.model.handles import spelled
from nightmail.model.ids import account_id, account_of
from nightmail.model.words import Platform

from .errors import Misused
from .profile import Profile
from .protection import Secret
from .store import Identity

TOKEN_BYTES = 32
REGISTRATION_BITS = 31


class LinkRequest(Struct, frozen=True):
    """What a new device asks of an older one."""

    handle: str
    registration: int
    token_digest: str
    label: str = ""
    platform: Platform = Platform.CLI


def choose_identity(handle: str) -> Identity:
    """Who a device will be, before the server has given it a number."""
    chance, handle = SystemRandom(), spelled(handle)
    token, registration = chance.randbytes(TOKEN_BYTES), chance.getrandbits(REGISTRATION_BITS)
    return Identity(handle, account_id(handle), 0, registration, token)


def token_digest(identity: Identity) -> str:
    return hashlib.sha256(identity.token).hexdigest()


def begin(
    path: str | os.PathLike[str], handle: str, label: str = "", platform: Platform = Platform.CLI,
    secret: Secret | None = None,
) -> LinkRequest:  # fmt: skip
    """Make a profile for a new device. Asking again gives the same request."""
    profile = Profile(Path(path).expanduser(), secret)
    try:
        identity = profile.store.identity()
        if identity is None:
            identity = choose_identity(handle)
            profile.store.put_identity(identity)
            profile.store.commit()
        if identity.device or identity.handle != spelled(handle):
            raise Misused(f"the profile {path} is in use already")
        return LinkRequest(identity.handle, identity.registration, token_digest(identity), label, platform)
    finally:
        profile.close()


def finish(path: str | os.PathLike[str], device: int, secret: Secret | None = None) -> None:
    """The older device was given this number for us."""
    profile = Profile(Path(path).expanduser(), secret)
    try:
        identity = profile.store.identity()
        if identity is None or account_of(device) != identity.account or identity.device not in (0, device):
            raise Misused(f"the profile {path} did not ask to become that device")
        profile.store.put_identity(replace(identity, device=device))
        profile.store.commit()
    finally:
        profile.close()
