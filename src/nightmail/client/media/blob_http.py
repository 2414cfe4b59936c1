"""Requests about blobs: uploads by tus 1.0.0, downloads by ranges, audiences.

Knows:   the paths below `/v1/media`, and which refusals pass by themselves.
Never:   holds more of a blob than one piece; puts a token into an error. Every method blocks: call it on a thread.
         Each request has a connection of its own.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import re
import ssl
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import msgspec

from nightmail.client.errors import HttpError, Refused, Unreachable
from nightmail.client.limits import ClientLimits
from nightmail.client.link.http import connection_to, refusal_in, unreachable
from nightmail.client.media_errors import FileGone, OtherBlob
from nightmail.e2ee.errors import BadEncoding
from nightmail.e2ee.streams.media import parse_blob_id
from nightmail.e2ee.streams.stream import HEAD_BYTES, SEALED_CHUNK_BYTES
from nightmail.model.ids import account_of

TUS = {"Tus-Resumable": "1.0.0"}
BLOCK_BYTES = 262_144
"""So much is written to a connection at once, and about as much is read: each block has its own time limit."""
FETCHED_BYTES = 4 * SEALED_CHUNK_BYTES
DEVICES_MAX = 256
"""Devices that one request may name."""
ERROR_BYTES_MAX = 65_536

_RANGE = re.compile(r"bytes ([0-9]{1,16})-([0-9]{1,16})/([0-9]{1,16})\Z")
_PASSING = {"wrong_offset", "checksum_mismatch", "too_slow", "too_many_uploads", "disk_full", "unavailable"}
"""Refusals after which the same may succeed: ask where the upload stands, and go on later."""


def passes(error: Exception) -> bool:
    """Whether it may go away by itself: the network, a server that restarts, a limit on speed."""
    if isinstance(error, Refused):
        return error.code in _PASSING or error.status in (408, 429) or error.status >= 500
    return isinstance(error, Unreachable)


def checksum_of(piece: bytes | bytearray) -> str:
    """By which the server finds accidents."""
    return f"sha256 {base64.b64encode(hashlib.sha256(piece).digest()).decode()}"


class UploadSeen(NamedTuple):
    """How far an upload has come, as the server says."""

    offset: int
    size: int


class KeptBackup(msgspec.Struct, frozen=True):
    id: str
    size: int
    completed_at: int


class _KeptBackups(msgspec.Struct, frozen=True):
    backups: list[KeptBackup]


class BlobHttp:
    def __init__(
        self, addresses: Sequence[str], authorization: str, tls: ssl.SSLContext | None, limits: ClientLimits
    ) -> None:
        self._addresses, self._authorization, self._tls, self._limits = addresses, authorization, tls, limits

    def __repr__(self) -> str:
        return f"<BlobHttp to {', '.join(self._addresses)}>"

    # --- uploads --------------------------------------------------------------------------------

    def begin(self, size: int, purpose: str = "media") -> str:
        """Begin an upload; the id of the blob. Raises Refused: `blob_quota`, `blob_too_large`, …"""
        metadata = base64.b64encode(purpose.encode()).decode()
        headers = {**TUS, "Upload-Length": str(size), "Upload-Metadata": f"purpose {metadata}"}
        with self._asked("POST", "/v1/media", headers) as response:
            blob = response.getheader("Location", "").rpartition("/")[2]
        try:
            parse_blob_id(blob)
        except BadEncoding:
            raise HttpError("the server began an upload without saying where") from None
        return blob

    def look(self, blob: str) -> UploadSeen:
        """What of an upload is durable at the server. Raises FileGone."""
        with self._asked("HEAD", f"/v1/media/{blob}", TUS) as response:
            return UploadSeen(_number(response, "Upload-Offset"), _number(response, "Upload-Length"))

    def append(self, blob: str, offset: int, piece: bytes | bytearray, checksum: str = "") -> int:
        """Send the next piece, with its checksum: it counts whole, or not at all. What is durable then."""
        headers = {
            **TUS, "Upload-Offset": str(offset), "Upload-Checksum": checksum or checksum_of(piece),
            "Content-Type": "application/offset+octet-stream",
        }  # fmt: skip
        with self._asked("PATCH", f"/v1/media/{blob}", headers, piece) as response:
            return _number(response, "Upload-Offset")

    def remove(self, blob: str) -> None:
        """End an own blob, whole or not. Raises FileGone if it has ended already."""
        with self._asked("DELETE", f"/v1/media/{blob}", TUS):
            pass

    # --- whom it is for -------------------------------------------------------------------------

    def address(self, blob: str, devices: Sequence[int], life_ms: int = 0) -> None:
        """Name devices that an own blob is for, besides those named before. `life_ms`: it ends so much later at most;
        0: it ends as all do."""
        for first in range(0, len(devices), DEVICES_MAX):
            named = [(f"{account_of(each):x}", f"{each:x}") for each in devices[first : first + DEVICES_MAX]]
            asked = {"devices": named, "lifetime_seconds": -(-life_ms // 1_000)}
            headers = {"Content-Type": "application/json"}
            with self._asked("PUT", f"/v1/media/{blob}/audience", headers, msgspec.json.encode(asked)):
                pass

    def verified(self, blob: str) -> None:
        """Say that this device has all of it. Raises FileGone if nobody waits for that."""
        with self._asked("POST", f"/v1/media/{blob}/verified", {}):
            pass

    # --- downloads ------------------------------------------------------------------------------

    def fetch(self, blob: str, first: int, size: int) -> Generator[bytes]:
        """The bytes from `first` on, in blocks, of a blob that has `size` bytes. Raises FileGone; OtherBlob if it has
        another size; Unreachable if the connection broke: what came before is right, go on behind it."""
        with self._asked("GET", f"/v1/media/{blob}", {"Range": f"bytes={first}-"}) as response:
            said = _RANGE.match(response.getheader("Content-Range", ""))
            if response.status != http.client.PARTIAL_CONTENT or said is None:
                raise OtherBlob("it is not the part that was asked for")
            if [int(number) for number in said.groups()] != [first, size - 1, size]:
                raise OtherBlob("it has another size")
            at = first
            while at < size:
                # Blocks end where chunks of a sealed stream do: nobody has to put them together again.
                if not (block := response.read(min(FETCHED_BYTES - (at - HEAD_BYTES) % FETCHED_BYTES, size - at))):
                    raise Unreachable("the connection broke")
                at += len(block)
                yield block

    def backups(self) -> list[KeptBackup]:
        """The account's backups, oldest first."""
        with self._asked("GET", "/v1/backups", {}) as response:
            try:
                return msgspec.json.decode(response.read(self._limits.http_bytes), type=_KeptBackups).backups
            except msgspec.DecodeError:
                raise HttpError("the server's list of backups is malformed") from None

    # --- one request ----------------------------------------------------------------------------

    @contextmanager
    def _asked(
        self, method: str, path: str, headers: dict[str, str], body: bytes | bytearray | None = None
    ) -> Generator[http.client.HTTPResponse]:
        """An answer that is no error, of the first address that answers. Raises HttpError, FileGone."""
        address, connection, response = self._answered(method, path, headers, body)
        try:
            yield response
        except (OSError, http.client.HTTPException) as error:
            raise unreachable(address, error) from None
        finally:
            response.close()
            connection.close()

    def _answered(
        self, method: str, path: str, headers: dict[str, str], body: bytes | bytearray | None
    ) -> tuple[str, http.client.HTTPConnection, http.client.HTTPResponse]:
        failure: HttpError = Unreachable("no server address is known")
        for address in self._addresses:
            connection, whole_path = connection_to(address, path, self._tls, self._limits.http_ms)
            try:
                response = self._exchange(connection, method, whole_path, headers, body)
                if response.status < http.client.BAD_REQUEST:
                    return address, connection, response
                with response:
                    refusal = failure = refusal_in(response.status, response.read(ERROR_BYTES_MAX))
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                failure = unreachable(address, error)
                continue
            connection.close()
            if refusal.status == http.client.NOT_FOUND and (method == "HEAD" or refusal.code == "unknown_blob"):
                raise FileGone
            if refusal.status != http.client.SERVICE_UNAVAILABLE:
                raise refusal
        raise failure

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes | bytearray | None,
    ) -> http.client.HTTPResponse:
        said = {**headers, "Authorization": self._authorization, "Content-Length": str(len(body or b""))}
        # A server may refuse a body before it has read it: its answer says why.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, path, _blocks(body) if body else None, said)
        return connection.getresponse()


def _blocks(body: bytes | bytearray) -> Iterable[memoryview]:
    whole = memoryview(body)
    return [whole[at : at + BLOCK_BYTES] for at in range(0, len(whole), BLOCK_BYTES)]


def _number(response: http.client.HTTPResponse, header: str) -> int:
    text = response.getheader(header, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 16):
        raise HttpError(f"the server's {header} is malformed")
    return int(text)
