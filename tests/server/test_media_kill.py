"""Uploads while the real process is killed."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.api.media.media_rig import BYTES, TUS, ask, begin, patch
from tests.server.rig import WAIT_S
from tests.server.test_process import process

PIECE = 300_000
DATA = bytes(range(250)) * (8 * PIECE // 250)


def test_a_server_that_is_killed_in_the_middle_of_an_upload_goes_on_with_it(tmp_path: Path) -> None:
    with process(tmp_path) as (running, asker):
        ada = asker.register("ada")
        path = begin(asker, ada, len(DATA))
        confirmed = int(patch(asker, ada, path, 0, DATA[:PIECE]).headers["upload-offset"])
        running.kill()
        running.wait(WAIT_S)
    for _ in range(3):
        with process(tmp_path) as (running, asker):
            offset = int(ask(asker, "HEAD", path, ada, headers=TUS).headers["upload-offset"])
            assert offset >= confirmed
            said = patch(asker, ada, path, offset, DATA[offset : offset + PIECE])
            confirmed = int(said.headers["upload-offset"])
            with socket.create_connection(("127.0.0.1", asker.port), timeout=WAIT_S) as line:
                head = {**BYTES, "Authorization": ada.bearer, "Upload-Offset": str(confirmed), "Host": "x"}
                lines = "".join(f"{key}: {value}\r\n" for key, value in head.items())
                body = DATA[confirmed : confirmed + PIECE]
                line.sendall(f"PATCH {path} HTTP/1.1\r\n{lines}Content-Length: {PIECE}\r\n\r\n".encode() + body[:-1])
                running.kill()
                running.wait(WAIT_S)
    with process(tmp_path) as (_, asker):
        offset = int(ask(asker, "HEAD", path, ada, headers=TUS).headers["upload-offset"])
        assert offset >= confirmed
        assert patch(asker, ada, path, offset, DATA[offset:]).headers["upload-offset"] == str(len(DATA))
        assert ask(asker, "GET", path, ada).body == DATA
