"""Somebody who uploads and fetches blobs, with a plain HTTP client."""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any, NamedTuple

from tests.server.rig import WAIT_S, Asker, Person

TUS = {"Tus-Resumable": "1.0.0"}
BYTES = {**TUS, "Content-Type": "application/offset+octet-stream"}
DATA = bytes(range(256)) * 40


class Said(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        return str(json.loads(self.body)["code"])


def ask(
    town: Asker, method: str, path: str, who: Person | None, body: bytes = b"", headers: dict[str, str] | None = None
) -> Said:
    connection = http.client.HTTPConnection("127.0.0.1", town.port, timeout=WAIT_S)
    try:
        auth = {"Authorization": who.bearer} if who else {}
        connection.request(method, path, body or None, {**auth, **(headers or {})})
        reply = connection.getresponse()
        return Said(reply.status, {key.lower(): value for key, value in reply.getheaders()}, reply.read())
    finally:
        connection.close()


def metadata(purpose: str) -> dict[str, str]:
    return {"Upload-Metadata": f"purpose {base64.b64encode(purpose.encode()).decode()}"}


def begin(town: Asker, who: Person, size: int, purpose: str = "media") -> str:
    said = ask(town, "POST", "/v1/media", who, headers={**TUS, "Upload-Length": str(size), **metadata(purpose)})
    assert said.status == 201, said
    return said.headers["location"]


def patch(town: Asker, who: Person, path: str, offset: int, data: bytes, **headers: str) -> Said:
    more = {key.replace("_", "-"): value for key, value in headers.items()}
    return ask(town, "PATCH", path, who, data, {**BYTES, "Upload-Offset": str(offset), **more})


def upload(town: Asker, who: Person, data: bytes = DATA, purpose: str = "media") -> str:
    path = begin(town, who, len(data), purpose)
    assert patch(town, who, path, 0, data).status == 204
    return path


def address(town: Asker, who: Person, path: str, *devices: Person, **more: Any) -> Said:
    pairs = [[f"{each.account:x}", f"{each.device:x}"] for each in devices]
    body = json.dumps({"devices": pairs, **more}).encode()
    return ask(town, "PUT", f"{path}/audience", who, body, {"Content-Type": "application/json"})
