"""Names of files, from peers and for peers."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightmail.client.media.names import free_path, local_name, sendable_name, type_of
from nightmail.e2ee.streams.media import is_file_name


@pytest.mark.parametrize(
    "name",
    ["..", ".", "a/b", "a\\b", "/etc/passwd", "C:x", "a\0b", "a\nb", "a\u202eb", "", " ", "x" * 300, "a.", "🖼" * 90],
)
def test_every_name_on_this_disk_becomes_one_that_readers_take(name: str) -> None:
    assert is_file_name(sendable_name(name))


def test_a_name_that_is_fit_stays_and_a_long_one_keeps_its_ending() -> None:
    assert sendable_name("Ünïcode naïve.pdf") == "Ünïcode naïve.pdf"
    assert sendable_name("x" * 400 + ".jpeg").endswith("x.jpeg")


@pytest.mark.parametrize("name", ["..", "a/b", "/x", "a\\b", "a\0", "con:", "a\u202eb", "a ", "a."])
def test_a_peers_name_that_could_be_a_path_is_no_name(name: str) -> None:
    assert not is_file_name(name)


@pytest.mark.parametrize("name", ["CON", "nul.txt", "com1", "LPT9.log", ".bashrc", "-rf", "~x"])
def test_a_name_that_means_something_else_is_saved_under_another(name: str, tmp_path: Path) -> None:
    assert local_name(name) == f"_{name}"
    assert free_path(tmp_path, name) == tmp_path / f"_{name}"


def test_a_link_with_the_name_of_a_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").symlink_to(tmp_path / "elsewhere")
    assert free_path(tmp_path, "notes.txt").name == "notes (2).txt"


def test_a_type_is_guessed_from_the_name() -> None:
    assert [type_of(name) for name in ("a.PNG", "a.pdf", "a", "a.unheard")] == [
        "image/png", "application/pdf", "application/octet-stream", "application/octet-stream",
    ]  # fmt: skip
