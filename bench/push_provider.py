"""A push provider that takes everything, as fast as it can: what is measured is who pushes."""

from __future__ import annotations

from typing import Any


async def app(_scope: Any, protocol: Any) -> None:
    await protocol()
    protocol.response_empty(200, [("apns-id", "1")])
