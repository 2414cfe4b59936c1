"""How a profile becomes a device: its handle is registered, or another device vouches for it.

Knows:   who is to be registered, and how far an earlier attempt came.
Touches: the identity in the profile, and nothing else of it.
Never:   registers a handle for a profile that has another.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from nightmail.client.errors import Misused, Refused
from nightmail.client.link.http import Http
from nightmail.client.profile.pin import pin_token
from nightmail.client.profile.profile import Profile
from nightmail.client.store.rows import Identity
from nightmail.model.handles import spelled, spellings
from nightmail.model.ids import account_id
from nightmail.model.words import Platform

from .link_request import become, choose_identity, token_digest
from .pairing import ERRAND as PAIRING


class Applicant(NamedTuple):
    """Who is to be registered, if the profile is new."""

    handle: str
    label: str
    platform: Platform
    code: str
    pin: str
    """With `code`, what shows that the handle is theirs."""

    def __repr__(self) -> str:
        return f"<applicant for {self.handle!r}>"


async def join(profile: Profile, applicant: Applicant, http: Http, find_ms: int) -> Identity:
    """The identity of this device, once it has its number. Raises Misused, HttpError.

    `http` has no credentials yet. A device that waits to be vouched for asks every `find_ms`.
    """
    store, handle = profile.store, applicant.handle
    identity = store.identity()
    if identity is None:
        if not handle:
            raise Misused(f"the profile {profile.path} is empty: say which handle to register")
        # Chosen and saved before it is sent: if the answer is lost, asking again gives the same device.
        identity = choose_identity(handle)
        store.put_identity(identity)
        store.commit()
    if handle and spelled(identity.handle) != spelled(handle):
        raise Misused(f"the profile {profile.path} belongs to {identity.handle!r}, not to {handle!r}")
    if identity.device:
        return identity
    if store.errand(PAIRING) is not None:
        return become(store, await _find_number(identity, http, find_ms))
    if not handle:
        raise Misused(f"the profile {profile.path} was never finished: register its handle, or link it")
    return become(store, await _register(identity, applicant, http))


async def _register(identity: Identity, applicant: Applicant, http: Http) -> int:
    """The number of this device. The server decides which handle the text means, and a PIN is bound to its handle."""
    wrong: Refused | None = None
    for handle in reversed(spellings(identity.handle) if applicant.pin else (identity.handle,)):
        token = await asyncio.to_thread(pin_token, account_id(handle), applicant.pin) if applicant.pin else b""
        try:
            joined = await http.register(
                identity, applicant.label, applicant.platform, code=applicant.code, pin_token=token
            )
        except Refused as refused:
            if refused.code != "pin_wrong":
                raise
            wrong = refused
        else:
            return int(joined.device, 16)
    assert wrong is not None
    raise wrong


async def _find_number(identity: Identity, http: Http, find_ms: int) -> int:
    """Wait until the primary device has vouched for this one. The number that the server gave it."""
    digest = token_digest(identity)
    while True:
        joined = await http.find_device(identity.handle, identity.registration, digest)
        if joined is not None:
            return int(joined.device, 16)
        await asyncio.sleep(find_ms / 1_000)
