"""Uploads by tus 1.0.0: begun, gone on with, looked at, ended.

Knows:   the order: quota, bytes, durable, the record that says so.
Touches: the store of bytes, and the shards.
Never:   confirms a byte that is not durable, or takes one beyond the declared size.
"""

from __future__ import annotations

import asyncio
import hmac
import os
from email.utils import formatdate

from starlette.requests import Request
from starlette.responses import Response

from nightmail.api.access import Access
from nightmail.api.desk_client import DeskClient
from nightmail.api.problems import malformed, problem, refused
from nightmail.api.rates import Rate
from nightmail.api.route import ApiRoute
from nightmail.model.blob_rows import BlobSeen
from nightmail.model.blobs import BlobId
from nightmail.model.ids import SERVER, account_of
from nightmail.model.records import BlobBegun, BlobCompleted, BlobRemoved
from nightmail.model.refusals import UnknownBlob

from .blob_client import BlobClient
from .limits import MediaLimits
from .transfers import BodyEnd, Transfers, UploadTurn, UploadTurns
from .tus import (
    DIGESTS,
    EXTENSIONS,
    HEADERS,
    VERSION,
    Digest,
    check_version,
    checksum_of,
    has_bytes,
    new_digest,
    number_in,
    purpose_of,
)

HASHED_AT_ONCE = 32_768
"""So many bytes are hashed in a tenth of a millisecond."""
OVERRIDE = "X-HTTP-Method-Override"


def blob_name(request: Request) -> BlobId:
    try:
        return BlobId.parse(request.path_params["blob"])
    except ValueError:
        raise refused(UnknownBlob()) from None


