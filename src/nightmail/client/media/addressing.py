"""Whether a blob is for the devices that its message is about to be sealed for. Values only."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Addressing(Enum):
    """Whether a blob is for the devices that a message is about to be sealed for."""

    NAMED = "it is for all of them, or the message names no blob of this account"
    WAITING = "they are being named, and the stream goes on then"
    GONE = "there is no such blob any more"


class AudienceWanted(NamedTuple):
    """Devices to be named for a blob, before its message can be sealed for them."""

    message_id: str
    blob: str
    devices: tuple[int, ...]
    life_ms: int
