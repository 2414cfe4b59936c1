"""The section [push]: whose credentials, and where providers are asked. `pushes.py` uses them."""

from __future__ import annotations

from msgspec import Struct


class PushSettings(Struct, frozen=True):
    apns_key_file: str = ""
    """Apple's key for this server (.p8), PEM; empty: no device of ios is woken."""
    apns_key_id: str = ""
    """The key's id, ten characters."""
    apns_team: str = ""
    """The id of the team that the key belongs to, ten characters."""
    apns_topic: str = ""
    """The bundle id of the app."""
    apns_server: str = "https://api.push.apple.com"
    """Where Apple is asked; https://api.sandbox.push.apple.com for an app that is being developed."""
    fcm_account_file: str = ""
    """The service account that Google's console gave, JSON; empty: no device of android is woken."""
    fcm_server: str = "https://fcm.googleapis.com"
    """Where Google is asked."""
    vapid_key_file: str = ""
    """A private key of the curve P-256, PEM, for Web Push; empty: no browser is woken."""
    vapid_contact: str = ""
    """How a push service reaches the operator: mailto: and an address, or https: and a page."""
    unifiedpush: bool = False
    """Whether devices may name an address of their own that is called to wake them. A private one must be named in
    schedule.private_networks."""
    ca_file: str = ""
    """Authorities whose certificates are believed for Apple's and Google's addresses besides the system's, PEM."""
    secret: str = ""
    """What the pseudonyms of devices are made with, 32 characters or more; empty: made at the first start, in the file
    push.secret."""
