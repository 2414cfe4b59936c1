"""The operations page: files of the package, served as they are.

Knows:   which files there are, and what a browser may do with them.
Touches: the folder `web/ops` of the package, to read it once.
Never:   serves a name that is not in that folder, or anything that depends on who asks: the page holds no data, and
         gets all of it over the API, with the operator's token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from .problems import problem

PATH = "/ops"
INDEX = "index.html"
TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
"""Endings that are served. Others are for people who work on the page."""

POLICY = "; ".join((
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
))  # fmt: skip
"""Only what comes from this server; nothing inline; no text ever becomes markup; in nobody's frame."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class PageFile(Struct, frozen=True):
    content: bytes
    media_type: str
    tag: str


@cache
def page_files() -> dict[str, PageFile]:
    """Name → file."""
    return dict(_found(files("nightmail").joinpath("web", "ops"), ""))


def _found(folder: Traversable, above: str) -> Iterator[tuple[str, PageFile]]:
    for each in folder.iterdir():
        ending = each.name.rpartition(".")[2]
        if each.is_dir():
            yield from _found(each, f"{above}{each.name}/")
        elif media_type := TYPES.get(ending):
            content = each.read_bytes()
            yield above + each.name, PageFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:20]}"')


async def page(request: Request) -> Response:
    return _answer(request, INDEX)


async def page_file(request: Request) -> Response:
    """A file of the page. `/ops/` is the page, too: everything in it is named relative to `/ops`."""
    if not (name := request.path_params["name"]):
        return RedirectResponse(f"..{PATH}", 308, HEADERS)
    return _answer(request, name)


def _answer(request: Request, name: str) -> Response:
    if (found := page_files().get(name)) is None:
        raise problem("not_found", "the operations page has no such file")
    headers = {**HEADERS, "ETag": found.tag}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers={**headers, "Content-Type": found.media_type})
