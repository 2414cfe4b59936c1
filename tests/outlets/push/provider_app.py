"""A push provider that writes down what it is asked, and answers as the token says. Run by granian, over HTTP/2."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ANSWERS: dict[str, tuple[int, dict[str, str], bytes]] = {
    "a410": (410, {}, b'{"reason":"Unregistered","timestamp":1}'),
    "a400": (400, {}, b'{"reason":"BadDeviceToken"}'),
    "a4000": (400, {}, b'{"reason":"PayloadEmpty"}'),
    "a403": (403, {}, b'{"reason":"ExpiredProviderToken"}'),
    "a429": (429, {"retry-after": "7"}, b'{"reason":"TooManyRequests"}'),
    "a503": (503, {}, b"x" * 100_000),
    "x404": (404, {}, b'{"error":{"status":"NOT_FOUND","details":[{"errorCode":"UNREGISTERED"}]}}'),
    "x401": (401, {}, b'{"error":{"status":"UNAUTHENTICATED"}}'),
    "x400": (400, {}, b'{"error":{"details":[{"fieldViolations":[{"field":"message.token"}]}]}}'),
    "x4000": (400, {}, b'{"error":{"details":[{"fieldViolations":[{"field":"message.data"}]}]}}'),
    "x429": (429, {"retry-after": "9"}, b"{}"),
}
"""What a token ends in → the answer."""


async def app(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    asked = {
        "path": scope["path"], "method": scope["method"], "version": scope["http_version"], "body": body.hex(),
        "headers": {name.decode(): value.decode() for name, value in scope["headers"]},
    }  # fmt: skip
    with Path(os.environ["PROVIDER_LOG"]).open("a") as log:  # noqa: ASYNC230 (it serves one test)
        log.write(json.dumps(asked) + "\n")
    status, headers, text = await _answer(scope["path"], body)
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": text})


async def _answer(path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
    if path == "/token":
        return 200, {}, b'{"access_token":"granted","expires_in":3599,"token_type":"Bearer"}'
    if path == "/refusing-token":
        return 400, {}, b'{"error":"invalid_grant"}'
    token = json.loads(body)["message"]["token"] if path.startswith("/v1/") else path.rpartition("/")[2]
    if token.endswith("dead"):
        await asyncio.Event().wait()
    for end, answer in sorted(ANSWERS.items(), key=lambda item: -len(item[0])):
        if token.endswith(end):
            return answer
    return 200, {"apns-id": "1"}, b""
