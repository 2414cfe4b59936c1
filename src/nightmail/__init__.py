"""Nightmail: every message exactly once, in order, on every device.

from nightmail import Client

Importing the package costs nothing: what the client needs is loaded when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import Client, ClientError, Message, Receipt, SyncClient, Tick

__all__ = ["Client", "ClientError", "Message", "Receipt", "SyncClient", "Tick"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".client", __name__), name)
