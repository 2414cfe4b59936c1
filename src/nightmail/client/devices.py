"""A device of the own account, as the server describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class DeviceSeen(Struct, frozen=True):
    device: int
    label: str
    platform: str
    listed: bool
    """Messages are sealed for it."""

    @classmethod
    def of(cls, seen: Mapping[str, Any]) -> DeviceSeen:
        return cls(int(seen["device"], 16), seen["label"], seen["platform"], seen["listed"])
