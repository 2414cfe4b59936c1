"""Whom a blob is for, fetching it, saying that one has it; and the list of backups.

Knows:   ranges and tags of HTTP.
Touches: the store of bytes, and the shards.
Never:   tells a blob that is for others from one that there is not.
"""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from nightmail.api.access import Access
from nightmail.api.bodies import read_json
from nightmail.api.desk_client import DeskClient
from nightmail.api.limits import HttpLimits
from nightmail.api.problems import malformed, problem, refused
from nightmail.api.rates import Rate
from nightmail.api.route import ApiRoute
from nightmail.api.schemas import Hex, Number, device_number
from nightmail.api.times import Milliseconds, Time, rfc3339
from nightmail.model.blob_rows import PAGE_DEVICES
from nightmail.model.blobs import BlobId
from nightmail.model.ids import SERVER, account_of
from nightmail.model.records import BlobAddressed, BlobVerified
from nightmail.model.refusals import UnknownBlob

from .blob_client import BlobClient
from .limits import MediaLimits
from .transfers import BlobResponse, Transfers
from .upload_routes import blob_name

RANGE = re.compile(r"bytes=(?:([0-9]{1,16})-([0-9]{0,16})|-([0-9]{1,16}))\Z")
HEADERS = {
    "Accept-Ranges": "bytes", "Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff",
    "Content-Disposition": "attachment",
}  # fmt: skip


class NewAudience(Struct, frozen=True, forbid_unknown_fields=True):
    devices: Annotated[list[tuple[Hex, Hex]], Meta(max_length=PAGE_DEVICES)]
    """(account, device) each; added to those that were named before."""
    lifetime_seconds: Number = 0
    """The blob ends so long after now, if it would not end before that; 0: when it would."""


class BackupSeen(Struct, frozen=True):
    id: str
    size: int
    completed_at: Milliseconds
    completed_at_rfc3339: Time


class BackupsShown(Struct, frozen=True):
    backups: list[BackupSeen]


class ByteRange(NamedTuple):
    """Bytes `first` up to, but not including, `end`."""

    first: int
    end: int
    is_part: bool


class MediaRoutes:
    def __init__(
        self, desk: DeskClient, access: Access, blobs: BlobClient, limits: MediaLimits, http: HttpLimits,
        streams: Transfers, fetched: Rate,
    ) -> None:  # fmt: skip
        self._desk, self._access, self._blobs, self._limits = desk, access, blobs, limits
        self._http, self._streams, self._fetched = http, streams, fetched

    async def fetch_blob(self, request: Request) -> Response:
        device, name = await self._access.device(request), blob_name(request)
        self._fetched.take(f"{account_of(device):x}")
        seen = await self._blobs.seen(name, device)
        if not seen.is_whole:
            raise refused(UnknownBlob())
        tag = f'"{name.secret.hex()}"'
        headers = {**HEADERS, "ETag": tag}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        wanted = _wanted(request, tag, seen.size)
        if wanted.is_part:
            headers["Content-Range"] = f"bytes {wanted.first}-{wanted.end - 1}/{seen.size}"

        async def read(sent: int) -> bytes:
            first = wanted.first + sent
            return await self._blobs.read(name, first, min(self._limits.piece_bytes, wanted.end - first))

        streams, account = self._streams, account_of(device)
        streams.take(account)
        try:
            piece = await read(0)
        except BaseException:
            streams.leave(account)
            raise
        size, piece_s = wanted.end - wanted.first, self._limits.piece_ms / 1000
        status = 206 if wanted.is_part else 200
        return BlobResponse(
            request, status, headers, piece, size, read, lambda: streams.leave(account), streams.wait, piece_s
        )

    async def address_blob(self, request: Request) -> None:
        device, name = await self._access.device(request), blob_name(request)
        if account_of(device) != name.owner:
            raise refused(UnknownBlob())
        said = await read_json(request, NewAudience, self._http)
        devices = tuple(_device(*pair) for pair in said.devices)
        await self._desk.done(SERVER, BlobAddressed(*name, devices, said.lifetime_seconds * 1000))

    async def verify_blob(self, request: Request) -> None:
        device, name = await self._access.device(request), blob_name(request)
        await self._desk.done(SERVER, BlobVerified(*name, device))

    async def list_backups(self, request: Request) -> BackupsShown:
        account = account_of(await self._access.device(request))
        found = await self._blobs.backups(account)
        return BackupsShown([_backup(name, seen.size, seen.since_at) for name, seen in found])

    def routes(self) -> list[ApiRoute]:
        named = "/v1/media/{blob}"
        return [
            ApiRoute("GET", named, "device", "Fetch a blob, or a range of it", self.fetch_blob, status=200,
                     problems=("unknown_blob", "range_outside", "rate_limited", "not_ready"),
                     headers=("Range", "If-Range", "If-None-Match"), media="application/octet-stream"),
            ApiRoute("PUT", named + "/audience", "device", "Name devices that a blob is for", self.address_blob,
                     NewAudience, problems=("unknown_blob", "too_many_addressed", "blob_unfinished", "backup_private")),
            ApiRoute("POST", named + "/verified", "device", "Say that this device has all of a blob", self.verify_blob,
                     problems=("unknown_blob",)),
            ApiRoute("GET", "/v1/backups", "device", "The account's backups", self.list_backups, None, BackupsShown),
        ]  # fmt: skip


def _device(account: str, device: str) -> int:
    number = device_number(device)
    if account_of(number) != device_number(account):
        raise malformed("a device is not of the account that is named with it")
    return number


def _backup(name: BlobId, size: int, at: int) -> BackupSeen:
    return BackupSeen(str(name), size, at, rfc3339(at))


def _wanted(request: Request, tag: str, size: int) -> ByteRange:
    """A range that is not one of bytes, several at once, or one of another version: all of it."""
    whole = ByteRange(0, size, is_part=False)
    if request.headers.get("if-range", tag) != tag or not (match := RANGE.match(request.headers.get("range", ""))):
        return whole
    low, high, last = match.groups()
    if last is not None:
        first, end = max(0, size - int(last)), size
    else:
        first, end = int(low), min(size, int(high) + 1) if high else size
        if high and int(high) < first:
            return whole
    if first >= end:
        outside = problem("range_outside", "the blob does not reach there", fields={"size": size})
        outside.headers["Content-Range"] = f"bytes */{size}"
        raise outside
    return ByteRange(first, end, is_part=True)
