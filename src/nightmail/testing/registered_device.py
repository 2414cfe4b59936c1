"""A registered device: a profile folder, and clients on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from nightmail.client import Client, SyncClient


class RegisteredDevice(NamedTuple):
    """One device of one account. Only one client at a time can open it."""

    handle: str
    profile: Path
    url: str

    def client(self, **options: Any) -> Client:
        """For asyncio: `async with device.client() as client`. `options` are those of `Client`."""
        return Client(self.profile, [self.url], **options)

    def sync(self, **options: Any) -> SyncClient:
        """Without asyncio: `with device.sync() as client`."""
        return SyncClient(self.profile, [self.url], **options)
