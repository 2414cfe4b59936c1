"""From one server to a cluster: clients go on where they were, and what waited comes once."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from nightmail.client import SyncClient, Tick
from nightmail.engine.ports import EngineError, InUse
from nightmail.server.cluster.admin import make_cluster
from nightmail.server.cluster.importing import FolderFigures, import_folder
from nightmail.server.config import load
from nightmail.testing import RunningServer
from tests.engines.started import StartedEngines

from .running_cluster import SECRET, write_settings

WAIT_S = 120
PUSH = f'[push]\nsecret = "{SECRET}"\n'
SECRETS = f'[accounts]\nsecret = "{SECRET}"\n[schedule]\nsecret = "{SECRET}"\n{PUSH}'


def silent(_what: str, _done: int, _total: int) -> None: ...


def alone_settings(folder: Path) -> dict[str, object]:
    """The same secrets as the cluster's."""
    file = folder / "alone.toml"
    file.write_text(SECRETS)
    return {"config": file}


def brought(file: Path, folder: Path, *, dry_run: bool = False) -> FolderFigures:
    return asyncio.run(import_folder(load(file).config, folder, silent, dry_run=dry_run))


def test_clients_of_a_server_go_on_in_a_cluster_and_get_what_waited_exactly_once(
    engines: StartedEngines, tmp_path: Path
) -> None:
    file, folder = tmp_path / "cluster.toml", tmp_path / "alone"
    write_settings(file, engines, PUSH)
    with RunningServer(alone_settings(tmp_path), folder) as alone:
        ada, bob, cleo = alone.register("ada"), alone.register("bob"), alone.register("cleo")
        with ada.sync() as sender, bob.sync() as recipient, cleo.sync():
            sender.wait(sender.send("bob", "before"), Tick.DELIVERED, WAIT_S)
            assert recipient.receive(timeout=WAIT_S).text == "before"
        with ada.sync() as sender:
            waiting = [sender.send(to, f"{to} {n}") for n in range(5) for to in ("bob", "cleo")]
            for message in waiting:
                sender.wait(message, Tick.SENT, WAIT_S)
        config = load(file).config
        asyncio.run(make_cluster(config))
        with pytest.raises(InUse, match="stop it first"):
            brought(file, folder)
        alone.stop()
        counted = brought(file, folder, dry_run=True)
        assert counted.entries >= 10
        assert brought(file, folder) == counted
        with pytest.raises(EngineError, match="has data already"):
            brought(file, folder)
        settings = {"config": file, "server.node": "node1", "log.level": "info"}
        with RunningServer(settings, tmp_path / "node1") as node:
            with SyncClient(bob.profile, [node.url]) as second, SyncClient(cleo.profile, [node.url]) as third:
                assert [second.receive(timeout=WAIT_S).text for _ in range(5)] == [f"bob {n}" for n in range(5)]
                assert [third.receive(timeout=WAIT_S).text for _ in range(5)] == [f"cleo {n}" for n in range(5)]
                with SyncClient(ada.profile, [node.url]) as sender:
                    for message in waiting:
                        sender.wait(message, Tick.DELIVERED, WAIT_S)
                    sender.wait(sender.send("bob", "after"), Tick.DELIVERED, WAIT_S)
                    assert second.receive(timeout=WAIT_S).text == "after"
                    second.wait(second.send("ada", "an answer"), Tick.DELIVERED, WAIT_S)
                shown = [message.text for message in second.history("ada") if not message.own]
            assert shown == ["before", *(f"bob {n}" for n in range(5)), "after"]
            assert not re.search(r"could not be applied|cannot go on", node.log)


def test_a_folder_that_was_killed_or_has_another_secret_or_is_damaged_is_refused(
    engines: StartedEngines, tmp_path: Path
) -> None:
    file, folder = tmp_path / "cluster.toml", tmp_path / "alone"
    write_settings(file, engines, PUSH)
    asyncio.run(make_cluster(load(file).config))
    with RunningServer(alone_settings(tmp_path), folder) as alone:
        ada, _ = alone.register("ada"), alone.register("bob")
        with ada.sync() as sender:
            sender.wait(sender.send("bob", "kept in the log"), Tick.SENT, WAIT_S)
        alone.kill()
        with pytest.raises(EngineError, match="was not stopped in order"):
            brought(file, folder)
        alone.start()
        alone.stop()
        (folder / "accounts.secret").write_text("another")
        with pytest.raises(EngineError, match="must be what"):
            brought(file, folder)
        (folder / "accounts.secret").unlink()
        rows = folder / "rows.db"
        data = bytearray(rows.read_bytes())
        data[len(data) // 2] ^= 1
        rows.write_bytes(bytes(data))
        with pytest.raises(EngineError):
            brought(file, folder)
