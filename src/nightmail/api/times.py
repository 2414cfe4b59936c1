"""Times in JSON: milliseconds since 1970; beside each, a field that ends in `_rfc3339` says the same as text."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta

Time = Annotated[
    str,
    Meta(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", description="The same by RFC 3339, in UTC.",
        examples=["2026-03-01T12:00:00.000Z"], extra_json_schema={"format": "date-time"},
    ),
]  # fmt: skip
Milliseconds = Annotated[int, Meta(description="In milliseconds since 1970.")]


def rfc3339(at_ms: int) -> str:
    then = datetime.fromtimestamp(at_ms // 1_000, UTC)
    return f"{then:%Y-%m-%dT%H:%M:%S}.{at_ms % 1_000:03d}Z"


RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)


def from_rfc3339(text: str) -> int:
    """Milliseconds since 1970. Raises ValueError for anything else than RFC 3339 with a zone."""
    if not (match := RFC3339.match(text)):
        raise ValueError("not a time by RFC 3339, such as 2026-03-01T12:00:00Z")
    # A leap second is the end of its minute; no clock here counts it.
    whole = text.upper().replace(match[1] or "", "", 1).replace("Z", "+00:00").replace(":60", ":59", 1)
    try:
        seconds = int(datetime.fromisoformat(whole).timestamp())
    except (ValueError, OverflowError):
        raise ValueError("not a time by RFC 3339: there is no such day or hour") from None
    return seconds * 1_000 + int(((match[1] or ".")[1:] + "000")[:3])
