"""A request to a provider, and what of its answer is looked at."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class PushRequest(Struct, frozen=True):
    url: str
    headers: Mapping[str, str]
    body: bytes


class ProviderAnswer(Struct, frozen=True):
    status: int
    retry_after: str | None
    body: bytes
    """At most a few thousand bytes of it."""
