"""The head of a request, and the server's answer to a handshake."""

from __future__ import annotations

import pytest

from nightmail.gateway.handshake import HttpRefusal, accept_key, answer_handshake, headers_of, path_of
from tests.gateway.quay import HANDSHAKE

HEAD = HANDSHAKE.removesuffix(b"\r\n\r\n")


def test_the_accept_key_is_that_of_the_standard() -> None:
    assert accept_key(b"dGhlIHNhbXBsZSBub25jZQ==") == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize("key", [b"", b"short", b"dGhlIHNhbXBsZSBub25jZQ", b"####", b"AAAA", "é".encode()])
def test_what_is_no_key_is_not_accepted(key: bytes) -> None:
    assert accept_key(key) is None


def test_a_handshake_is_answered_with_its_proof_and_our_protocol() -> None:
    assert answer_handshake(HEAD) == (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: nightmail.v1\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (b"GET ", b"POST ", "426 Upgrade Required"),
        (b"Upgrade: websocket", b"Upgrade: h2c", "426 Upgrade Required"),
        (b"Connection: Upgrade", b"Connection: keep-alive", "426 Upgrade Required"),
        (b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Version: 8", "426 Upgrade Required"),
        (b"dGhlIHNhbXBsZSBub25jZQ==", b"short", "400 Bad Request"),
        (b"Sec-WebSocket-Protocol: nightmail.v1", b"Sec-WebSocket-Protocol: chat", "400 Bad Request"),
    ],
)
def test_what_is_no_handshake_of_ours_is_refused_with_a_status(old: bytes, new: bytes, status: str) -> None:
    assert HEAD.count(old) == 1
    answer = answer_handshake(HEAD.replace(old, new))
    assert isinstance(answer, HttpRefusal)
    assert answer.status == status


def test_the_path_is_read_without_its_query_and_only_from_a_whole_request_line() -> None:
    heads = (b"GET /v1/connect?x=1 HTTP/1.1\r\n", b"GET /v1/connect\r\n", b"\r\n")
    assert [path_of(head) for head in heads] == [b"/v1/connect", b"", b""]


def test_several_values_under_one_name_are_one_list() -> None:
    head = b"GET / HTTP/1.1\r\nConnection: keep-alive\r\nHost: here\r\nCONNECTION:  Upgrade "
    assert headers_of(head) == {b"connection": b"keep-alive,Upgrade", b"host": b"here"}


STRANGE = {
    "HTTP/1.0": HEAD.replace(b"HTTP/1.1", b"HTTP/1.0"),
    "HTTP/2.0": HEAD.replace(b"HTTP/1.1", b"HTTP/2.0"),
    "no version": HEAD.replace(b" HTTP/1.1", b""),
    "no Host": HEAD.replace(b"Host: here\r\n", b""),
    "two Hosts": HEAD.replace(b"Host: here", b"Host: here\r\nhOST: there"),
    "NUL": HEAD.replace(b"Host: here", b"Host: he\0re"),
    "a folded header": HEAD.replace(b"Host: here", b"Host: here\r\n and there"),
    "a header folded by a tab": HEAD.replace(b"Host: here", b"Host: here\r\n\tand there"),
    "a bare line feed": HEAD.replace(b"Host: here", b"Host: here\nX: y"),
    "a bare carriage return": HEAD.replace(b"Host: here", b"Host: here\rX: y"),
    "a space before the colon": HEAD.replace(b"Host: here", b"Host: here\r\nX : y"),
    "a line without a colon": HEAD.replace(b"Host: here", b"Host: here\r\nX"),
    "a name with a control character": HEAD.replace(b"Host: here", b"Host: here\r\nX\x01: y"),
    "two spaces in the request line": HEAD.replace(b"GET ", b"GET  "),
    "an empty name": HEAD.replace(b"Host: here", b"Host: here\r\n: y"),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_head_that_others_could_read_otherwise_is_refused(what: str) -> None:
    assert STRANGE[what] != HEAD
    assert answer_handshake(STRANGE[what]) == HttpRefusal("400 Bad Request")


def test_a_head_may_have_tabs_and_letters_of_any_alphabet_in_its_values() -> None:
    head = HEAD.replace(b"Host: here", "Host: here\r\nX-Name:\tÄda\tLovelace".encode())
    assert isinstance(answer_handshake(head), bytes)
