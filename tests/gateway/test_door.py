"""One port for HTTP and WebSocket, and what strangers may do to it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError
from websockets.typing import Subprotocol

from nightmail.gateway.limits import LINGER_MS, GatewayLimits
from nightmail.model.answers import Accepted
from nightmail.model.words import Lane
from nightmail.wire.closing import SENTENCES, CloseCode
from nightmail.wire.frames import decode_from_server, encode
from nightmail.wire.items import (
    GROUP_ITEMS,
    NEWEST_SINCE,
    PATH,
    SUBPROTOCOL,
    Answered,
    Ask,
    Drained,
    Entries,
    FromServer,
    Goodbye,
    Ping,
    Pong,
    Welcome,
)
from tests.gateway.quay import HANDSHAKE, Quay, Raw, at_the_quay, hello, masked
from tests.gateway.rig import PHONE, TABLET, a_message, as_entry

GET = b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n"


def connected(quay: Quay) -> connect:
    """The independent client, as it is: it offers to compress."""
    scheme = "wss" if quay.client_tls else "ws"
    return connect(
        f"{scheme}://127.0.0.1:{quay.port}{PATH}", subprotocols=[Subprotocol(SUBPROTOCOL)], ssl=quay.client_tls
    )


async def heard(socket: ClientConnection) -> list[FromServer]:
    data = await socket.recv()
    assert isinstance(data, bytes)
    return decode_from_server(data)


# --- somebody else's client -------------------------------------------------------------------


async def ada_writes_to_ben(quay: Quay) -> None:
    async with connected(quay) as ada, connected(quay) as ben:
        for socket, device in ((ada, PHONE), (ben, TABLET)):
            assert (socket.subprotocol, socket.protocol.extensions) == (SUBPROTOCOL, [])
            await socket.send(hello(device))
            welcome = Welcome(1, quay.clock, "node", 30_000, 256, 65_536, 1_048_576, NEWEST_SINCE, GROUP_ITEMS)
            assert await heard(socket) == [welcome, Drained(0, 0, 0)]
        sent = a_message()
        await ada.send(encode([Ask(1, sent)]))
        assert await heard(ada) == [Answered(1, Accepted(sent.id, sent.tag, quay.clock, 1))]
        assert await heard(ben) == [Entries(Lane.NORMAL, 1, (as_entry(sent, quay.clock),))]
        await (await ben.ping())
    await quay.until(lambda: quay.gateway.connections == 0)


def test_another_librarys_client_connects_and_nothing_is_compressed() -> None:
    at_the_quay(ada_writes_to_ben)


def test_another_librarys_client_hears_why_it_is_sent_away() -> None:
    async def story(quay: Quay) -> None:
        async with connected(quay) as ben:
            await ben.send("text")
            with pytest.raises(ConnectionClosedError) as ended:
                await ben.recv()
            assert ended.value.rcvd is not None
            assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (1003, SENTENCES[CloseCode.NOT_BINARY])

    at_the_quay(story)


def test_a_frame_above_the_limit_is_named_as_that_to_another_librarys_client() -> None:
    async def story(quay: Quay) -> None:
        async with connected(quay) as ben:
            await ben.send(hello())
            await heard(ben)
            sending = asyncio.create_task(ben.send(bytes(8 << 20)))
            assert await heard(ben) == [Goodbye(CloseCode.TOO_LARGE, SENTENCES[CloseCode.TOO_LARGE], 0)]
            with pytest.raises(ConnectionClosedError) as ended:
                await ben.recv()
            await asyncio.gather(sending, return_exceptions=True)
            assert ended.value.rcvd is not None
            assert ended.value.rcvd.code == CloseCode.TOO_LARGE

    at_the_quay(story)


# --- TLS --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's side and a client's, with a certificate of our own."""
    folder: Path = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=here",
            "-addext", "subjectAltName=IP:127.0.0.1",
        ],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return server, ssl.create_default_context(cafile=folder / "cert.pem")


