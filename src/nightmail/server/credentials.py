"""Settings of others' services: credentials and addresses stand together, or not at all.

Never:   repeats a secret.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import urlsplit

from nightmail.outlets.signing import secret_bytes

from .settings import BadSetting, Value

Refuse: TypeAlias = Callable[[str, str], BadSetting]
"""(setting, what is wrong with it)"""


def check_push(values: dict[str, Value], refuse: Refuse) -> None:
    """Credentials stand together, or not at all."""
    for name in ("apns_key_id", "apns_team", "apns_topic"):
        if bool(values["push.apns_key_file"]) != bool(values[f"push.{name}"]):
            raise refuse(f"push.{name}", "and push.apns_key_file need each other")
    contact = str(values["push.vapid_contact"])
    if values["push.vapid_key_file"] and not contact.startswith(("mailto:", "https:")):
        raise refuse("push.vapid_contact", "must begin with mailto: or https: where push.vapid_key_file is set")
    for name in ("apns_server", "fcm_server"):
        if not str(values[f"push.{name}"]).startswith("https://"):
            raise refuse(f"push.{name}", "must begin with https://")


def check_media(values: dict[str, Value], refuse: Refuse) -> None:
    for name in ("s3_endpoint", "s3_region", "s3_key_id", "s3_secret_key"):
        if values[f"media.{name}"] and not values["media.s3_bucket"]:
            raise refuse(f"media.{name}", "needs media.s3_bucket beside it")
    if bool(values["media.s3_key_id"]) != bool(values["media.s3_secret_key"]):
        raise refuse("media.s3_key_id", "and media.s3_secret_key need each other")
    endpoint = str(values["media.s3_endpoint"])
    if endpoint and (urlsplit(endpoint).scheme not in {"https", "http"} or not urlsplit(endpoint).hostname):
        raise refuse("media.s3_endpoint", "must be an address that begins with https:// or http://")


def check_accounts(values: dict[str, Value], refuse: Refuse) -> None:
    if values["accounts.verification"] == "none":
        return
    url = urlsplit(str(values["accounts.webhook_url"]))
    schemes = {"https", "http"} if values["accounts.webhook_private"] else {"https"}
    if url.scheme not in schemes or not url.hostname:
        raise refuse("accounts.webhook_url", f"must be an address that begins with {' or '.join(sorted(schemes))}://")
    check_secret("accounts.webhook_secret", values, refuse)


def check_secret(name: str, values: dict[str, Value], refuse: Refuse) -> None:
    """What calls are signed with."""
    try:
        secret_bytes(str(values[name]))
    except ValueError as error:
        raise refuse(name, f"is {error}") from None
