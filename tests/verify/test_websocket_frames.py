"""Frames cut out of a stream of bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some
from websockets.frames import Frame as Written
from websockets.frames import Opcode

from nightmail.verify.websocket_frames import FrameSplitter

HEAD = b"GET /v1/connect HTTP/1.1\r\nHost: x\r\n\r\n"


@given(
    sizes=some.lists(some.sampled_from((0, 1, 125, 126, 300, 65_535, 65_536, 70_000)), max_size=4),
    mask=some.booleans(),
    cuts=some.lists(some.integers(1, 5_000), max_size=20),
)
def test_whatever_the_pieces_the_frames_are_those_that_were_written(
    sizes: list[int], mask: bool, cuts: list[int]
) -> None:
    payloads = [bytes(number % 251 for number in range(size)) for size in sizes]
    written = [Written(Opcode.BINARY, payload).serialize(mask=mask) for payload in payloads]
    stream = HEAD + b"".join(written)
    splitter, got, at = FrameSplitter(), [], 0
    for cut in (*cuts, len(stream)):
        got += splitter.feed(stream[at : at + cut])
        at += cut
    assert [frame.raw for frame in got] == [HEAD, *written]
    assert [frame.payload for frame in got] == [b"", *payloads]


def test_pings_and_goodbyes_pass_as_they_are() -> None:
    ping = Written(Opcode.PING, b"there?").serialize(mask=True)
    assert [(frame.raw, frame.payload) for frame in FrameSplitter().feed(HEAD + ping)] == [(HEAD, b""), (ping, b"")]