def test_over_tls_it_is_the_same(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    at_the_quay(ada_writes_to_ben, tls=tls)


def test_over_tls_whoever_is_sent_away_hears_why_too(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.greet()
        await ben.say(b"\x82\xff" + bytes(8))
        ben.writer.write(masked(b"text", 0x1))
        assert (await ben.end()).code in {CloseCode.MALFORMED, CloseCode.NOT_BINARY}
        late = await quay.raw()
        await late.say(b"GET /v1/connect HTTP/1.1\r\nHost: here\r\n\r\n")
        assert (await late.head())[0] == "HTTP/1.1 426 Upgrade Required"

    at_the_quay(story, tls=tls)


# --- the handshake ----------------------------------------------------------------------------


def without(header: str) -> bytes:
    return b"".join(
        line for line in HANDSHAKE.splitlines(keepends=True) if not line.lower().startswith(header.encode())
    )


REFUSED = {
    "no upgrade": (without("upgrade"), "426 Upgrade Required"),
    "no connection": (without("connection"), "426 Upgrade Required"),
    "another upgrade": (HANDSHAKE.replace(b"websocket\r\n", b"h2c\r\n"), "426 Upgrade Required"),
    "another method": (HANDSHAKE.replace(b"GET ", b"POST "), "426 Upgrade Required"),
    "no version": (without("sec-websocket-version"), "426 Upgrade Required"),
    "an older version": (HANDSHAKE.replace(b": 13", b": 8"), "426 Upgrade Required"),
    "no key": (without("sec-websocket-key"), "400 Bad Request"),
    "a short key": (HANDSHAKE.replace(b"dGhlIHNhbXBsZSBub25jZQ==", b"AAAA"), "400 Bad Request"),
    "no subprotocol": (without("sec-websocket-protocol"), "400 Bad Request"),
    "another subprotocol": (HANDSHAKE.replace(b"nightmail.v1", b"nightmail.v9"), "400 Bad Request"),
    "a long head": (HANDSHAKE[:-2] + b"X: " + b"x" * 4_096 + b"\r\n\r\n", "431 Request Header Fields Too Large"),
    "an endless head": (b"GET / HTTP/1.1\r\nX: " + b"x" * 4_096, "431 Request Header Fields Too Large"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_handshake_is_refused_as_what_it_is(what: str) -> None:
    request, status = REFUSED[what]

    async def story(quay: Quay) -> None:
        raw = await quay.raw()
        await raw.say(request + b"and more that nobody reads")
        line, headers = await raw.head()
        assert (line, headers["connection"], headers["content-length"]) == (f"HTTP/1.1 {status}", "close", "0")
        assert await raw.reader.read() == b""
        assert quay.gateway.connections == 0

    at_the_quay(story)


def test_an_older_version_is_told_which_one_is_spoken() -> None:
    async def story(quay: Quay) -> None:
        raw = await quay.raw()
        await raw.say(HANDSHAKE.replace(b": 13", b": 8"))
        assert (await raw.head())[1]["sec-websocket-version"] == "13"

    at_the_quay(story)


def test_among_several_subprotocols_ours_is_chosen_in_one_header_or_in_many() -> None:
    async def story(quay: Quay) -> None:
        for offered in (b"chat, nightmail.v1", b"nightmail.v1\r\nSec-WebSocket-Protocol: chat"):
            raw = await quay.raw()
            await raw.say(HANDSHAKE.replace(b"nightmail.v1", offered))
            assert (await raw.head())[1]["sec-websocket-protocol"] == SUBPROTOCOL

    at_the_quay(story)


def test_a_handshake_that_comes_byte_by_byte_with_the_hello_behind_it_is_one() -> None:
    async def story(quay: Quay) -> None:
        raw = await quay.raw()
        for byte in HANDSHAKE + masked(hello()):
            await raw.say(bytes((byte,)))
        await raw.head()
        assert [type(item).__name__ for item in await raw.items()] == ["Welcome", "Drained"]
        whole = await quay.raw()
        await whole.say(HANDSHAKE + masked(hello(PHONE)))
        await whole.head()
        assert [type(item).__name__ for item in await whole.items()] == ["Welcome", "Drained"]

    at_the_quay(story)


def test_who_is_not_admitted_is_told_when_to_come_back() -> None:
    async def story(quay: Quay) -> None:
        quay.chance = 0
        first, second = await quay.raw(), await quay.raw()
        await first.greet()
        await second.say(HANDSHAKE)
        line, headers = await second.head()
        assert (line, headers["retry-after"]) == ("HTTP/1.1 503 Service Unavailable", "3")
        assert await second.reader.read() == b""

    at_the_quay(story, GatewayLimits(connects_per_s=1, connects_burst=1, retry_ms=2_500))


def test_an_address_that_is_not_admitted_keeps_nobody_else_out() -> None:
    async def story(quay: Quay) -> None:
        def behind(address: str) -> bytes:
            return HANDSHAKE.replace(b"Host: here", b"Host: here\r\nX-Forwarded-For: " + address.encode())

        statuses: list[str] = []
        for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
            raw = await quay.raw()
            await raw.say(behind(address))
            statuses.append((await raw.head())[0][9:12])
        assert statuses == ["101", "503", "101"]

    at_the_quay(story, GatewayLimits(address_connects_burst=1), proxies="127.0.0.1")


def test_an_address_that_asks_too_often_is_told_when_to_come_back() -> None:
    async def story(quay: Quay) -> None:
        first, second = await quay.raw(), await quay.raw()
        for raw in (first, second):
            await raw.say(GET)
        assert (await first.head())[0] == "HTTP/1.1 200 OK"
        line, headers = await second.head()
        assert (line, headers["retry-after"]) == ("HTTP/1.1 429 Too Many Requests", "1")

    at_the_quay(story, GatewayLimits(address_requests_per_s=2, address_requests_burst=1))


def test_a_server_that_stops_lets_nobody_in_and_says_so() -> None:
    async def story(quay: Quay) -> None:
        quay.gateway.stop(quay.pace)
        raw = await quay.raw()
        await raw.say(HANDSHAKE)
        line, headers = await raw.head()
        assert (line, headers["retry-after"]) == ("HTTP/1.1 503 Service Unavailable", "1")

    at_the_quay(story)


# --- HTTP on the same port --------------------------------------------------------------------


def test_every_other_path_is_answered_by_http_also_several_in_a_row() -> None:
    async def story(quay: Quay) -> None:
        raw = await quay.raw()
        await raw.say(GET + GET.replace(b"healthz", b"v1/connected") + GET.replace(b"healthz", b"last"))
        for path in ("/healthz", "/v1/connected", "/last"):
            line, headers = await raw.head()
            assert (line, await raw.reader.readexactly(int(headers["content-length"]))) == (
                "HTTP/1.1 200 OK",
                path.encode(),
            )

    at_the_quay(story)


def test_a_handshake_behind_an_ordinary_request_opens_nothing() -> None:
    async def story(quay: Quay) -> None:
        raw = await quay.raw()
        await raw.say(GET + HANDSHAKE)
        line, headers = await raw.head()
        await raw.reader.readexactly(int(headers["content-length"]))
        line, _ = await raw.head()
        assert "101" not in line
        assert quay.gateway.connections == 0

    at_the_quay(story)


@pytest.mark.parametrize(
    "garbage", [b"\0\0\0\0\r\n\r\n", b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"\xff" * 64 + b"\r\n\r\n"]
)
def test_what_is_no_request_at_all_ends_without_disturbing_anybody(garbage: bytes) -> None:
    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.greet()
        raw = await quay.raw()
        await raw.say(garbage)
        raw.writer.write_eof()
        await raw.reader.read()
        await ben.say(masked(encode([Ping(1)])))
        assert await ben.items() == [Pong(1, quay.clock)]

    at_the_quay(story)


# --- those who only stand there ---------------------------------------------------------------


def test_a_head_that_never_ends_is_not_waited_for() -> None:
    async def story(quay: Quay) -> None:
        raw = await quay.raw()
        for byte in b"GET / HTTP/1.1\r\nX: slow":
            await raw.say(bytes((byte,)))
        await quay.until(lambda: len(quay.gateway.admission.callers) == 1)
        quay.wait(200)
        with contextlib.suppress(ConnectionResetError):
            assert await raw.reader.read() == b""
        assert len(quay.gateway.admission.callers) == 0

    at_the_quay(story, GatewayLimits(hello_ms=100))


def test_the_head_of_a_further_request_is_not_waited_for_either() -> None:
    async def story(quay: Quay) -> None:
        raw, patient = await quay.raw(), await quay.raw()
        for each in (raw, patient):
            await each.say(GET)
            assert (await each.head())[0] == "HTTP/1.1 200 OK"
            assert await each.reader.readexactly(8) == b"/healthz"
        await raw.say(GET[:-1])
        await patient.say(GET[:-1])
        await quay.until_heads_began()
        quay.wait(60)
        await patient.say(GET[-1:] + GET[:-1])
        assert (await patient.head())[0] == "HTTP/1.1 200 OK"
        await quay.until_heads_began()
        quay.wait(80)
        assert await raw.reader.read() == b""
        assert await patient.reader.readexactly(8) == b"/healthz"
        await patient.say(GET[-1:])
        assert (await patient.head())[0] == "HTTP/1.1 200 OK"

    at_the_quay(story, GatewayLimits(hello_ms=100))


def test_a_hello_that_never_comes_is_not_waited_for() -> None:
    async def story(quay: Quay) -> None:
        raw = await quay.raw()
        await raw.upgrade()
        await raw.say(masked(hello())[:-1])
        quay.wait(200)
        assert (await raw.end()).code == CloseCode.HELLO_TIMEOUT

    at_the_quay(story, GatewayLimits(hello_ms=100))


def test_who_is_refused_and_does_not_leave_is_cut_off() -> None:
    async def story(quay: Quay) -> None:
        raw = await quay.raw()
        await raw.say(REFUSED["no key"][0])
        await raw.head()
        await raw.reader.read()
        admission = quay.gateway.admission
        assert (len(admission.callers), len(admission.refused)) == (0, 1)
        quay.wait(LINGER_MS + 50)
        await quay.until(lambda: not admission.refused)

    at_the_quay(story)


def test_a_connection_that_has_left_is_kept_by_no_timer() -> None:
    async def story(quay: Quay) -> None:
        timers = len(quay.gateway.shared.wheel)
        admission = quay.gateway.admission
        for said in (b"GET / HTTP/1.1\r\n", REFUSED["no key"][0]):
            raw = await quay.raw()
            await raw.say(said)
            await quay.until(lambda: bool(admission.callers or admission.refused))
            raw.hang_up()
        await quay.until(lambda: not admission.callers and not admission.refused)
        assert len(quay.gateway.shared.wheel) == timers

    at_the_quay(story)


def test_a_thousand_half_open_connections_leave_the_others_working() -> None:
    async def story(quay: Quay) -> None:
        ada, ben = await quay.raw(), await quay.raw()
        await ada.greet(PHONE)
        await ben.greet()
        idle = [await quay.raw() for _ in range(1_000)]
        await quay.until(lambda: quay.gateway.counters.strangers_dropped == 900)
        assert len(quay.gateway.admission.callers) == 100
        await ada.say(masked(encode([Ask(1, a_message())])))
        assert [type(item).__name__ for item in await ada.items()] == ["Answered"]
        assert [type(item).__name__ for item in await ben.items()] == ["Entries"]
        # Those who came first made room.
        assert await asyncio.gather(*(raw.reader.read() for raw in idle[:900])) == [b""] * 900
        quay.wait(10_100)
        assert await asyncio.gather(*(raw.reader.read() for raw in idle[900:])) == [b""] * 100

    at_the_quay(story, GatewayLimits(strangers=100, connects_burst=1_000, address_connects_burst=1_000))


def test_hundreds_of_strangers_with_open_sockets_leave_the_others_working() -> None:
    async def story(quay: Quay) -> None:
        ben = await quay.raw()
        await ben.greet()
        crowd = list[Raw]()
        for _ in range(300):
            crowd.append(await quay.raw())
            await crowd[-1].upgrade()
        assert quay.gateway.connections == 101
        assert [(await raw.end()).code for raw in crowd[:200]] == [CloseCode.BUSY] * 200
        late = await quay.raw()
        await late.greet(PHONE)
        await ben.say(masked(encode([Ping(1)])))
        assert await ben.items() == [Pong(1, quay.clock)]

    at_the_quay(story, GatewayLimits(strangers=100, connects_burst=1_000, address_connects_burst=1_000))
