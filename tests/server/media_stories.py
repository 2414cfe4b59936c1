"""What moves the metrics of media, as stories on a real node."""

from __future__ import annotations

import errno
import http.client
import socket

from nightmail.engine.blobs.folder import SHELF_DIGITS, FolderBlobs
from nightmail.model.blobs import SECRET_BYTES, BlobId
from nightmail.model.effects import LookForBytes
from nightmail.server.media import FOLDER as MEDIA
from tests.api.media.media_rig import TUS, begin, upload
from tests.api.media.media_rig import ask as ask_for_media
from tests.server.stage import Stage


def upload_slowly(on: Stage) -> None:
    path = begin(on.town, on.ada, 9)
    connection = socket.create_connection(("127.0.0.1", on.town.port))
    on.until_read.callback(connection.close)
    connection.sendall(
        f"PATCH {path} HTTP/1.1\r\nHost: here\r\nAuthorization: {on.ada.bearer}\r\nTus-Resumable: 1.0.0\r\n"
        "Content-Type: application/offset+octet-stream\r\nUpload-Offset: 0\r\nContent-Length: 9\r\n\r\n".encode()
    )


def end_a_blob(on: Stage) -> None:
    path = upload(on.town, on.ada)
    assert ask_for_media(on.town, "DELETE", path, on.ada, headers=TUS).status == http.client.NO_CONTENT


def unknown_blob(on: Stage) -> BlobId:
    return BlobId(on.ada.account, b"\1" * SECRET_BYTES)


def leave_bytes_behind(on: Stage) -> None:
    name = str(unknown_blob(on))
    file = on.town.node.heart.folder / MEDIA / name[:SHELF_DIGITS] / name
    file.parent.mkdir()
    file.touch()


def look_for_bytes(on: Stage) -> None:
    media = on.town.node.media
    assert media is not None
    on.town.run(lambda: media.keeper.on_bytes(LookForBytes(*unknown_blob(on))))


def fail_to_look_for_bytes(on: Stage) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "planted")

    on.patch.setattr(FolderBlobs, "_held", fails)
    look_for_bytes(on)
