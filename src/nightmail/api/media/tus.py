"""The words of tus 1.0.0: what its headers say.

Knows:   the form of each header.
Never:   repeats in an error what a header held.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import NamedTuple, Protocol

from starlette.requests import Request

from nightmail.api.problems import malformed, problem
from nightmail.model.blob_rows import Purpose
from nightmail.model.forms import NUMBER_MAX

VERSION = "1.0.0"
EXTENSIONS = "creation,creation-with-upload,checksum,termination,expiration"
MEDIA_TYPE = "application/offset+octet-stream"
DIGESTS = {"sha256": 32, "sha1": 20}
"""Algorithm → the length of its digests. SHA-1 is there because tus asks for it; it only finds accidents."""
HEADERS = {"Tus-Resumable": VERSION, "Cache-Control": "no-store"}
PURPOSES = {b"media": Purpose.MEDIA, b"backup": Purpose.BACKUP}


class Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


class Checksum(NamedTuple):
    algorithm: str
    digest: bytes


def check_version(request: Request) -> None:
    """Raises a Problem unless the request speaks this version."""
    if request.headers.get("tus-resumable") != VERSION:
        wrong = problem("tus_version", f"send Tus-Resumable: {VERSION}")
        wrong.headers["Tus-Version"] = VERSION
        raise wrong


def number_in(request: Request, header: str) -> int:
    text = request.headers.get(header, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 16 and int(text) <= NUMBER_MAX):
        raise malformed(f"{header} is not a whole number")
    return int(text)


def has_bytes(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == MEDIA_TYPE


def purpose_of(request: Request) -> Purpose:
    """From the metadata; other keys are for others."""
    for pair in request.headers.get("upload-metadata", "").split(","):
        key, _, value = pair.strip().partition(" ")
        if key == "purpose":
            if (purpose := PURPOSES.get(_base64(value, "Upload-Metadata"))) is None:
                raise malformed("a blob's purpose is media or backup")
            return purpose
    return Purpose.MEDIA


def checksum_of(request: Request) -> Checksum | None:
    if (text := request.headers.get("upload-checksum")) is None:
        return None
    algorithm, _, value = text.partition(" ")
    if algorithm not in DIGESTS:
        raise malformed(f"Upload-Checksum is by one of {', '.join(DIGESTS)}")
    digest = _base64(value, "Upload-Checksum")
    if len(digest) != DIGESTS[algorithm]:
        raise malformed(f"a digest by {algorithm} has {DIGESTS[algorithm]} bytes")
    return Checksum(algorithm, digest)


def new_digest(checksum: Checksum) -> Digest:
    return hashlib.new(checksum.algorithm, usedforsecurity=False)


def _base64(text: str, header: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise malformed(f"{header} is not base64") from None
