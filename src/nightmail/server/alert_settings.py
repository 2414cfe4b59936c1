"""What an operator sets about alerts."""

from __future__ import annotations

from msgspec import Struct


class AlertSettings(Struct, frozen=True):
    webhook_url: str = ""
    """Where alerts are told when they begin to fire and when they have ended, signed; empty: nowhere. A private address
    must be named in schedule.private_networks."""
    webhook_secret: str = ""
    """What the calls are signed with: base64 of 24 to 64 bytes, behind whsec_ or not."""
    every_ms: int = 15_000
    """How often alerts are judged, in ms."""
    repeat_ms: int = 4 * 60 * 60 * 1000
    """How often an alert that goes on firing is told again, in ms."""
    silenced: str = ""
    """Names of alerts that are not told to the webhook, with commas between."""

    @property
    def silenced_names(self) -> list[str]:
        return [name.strip() for name in self.silenced.split(",") if name.strip()]
