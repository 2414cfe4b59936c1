"""Everything of a node that wakes devices, put together: credentials, providers, waker.

Knows:   which files hold credentials.
Touches: those files, once, before the start; the data folder, for the secret of pseudonyms.
Never:   logs a credential, or says anything of what a file holds.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from pathlib import Path

from nightmail.api.push_routes import PushService
from nightmail.engine.ports import Desk, EngineError, Post, Registry
from nightmail.outlets.dispatch import Dispatch
from nightmail.outlets.push.apns import Apns
from nightmail.outlets.push.fcm import Fcm
from nightmail.outlets.push.http2 import Http2Limits
from nightmail.outlets.push.jwt import BadKey
from nightmail.outlets.push.payload import Pseudonyms
from nightmail.outlets.push.providers import Providers, ProviderSetup
from nightmail.outlets.push.waker import PushWaker, WakerLimits
from nightmail.outlets.push.web_push import WebPush

from .heart import clock, pace
from .push_settings import PushSettings
from .secret_files import secret_from

SECRET_FILE = "push.secret"  # noqa: S105 (a name)


class NodePushes:
    def __init__(
        self, settings: PushSettings, http2: Http2Limits, limits: WakerLimits, desk: Desk, registry: Registry,
        dispatch: Dispatch, post: Post, soon: Callable[[], None],
    ) -> None:  # fmt: skip
        """Raises EngineError if credentials cannot be read."""
        self._settings = settings
        self.providers = Providers(_setup(settings, http2), dispatch, clock, post)
        self.waker = PushWaker(desk, registry, self.providers, pace, soon, limits)

    def start(self, folder: Path) -> None:
        """Before the first push. A folder that is refused gets no new files."""
        self.start_with(secret_from(self._settings.secret, folder / SECRET_FILE))

    def start_with(self, secret: str) -> None:
        """With a secret that all nodes of a cluster have: a device has one pseudonym."""
        self.providers.pseudonyms = Pseudonyms(secret.encode())
        self.waker.begin_grace()

    @property
    def service(self) -> PushService:
        """For the HTTP side."""
        return PushService(self.providers.probe, self.providers.web_key)

    def close(self) -> None:
        self.providers.close()


def derived(secret: str) -> str:
    """For a cluster whose settings have no `push.secret`: from one that they must have."""
    return hmac.digest(secret.encode(), b"push.secret", "sha256").hex()


def _setup(settings: PushSettings, limits: Http2Limits) -> ProviderSetup:
    s = settings
    try:
        return ProviderSetup(
            Apns(s.apns_server, _read("apns_key_file", s.apns_key_file), s.apns_key_id, s.apns_team, s.apns_topic)
            if s.apns_key_file
            else None,
            Fcm(s.fcm_server, _read("fcm_account_file", s.fcm_account_file)) if s.fcm_account_file else None,
            WebPush(_read("vapid_key_file", s.vapid_key_file), s.vapid_contact) if s.vapid_key_file else None,
            s.unifiedpush,
            limits,
            _read("ca_file", s.ca_file) if s.ca_file else b"",
        )
    except BadKey as error:
        raise EngineError(str(error)) from None


def _read(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise EngineError(f"push.{name} names {path}, which cannot be read: {error.strerror}") from None
