"""Whatever comes over HTTP gets a problem that says what is wrong, and the node goes on."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.rig import WAIT_S, Person, Reply, Times, Town, new_device, serving
from tests.wire.protocol_page import table


def is_problem(reply: Reply, status: int, code: str) -> bool:
    assert (reply.status, reply.json["code"], reply.json["status"]) == (status, code, status)
    assert reply.json["type"] == f"urn:nightmail:problem:{code}"
    assert reply.json["title"]
    assert reply.json["detail"]
    return reply.headers["Content-Type"] == "application/problem+json"


def test_a_connection_takes_one_request(town: Town) -> None:
    assert town.get("/healthz").headers["Connection"] == "close"
    assert raw(town, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 3).count(b"HTTP/1.1 ") == 1


def test_a_path_that_is_not_there_and_a_method_that_is_not_meant(town: Town) -> None:
    assert is_problem(town.get("/v2/nothing"), 404, "not_found")
    wrong = town.ask("POST", "/healthz")
    assert is_problem(wrong, 405, "method_not_allowed")
    assert wrong.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff", b"{}", b"[" * 10_000, b'{"handle": 7}'],
)
def test_a_body_that_is_no_account_is_malformed(town: Town, body: bytes) -> None:
    assert is_problem(town.ask("POST", "/v1/accounts", body), 400, "malformed")


@pytest.mark.parametrize(
    "change",
    [
        {"platform": "windows"},
        {"registration": -1},
        {"registration": 2**53},
        {"registration": "7"},
        {"token_digest": "AB" * 32},
        {"token_digest": "ab"},
        {"label": "x" * 65},
        {"surprise": 1},
    ],
)
def test_each_field_is_checked(town: Town, change: dict[str, object]) -> None:
    body = new_device(b"token", handle="nobody", **change)
    assert is_problem(town.ask("POST", "/v1/accounts", body), 400, "malformed")


def test_a_body_must_say_that_it_is_json(town: Town) -> None:
    body = new_device(b"token", handle="nobody")
    assert is_problem(town.ask("POST", "/v1/accounts", body, Content_Type="text/plain"), 415, "unsupported_media_type")


def test_a_body_above_the_limit_is_not_read(town: Town) -> None:
    assert is_problem(town.ask("POST", "/v1/accounts", b"x" * 65_537), 413, "too_large")


def raw(town: Town, request: bytes) -> bytes:
    """All that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", town.port), timeout=WAIT_S) as peer:
        peer.sendall(request)
        reply = b""
        while piece := peer.recv(65_536):
            reply += piece
        return reply


GET = b"GET /v1/devices HTTP/1.1\r\nHost: x\r\n"
UNFINISHED = b"POST /v1/accounts HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"


def until(town: Town, status: bytes) -> bytes:
    """Ask until the answer has this status."""
    while not (reply := raw(town, GET + b"\r\n")).startswith(b"HTTP/1.1 " + status):
        pass
    return reply


def plain_refusals(folder: Path) -> dict[str, str]:
    """Status → the media type of its body, of errors that do not reach the application."""
    with serving(folder / "one", http__address_connections=1, http__request_ms=600_000) as town:
        replies = [raw(town, b"no HTTP at all\r\n\r\n"), raw(town, GET + b"X: " + b"x" * 4_096 + b"\r\n\r\n")]
        with socket.create_connection(("127.0.0.1", town.port), timeout=WAIT_S) as held:
            held.sendall(UNFINISHED)
            replies.append(until(town, b"503"))
    with serving(folder / "two", gateway__address_requests_per_s=1, gateway__address_requests_burst=1) as town:
        limited = until(town, b"429")
        assert re.search(rb"(?im)^retry-after: [1-9]", limited)
    found: dict[str, str] = {}
    for reply in (*replies, limited):
        head, _, body = reply.partition(b"\r\n\r\n")
        media = re.search(rb"(?im)^content-type: ([^;\r]+)", head)
        assert bool(media) == bool(body), "a body says what it is"
        found[head[9:12].decode()] = media[1].decode() if media else "empty"
    return found


def test_the_protocol_names_every_error_that_is_no_problem_document(tmp_path: Path) -> None:
    told = {row[0]: row[1] for row in table("Registering", "**Errors over HTTP**")}
    assert plain_refusals(tmp_path) == told


def test_a_body_that_announces_too_much_is_refused_before_it_comes(town: Town) -> None:
    reply = raw(
        town,
        b"POST /v1/accounts HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n{",
    )
    assert reply.startswith(b"HTTP/1.1 413 ")


def test_a_body_that_hides_its_size_is_cut_off_at_the_limit(town: Town) -> None:
    pieces = b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n" + b"2\r\nxx\r\n"
    reply = raw(
        town,
        b"POST /v1/accounts HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n" + pieces,
    )
    assert reply.startswith(b"HTTP/1.1 413 ")


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with serving(tmp_path, http__request_ms=50) as town:
        reply = raw(
            town,
            b"POST /v1/accounts HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
        )
    assert reply.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"too_slow"' in reply


@pytest.mark.parametrize(
    "auth",
    [
        "", "Bearer", "Bearer x", "Bearer .", "Basic YTpi", "Bearer zz.AAAA", "Bearer 1.AAAA", "Bearer 1.A=A",
        "Bearer -1.AAAA", "Bearer 0x1.AAAA", f"Bearer {'f' * 40}.AAAA", "Bearer 1." + "A" * 5_00,
    ],
)  # fmt: skip
def test_a_stranger_is_unauthorized(town: Town, auth: str) -> None:
    reply = town.get("/v1/devices", auth)
    assert is_problem(reply, 401, "unauthorized")
    assert reply.headers["WWW-Authenticate"] == 'Bearer realm="nightmail"'


def test_a_known_device_with_another_token_is_unauthorized_like_a_stranger(town: Town) -> None:
    ada = town.register("someone")
    wrong = town.get("/v1/devices", Person("someone", ada.device, b"wrong"))
    unknown = town.get("/v1/devices", Person("someone", ada.device + 1, ada.token))
    assert is_problem(wrong, 401, "unauthorized")
    assert wrong.body == unknown.body


def test_too_many_registrations_from_one_address_have_to_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Times(monkeypatch)
    with serving(tmp_path, http__registrations_per_minute=2) as town:
        town.register("one")
        town.register("two")
        reply = town.ask("POST", "/v1/accounts", new_device(b"token", handle="three"))
        assert is_problem(reply, 429, "rate_limited")
        assert 1 <= int(reply.headers["Retry-After"]) <= 60
        assert town.get("/healthz").status == 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(JSON)
def test_no_json_gets_past_its_shape(town: Town, body: object) -> None:
    assert is_problem(town.ask("POST", "/v1/accounts", json.dumps(body).encode()), 400, "malformed")
