"""Which profile, which servers and which CA file a command uses."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nightmail.cli.profiles import folder_for
from nightmail.testing import RunningServer, running_server
from tests.certificates import make_certificate
from tests.cli.hand import Hand, one_sentence


@contextmanager
def private_server(folder: Path, alternative_name: str) -> Generator[tuple[RunningServer, str]]:
    """A server with a private certificate, and its CA file."""
    cert, key = make_certificate(folder, alternative_name)
    with running_server({"server.tls_cert_file": cert, "server.tls_key_file": key}) as server:
        yield server, str(cert)


@pytest.fixture
def secure_hand(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> Hand:
    """Somebody whose environment names no server."""
    monkeypatch.delenv("NIGHTMAIL_SERVER")
    return hand


def test_a_private_certificate_is_named_as_the_cause_and_its_ca_file_is_remembered(
    secure_hand: Hand, tmp_path: Path
) -> None:
    hand = secure_hand
    with private_server(tmp_path, "IP:127.0.0.1") as (server, ca_file):
        unknown = hand.types("register", "ada", "--server", server.url)
        assert unknown.exit_code == 11
        sentence = one_sentence(unknown)
        assert "certificate is not trusted" in sentence
        assert "--ca-file" in sentence
        hand.gets("register", "ada", "--server", server.url, "--ca-file", Path(ca_file).name)
        assert (folder_for("ada") / "ca-file").read_text() == f"{ca_file}\n"
        assert hand.types("register", "bob", "--server", server.url, NIGHTMAIL_CA_FILE=ca_file).exit_code == 0
        assert hand.gets("send", "-p", "ada", "bob", "Hello")[0]["state"] == "sent"
        (linked,) = hand.gets("devices", "link", "-p", "ada", "laptop")
        assert hand.gets("devices", "list", "-p", "laptop")[0]["this"] == linked["device"]
        (folder_for("ada") / "ca-file").unlink()
        untrusted = hand.types("send", "-p", "ada", "bob", "Hello")
        assert untrusted.exit_code == 14
        assert "certificate is not trusted" in untrusted.stdout
        assert "--ca-file" in untrusted.stdout


def test_a_certificate_of_another_host_is_refused(secure_hand: Hand, tmp_path: Path) -> None:
    hand = secure_hand
    with private_server(tmp_path, "DNS:elsewhere.example") as (server, ca_file):
        result = hand.types("register", "ada", "--server", server.url, "--ca-file", ca_file)
        assert result.exit_code == 11
        assert "not valid for '127.0.0.1'" in one_sentence(result)


def test_a_ca_file_that_is_none_is_a_mistake_of_usage(secure_hand: Hand, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for words in (("register", "ada"), ("verify", "--server", "https://127.0.0.1:9")):
        result = secure_hand.types(*words, "--ca-file", "ca.pem")
        assert (result.exit_code, "ca.pem cannot be used" in result.stderr) == (2, True)
