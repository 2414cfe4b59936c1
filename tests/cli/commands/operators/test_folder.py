"""`nightmail folder`: a real server is checked, backed up while it runs, and restored."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nightmail.cli.app import nightmail
from tests.server.rig import WAIT_S
from tests.server.test_process import process


def run(*words: str) -> tuple[int, list[Any], str]:
    """Exit code, the lines of JSON, and what was said to people."""
    result = CliRunner().invoke(nightmail, ["folder", *words, "--json"])
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def test_a_running_server_is_backed_up_and_the_restored_one_knows_everybody(tmp_path: Path) -> None:
    data, backup, restored = (str(tmp_path / name) for name in ("data", "backup", "restored"))
    with process(Path(data)) as (running, asker):
        people = [asker.register(f"person-{n}") for n in range(5)]
        assert run("check", "--data", data)[0] == 0
        code, said, _ = run("backup", backup, "--data", data)
        assert (code, said[0]["verdict"], said[0]["served"]) == (0, "whole", True)
        asker.register("later")
        running.kill()
        running.wait(WAIT_S)
    assert run("restore", backup, "--data", restored)[0] == 0
    for name in ("operator.token", "accounts.secret"):
        assert (tmp_path / "restored" / name).read_bytes() == (tmp_path / "data" / name).read_bytes()
        assert os.stat(tmp_path / "restored" / name).st_mode & 0o777 == 0o600
    with process(Path(restored)) as (_, asker):
        assert [asker.get("/v1/devices", person).status for person in people] == [200] * 5
        assert asker.register("later").handle == "later"


def test_what_is_wrong_is_one_sentence_an_exit_code_and_an_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    data = str(tmp_path / "data")
    with process(Path(data)) as (running, _):
        running.terminate()
        running.wait(WAIT_S)
    rows = tmp_path / "data" / "rows.db"
    rows.write_bytes(rows.read_bytes()[:-4_096] + bytes(4_096))
    code, said, told = run("check", "--data", data)
    assert (code, said[0]["verdict"]) == (4, "refused")
    assert "page" in said[0]["why"]
    assert told.count("\n") == 1
    monkeypatch.chdir(tmp_path)
    code, said, told = run("check", "--data", "data")
    assert (code, told) == (4, f"nightmail: {said[0]['why']}.\n"), "a path is written as it is"
    assert said[0]["why"].startswith("data/rows.db ")
    assert run("backup", data, "--data", data)[0] == 5
    assert run("check", "--data", str(tmp_path / "nothing"))[0] == 5