class UploadRoutes:
    def __init__(
        self, desk: DeskClient, access: Access, blobs: BlobClient, limits: MediaLimits, streams: Transfers,
        begun: Rate, most_bytes: int,
    ) -> None:  # fmt: skip
        """`most_bytes`: of one upload."""
        self._desk, self._access, self._blobs, self._limits = desk, access, blobs, limits
        self._streams, self._begun, self._most_bytes = streams, begun, most_bytes
        self._turns = UploadTurns()

    async def upload_options(self, _request: Request) -> Response:
        headers = {
            "Tus-Version": VERSION, "Tus-Extension": EXTENSIONS, "Tus-Max-Size": str(self._most_bytes),
            "Tus-Checksum-Algorithm": ",".join(DIGESTS),
        }  # fmt: skip
        return Response(status_code=204, headers={**HEADERS, **headers})

    async def begin_upload(self, request: Request) -> Response:
        device = await self._access.device(request)
        check_version(request)
        size, purpose = number_in(request, "Upload-Length"), purpose_of(request)
        checksum_of(request)
        self._begun.take(f"{account_of(device):x}")
        name = BlobId(account_of(device), os.urandom(16))
        await self._desk.done(SERVER, BlobBegun(*name, purpose, size))
        seen = await self._blobs.seen(name, device)
        async with self._turns.alone(name) as turn:
            offset = 0
            if has_bytes(request) or not size:
                offset = await self._receive(request, turn, name, seen, 0)
        headers = {"Location": f"/v1/media/{name}", "Upload-Offset": str(offset)}
        return Response(status_code=201, headers={**HEADERS, **headers, **_expires(seen, offset)})

    async def look_at_upload(self, request: Request) -> Response:
        device, name = await self._owner(request)
        async with self._turns.alone(name):
            seen = await self._blobs.seen(name, device)
            offset = await self._offset(name, seen)
        headers = {"Upload-Offset": str(offset), "Upload-Length": str(seen.size)}
        return Response(status_code=200, headers={**HEADERS, **headers, **_expires(seen, offset)})

    async def continue_upload(self, request: Request) -> Response:
        device, name = await self._owner(request)
        if not has_bytes(request):
            raise problem("unsupported_media_type", "send application/offset+octet-stream")
        said = number_in(request, "Upload-Offset")
        async with self._turns.alone(name) as turn:
            seen = await self._blobs.seen(name, device)
            if (offset := await self._offset(name, seen)) != said:
                raise problem("wrong_offset", "another part comes next", fields={"offset": offset})
            offset = await self._receive(request, turn, name, seen, offset)
        return Response(status_code=204, headers={**HEADERS, "Upload-Offset": str(offset), **_expires(seen, offset)})

    async def end_upload(self, request: Request) -> Response:
        _, name = await self._owner(request)
        async with self._turns.alone(name):
            await self._desk.done(SERVER, BlobRemoved(*name))
        return Response(status_code=204, headers=HEADERS)

    async def override(self, request: Request) -> Response:
        """For those who can only POST."""
        if request.headers.get(OVERRIDE) == "PATCH":
            return await self.continue_upload(request)
        if request.headers.get(OVERRIDE) == "DELETE":
            return await self.end_upload(request)
        await self._owner(request)
        raise malformed(f"{OVERRIDE} is PATCH or DELETE")

    async def _owner(self, request: Request) -> tuple[int, BlobId]:
        device, name = await self._access.device(request), blob_name(request)
        if account_of(device) != name.owner:
            raise refused(UnknownBlob())
        check_version(request)
        return device, name

    async def _offset(self, name: BlobId, seen: BlobSeen) -> int:
        """How much is there. After a crash it may be all of it, and nobody has said so."""
        if seen.is_whole:
            return seen.size
        held = await self._blobs.held(name)
        if held.size == seen.size:
            await self._finish(name, seen)
        return held.size

    async def _finish(self, name: BlobId, seen: BlobSeen) -> None:
        await self._blobs.finish(name, seen.size)
        await self._desk.done(SERVER, BlobCompleted(*name))

    async def _receive(self, request: Request, turn: UploadTurn, name: BlobId, seen: BlobSeen, offset: int) -> int:
        """Take what the body holds. Returns how much is durable; raises a Problem if nothing of it counts."""
        checksum = checksum_of(request)
        digest = new_digest(checksum) if checksum else None
        beyond = problem("too_large", "more than the upload's length", fields={"limit": seen.size - offset})
        length = request.headers.get("content-length", "")
        if length.isdecimal() and offset + int(length) > seen.size:
            raise beyond
        received, ended, stream = offset, None, request.stream()
        with self._streams.one(name.owner):
            while ended is None:
                piece, ended = await turn.next_piece(stream, self._limits)
                if received + len(piece) > seen.size:
                    raise beyond
                hashing = _hashing(digest, piece) if digest else None
                if piece:
                    await self._blobs.write(name, received, piece)
                if hashing:
                    await hashing
                received += len(piece)
                await self._streams.wait()
            is_whole = ended is BodyEnd.WHOLE
            if checksum and digest and not (is_whole and hmac.compare_digest(digest.digest(), checksum.digest)):
                raise problem("checksum_mismatch", "these are not the bytes that the checksum is of")
            if received == seen.size:
                if not seen.is_whole:
                    await self._finish(name, seen)
            elif received > offset:
                await self._blobs.confirm(name, received)
        if not is_whole:
            raise problem("too_slow", "the body did not arrive in time", fields={"offset": received})
        return received

    def routes(self) -> list[ApiRoute]:
        named = "/v1/media/{blob}"
        own = ("unknown_blob", "tus_version")
        taking = ("malformed", "too_large", "too_slow", "checksum_mismatch", "rate_limited", "not_ready")
        about = ("Tus-Resumable", "Upload-Checksum")
        return [
            ApiRoute("OPTIONS", "/v1/media", "anyone", "What uploads can do (tus)", self.upload_options),
            ApiRoute("OPTIONS", named, "anyone", "Likewise", self.upload_options, is_alias=True),
            ApiRoute(
                "POST", "/v1/media", "device", "Begin an upload (tus)", self.begin_upload, status=201,
                problems=("tus_version", *taking, "blob_too_large", "blob_quota", "too_many_blobs", "too_many_uploads",
                          "not_yet"),
                headers=("Upload-Length", "Upload-Metadata", *about),
            ),
            ApiRoute("HEAD", named, "device", "How much of an upload is there (tus)", self.look_at_upload, status=200,
                     problems=own, headers=("Tus-Resumable",)),
            ApiRoute("PATCH", named, "device", "Go on with an upload (tus)", self.continue_upload,
                     problems=(*own, *taking, "wrong_offset", "unsupported_media_type"),
                     headers=("Upload-Offset", *about)),
            ApiRoute("DELETE", named, "device", "End a blob, whole or not (tus)", self.end_upload, problems=own,
                     headers=("Tus-Resumable",)),
            ApiRoute("POST", named, "device", "PATCH or DELETE, for those who can only POST (tus)", self.override,
                     problems=(*own, *taking, "wrong_offset", "unsupported_media_type"),
                     headers=(OVERRIDE, "Upload-Offset", *about)),
        ]  # fmt: skip


def _hashing(digest: Digest, piece: bytes) -> asyncio.Future[None] | None:
    """On a thread if it takes long: live messages do not wait for it."""
    if len(piece) < HASHED_AT_ONCE:
        digest.update(piece)
        return None
    return asyncio.get_running_loop().run_in_executor(None, digest.update, piece)


def _expires(seen: BlobSeen, offset: int) -> dict[str, str]:
    """Until when an upload may go on."""
    if seen.is_whole or offset == seen.size:
        return {}
    return {"Upload-Expires": formatdate(seen.ends_at / 1000, usegmt=True)}
