"""Numbers in a query or in a path: bounded before they are believed."""

from __future__ import annotations

from starlette.requests import Request

from .problems import malformed


def is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 16


def number_asked(request: Request, name: str, wrong: str) -> int:
    """0 if it is left out. Raises a Problem with the sentence `wrong`."""
    text = request.query_params.get(name, "") or "0"
    if not is_number(text):
        raise malformed(wrong)
    return int(text)
