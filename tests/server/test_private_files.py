"""The data folder is its owner's alone, whatever it was before."""

from __future__ import annotations

import stat
from pathlib import Path

from nightmail.server.private_files import make_private
from nightmail.testing import running_server
from tests.server.rig import serving


def modes(folder: Path) -> dict[str, str]:
    """Name → rights, of the folder and of everything in it."""
    return {
        str(path.relative_to(folder)): oct(stat.S_IMODE(path.stat().st_mode)) for path in (folder, *folder.rglob("*"))
    }


def test_what_was_open_to_others_is_closed_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    for name, mode in (("rows.db", 0o644), ("lock", 0o600)):
        (folder / name).touch()
        (folder / name).chmod(mode)
    (folder / "link").symlink_to(tmp_path)
    assert (make_private(folder), make_private(folder)) == ([".", "rows.db"], [])
    assert {name: mode for name, mode in modes(folder).items() if name != "link"} == {
        ".": "0o700", "rows.db": "0o600", "lock": "0o600",
    }  # fmt: skip


def test_a_folder_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    assert make_private(tmp_path / "data") == []
    assert not (tmp_path / "data").exists()


def test_everything_that_a_server_makes_is_its_owners_also_in_a_folder_that_was_open(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o755)
    with running_server(folder=folder) as server:
        server.register("ada")
        found = modes(folder)
        log = server.log
    folders = {found.pop("."), found.pop("media")}
    assert (folders, set(found.values())) == ({"0o700"}, {"0o600"})
    assert "the data folder was open to others" in log


def test_a_folder_made_by_an_earlier_start_is_tightened_by_the_next_one(tmp_path: Path) -> None:
    with serving(tmp_path):
        pass
    for path in (tmp_path, *tmp_path.iterdir()):
        path.chmod(0o755)
    with serving(tmp_path):
        assert {mode[-2:] for mode in modes(tmp_path).values()} == {"00"}
