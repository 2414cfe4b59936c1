"""Verification codes go to a webhook of the operator's, which sends the SMS or the mail to the handle's owner."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from nightmail.api.times import rfc3339
from nightmail.api.verification import Deliver, Delivery
from nightmail.outlets.dispatch import Dispatch
from nightmail.outlets.signing import secret_bytes
from nightmail.outlets.webhooks import Webhook

from .config import AccountSettings


class CodeMade(Struct, frozen=True):
    """What the webhook is told."""

    handle: str
    code: str
    expires_at: int
    """In milliseconds since 1970."""
    expires_at_rfc3339: str


def webhook_of(settings: AccountSettings, dispatch: Dispatch) -> Webhook | None:
    """None if the server verifies nobody."""
    if settings.verification == "none":
        return None
    secret = secret_bytes(settings.webhook_secret)
    return Webhook(settings.webhook_url, secret, dispatch, private=settings.webhook_private)


def deliver_by(webhook: Webhook) -> Deliver:
    async def deliver(handle: str, code: str, expires_at: int) -> Delivery:
        return await webhook.post(msgspec.json.encode(CodeMade(handle, code, expires_at, rfc3339(expires_at))))

    return deliver
