"""One method of one path: enough to serve it, and to describe it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

Handler: TypeAlias = Callable[[Request], Awaitable[Struct | Response | None]]
"""A response is sent as it is."""


class ApiRoute(Struct, frozen=True):
    method: str
    path: str
    who: str
    """anyone, device, operator, or device/operator."""
    summary: str
    handler: Handler
    takes: type[Struct] | None = None
    gives: type[Struct] | None = None
    """None: no content."""
    status: int = 200
    problems: tuple[str, ...] = ()
    """Codes beyond those that every route may answer with."""
    query: tuple[str, ...] = ()
    """Names in the query, each of them optional."""
    headers: tuple[str, ...] = ()
    """Likewise, headers."""
    media: str = ""
    """The type of what it gives, if that is no JSON."""
    is_alias: bool = False
    """The same under a shorter path."""
