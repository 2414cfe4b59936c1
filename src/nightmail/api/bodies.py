"""Reads a request's body, with limits on its size and on the time it takes to arrive."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from .limits import HttpLimits
from .problems import malformed, problem

T = TypeVar("T")


async def read_json(request: Request, kind: type[T], limits: HttpLimits, most: int = 0) -> T:
    """The body as a value of `kind`. Raises a Problem if it is not, or does not come, or has more than `most` bytes
    (0: `http.request_bytes`)."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise problem("unsupported_media_type", "send application/json")
    try:
        async with asyncio.timeout(limits.request_ms / 1000):
            data = await _read(request, most or limits.request_bytes)
    except TimeoutError:
        raise problem("too_slow", f"the body did not arrive within {limits.request_ms} ms") from None
    except ClientDisconnect:
        raise malformed("the body ends too early") from None
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise malformed(_safe(error)) from None


async def _read(request: Request, most: int) -> bytes:
    too_large = problem("too_large", f"a body has at most {most} bytes", fields={"limit": most})
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise too_large
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > most:
            raise too_large
    return bytes(data)


def _safe(error: Exception) -> str:
    """What is wrong and where: msgspec names types and fields, and only names of fields come from the peer."""
    return str(error)[:200] if isinstance(error, msgspec.DecodeError) else "not JSON"
