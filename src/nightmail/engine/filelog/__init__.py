"""The log of one machine: segment files, one write and one sync per batch."""

from .log import FileLog

__all__ = ["FileLog"]
