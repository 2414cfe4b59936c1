"""A node starts, keeps what it was told, and says plainly why it cannot start."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from nightmail.engine.ports import InUse, Unwritable
from nightmail.server.config import load
from nightmail.server.fallen import Fell
from nightmail.server.listening_socket import CannotListen
from nightmail.server.node import Node
from nightmail.server.operator import FILE_NAME
from tests.certificates import make_certificate
from tests.server.rig import SMALL, WAIT_S, message, serving


def start(folder: Path, **settings: Any) -> None:
    """Start a node that is expected not to."""
    flags = SMALL | {"data.folder": str(folder)} | {name.replace("__", "."): value for name, value in settings.items()}
    asyncio.run(Node(load(flags=flags).config).start())


def test_a_node_is_alive_and_ready(tmp_path: Path) -> None:
    with serving(tmp_path) as town:
        assert town.get("/healthz").json == {"status": "ok"}
        assert town.get("/readyz").json == {"status": "ok"}


def test_what_was_registered_is_there_after_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path) as town:
        ada = town.register("ada")
    with serving(tmp_path) as town:
        assert town.node.heart.log.last == town.node.heart.rows.pointer, "stopped with a checkpoint"
        assert town.get("/v1/devices", ada).json["handle"] == "ada"


def test_the_operator_is_told_who_was_connected_and_nobody_counts_as_that_after_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path) as town:
        ada, bob = town.register("ada"), town.register("bob")
        town.run(lambda: town.node.heart.loop.note_connection(bob.device, here=True))
        online, queued = message(ada, bob, 1), message(ada, bob, 2)
        town.say(ada.device, online)
    with serving(tmp_path) as town:
        town.say(ada.device, queued)
        events = [town.get(f"/v1/trace/{sent.id}", town.operator).json["events"] for sent in (online, queued)]
        assert [[event["what"] for event in each] for each in events] == [
            ["accepted", "online:1"],
            ["accepted", "queued:2"],
        ]
        # The sender learns nothing of it.
        seen = [town.get(f"/v1/messages/{sent.id}", ada).json["devices"][0] for sent in (online, queued)]
        assert seen == [
            {"device": f"{bob.device:x}", "state": "sent", "at": each[1]["at"], "at_rfc3339": each[1]["at_rfc3339"]}
            for each in events
        ]


def test_limits_from_the_settings_are_logged_and_hold(tmp_path: Path) -> None:
    with serving(tmp_path, limits__mailbox_entries=1) as town:
        ada, bob = town.register("ada"), town.register("bob")
        said = [type(town.say(ada.device, message(ada, bob, n))).__name__ for n in (1, 2)]
        assert said == ["Accepted", "MailboxFull"]
    with serving(tmp_path, limits__mailbox_entries=2) as town:
        assert type(town.say(ada.device, message(ada, bob, 2))).__name__ == "Accepted"


def test_a_folder_has_one_node(tmp_path: Path) -> None:
    with serving(tmp_path), pytest.raises(InUse, match="is in use by process"):
        start(tmp_path)


def test_a_port_has_one_node_and_the_other_lets_go_of_its_folder(tmp_path: Path) -> None:
    with serving(tmp_path / "a") as town:
        with pytest.raises(CannotListen) as raised:
            start(tmp_path / "b", server__port=town.port)
        assert str(raised.value) == (
            f"127.0.0.1:{town.port} is in use by another process; stop it, or choose another port (server.port)"
        )
    with serving(tmp_path / "b") as town:
        assert town.get("/readyz").status == 200


@pytest.mark.parametrize(
    ("host", "why"),
    [("192.0.2.1", "is not an address of this machine"), ("no such host", "cannot be listened at")],
)
def test_an_address_that_cannot_be_had_is_named(tmp_path: Path, host: str, why: str) -> None:
    with pytest.raises(CannotListen, match=why):
        start(tmp_path, server__host=host)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable, match="cannot be used as the data folder"):
        start(tmp_path / "file" / "data")


def test_the_operators_token_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    with serving(tmp_path) as town:
        first = town.operator
    file = tmp_path / FILE_NAME
    assert file.stat().st_mode & 0o777 == 0o600
    with serving(tmp_path) as town:
        assert town.operator == first
    given = "a token from the settings"
    with serving(tmp_path, operator__token=given, operator__open_metrics="no") as town:
        assert town.get("/metrics", f"Bearer operator.{given}").status == 200
        assert town.get("/metrics", first).status == 401
        assert town.get("/metrics").status == 401


def test_strangers_are_told_neither_the_figures_nor_the_machines_name(tmp_path: Path) -> None:
    with serving(tmp_path) as town:
        assert (town.get("/metrics").status, town.get("/metrics", town.operator).status) == (401, 200)
        assert (town.node.name, socket.gethostname().encode() in town.get("/").body) == ("nightmail", False)


def test_a_node_that_stops_is_not_ready_and_says_why(tmp_path: Path) -> None:
    with serving(tmp_path) as town:
        town.node.draining = True
        reply = town.get("/readyz")
        assert (reply.status, reply.json["reasons"]) == (503, ["this server is stopping"])
        assert reply.headers["Retry-After"] == "1"
        assert town.get("/healthz").status == 200


def test_a_mistake_below_the_doors_fells_the_node_and_loses_nothing(tmp_path: Path) -> None:
    def slip() -> None:
        raise AssertionError("ours")

    with serving(tmp_path) as town:
        ada = town.register("ada")

        async def fall() -> None:
            town.node._post(slip)  # as a writer's thread would
            await town.node.fell

        with pytest.raises(Fell):
            asyncio.run_coroutine_threadsafe(fall(), town.loop).result(WAIT_S)
    with serving(tmp_path) as town:
        assert town.get("/v1/devices", ada).status == 200


# --- TLS --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


def test_with_a_certificate_everything_is_sealed_on_the_way(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with serving(tmp_path, server__tls_cert_file=str(cert), server__tls_key_file=str(key)) as town:
        context = ssl.create_default_context(cafile=str(cert))
        with (
            socket.create_connection(("127.0.0.1", town.port), timeout=WAIT_S) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as peer,
        ):
            peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert peer.recv(4_096).startswith(b"HTTP/1.1 200 OK")
        assert town.node.url.startswith("https://")


def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with pytest.raises(CannotListen, match=r"none\.pem cannot be read: No such file"):
        start(tmp_path, server__tls_cert_file=str(tmp_path / "none.pem"))
    with pytest.raises(CannotListen, match="and its key cannot be used"):
        start(tmp_path, server__tls_cert_file=str(key), server__tls_key_file=str(cert))
