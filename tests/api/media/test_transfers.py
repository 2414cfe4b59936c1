"""How many transfers there may be, and of one account; a download counts until it ends."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from nightmail.api.media.limits import MediaLimits
from nightmail.api.media.transfers import Transfers
from nightmail.api.problems import Problem
from tests.api.media.media_rig import ask, upload
from tests.server.rig import WAIT_S, serving

ADA, BEN = 1, 2


def test_one_account_cannot_take_all_places() -> None:
    streams = Transfers(MediaLimits(streams=5, account_streams=2), lambda: False)
    for account in (ADA, ADA, BEN):
        streams.take(account)
    with pytest.raises(Problem) as refused:
        streams.take(ADA)
    assert refused.value.status == 429
    streams.take(BEN)
    streams.leave(ADA)
    streams.take(ADA)
    streams.take(3)
    with pytest.raises(Problem) as full:
        streams.take(4)
    assert (full.value.status, streams.count) == (503, 5)


def test_a_place_is_given_back_when_a_transfer_fails() -> None:
    streams = Transfers(MediaLimits(account_streams=1), lambda: False)
    for _ in range(3):
        with pytest.raises(OSError), streams.one(ADA):
            raise OSError
    assert streams.count == 0


def test_a_download_that_nobody_reads_keeps_its_place_and_only_its_account_waits(tmp_path: Path) -> None:
    with serving(tmp_path, media__account_streams=1) as town:
        ada, ben = town.register("ada"), town.register("ben")
        large, small = upload(town, ada, bytes(16 << 20)), upload(town, ben, b"small")
        with socket.socket() as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            line.settimeout(WAIT_S)
            line.connect(("127.0.0.1", town.port))
            line.sendall(f"GET {large} HTTP/1.1\r\nHost: x\r\nAuthorization: {ada.bearer}\r\n\r\n".encode())
            assert line.recv(12) == b"HTTP/1.1 200"
            refused = ask(town, "GET", large, ada)
            assert (refused.status, refused.code, "retry-after" in refused.headers) == (429, "rate_limited", True)
            assert ask(town, "GET", small, ben).body == b"small"
        while ask(town, "GET", large, ada).status != 200:
            pass
