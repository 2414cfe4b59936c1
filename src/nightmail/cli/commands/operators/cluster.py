"""`nightmail cluster`: make a cluster on Kafka and Cassandra, and show how it is. For operators."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.table import Table

from nightmail.cli.errors import Exit, Failure
from nightmail.cli.output import as_json_option, console, print_json
from nightmail.cli.server_settings import config_option, loaded, setting_options
from nightmail.server.cluster.certificates import make_certificates
from nightmail.server.config import Config
from nightmail.server.folder import EngineError

T = TypeVar("T")


@click.group("cluster", short_help="Make a cluster, and show how it is.")
def command() -> None:
    """Make a cluster on Kafka and Cassandra, and show how it is. Its nodes run with `nightmail serve`, with
    cluster.enabled = true in their settings."""


@command.command("init")
@config_option
@setting_options
@as_json_option
def init(file: Path | None, as_json: bool, **given: Any) -> None:
    """Make the topic and the tables of a cluster. Repeating it changes nothing.

    The number of shards and of buckets (cluster.shards, cluster.buckets) is decided here, once and for ever.
    """
    config = loaded(file, given).config
    made = _run(_admin().make_cluster(config))
    if as_json:
        print_json({"shards": made.shards, "buckets": made.buckets, "new": made.is_new})
        return
    state = "is made" if made.is_new else "was made before, and is as it was"
    console().print(f"The cluster {state}: {made.shards} shards, {made.buckets} buckets each.", markup=False)


@command.command("import")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Check everything and count, and bring in nothing.")
@config_option
@setting_options
@as_json_option
def bring_in(folder: Path, dry_run: bool, file: Path | None, as_json: bool, **given: Any) -> None:
    """Bring the data folder FOLDER of a server alone into a cluster that was just made.

    The server must be stopped, and no node may run yet. Accounts, devices, mailboxes, groups, schedules and the
    records of blobs come along, and clients go on where they were. The delivery log, last-seen times, settled dead
    letters and the bytes of blobs (media/) stay in the folder.
    """
    config: Config = loaded(file, given).config
    figures = _run(_admin("importing").import_folder(config, folder, _reporter(as_json), dry_run=dry_run))
    if as_json:
        print_json({
            "rows": figures.rows, "entries": figures.entries, "bytes": figures.bytes,
            "letters_left": figures.letters_left, "pointer": figures.pointer, "dry_run": dry_run,
        })  # fmt: skip
        return
    said = "would be brought in" if dry_run else "were brought in: start the nodes"
    console().print(
        f"{figures.rows} rows and {figures.entries} entries, {figures.bytes} bytes, {said}.", markup=False, style="bold"
    )
    if figures.letters_left:
        console().print(f"{figures.letters_left} settled dead letters stay in the folder.", markup=False)


def _reporter(as_json: bool) -> Callable[[str, int, int], None]:
    """Says now and then how far it is, on standard error."""
    told: dict[str, int] = {}

    def report(what: str, done: int, total: int) -> None:
        part = done * 10 // total if total else done // 100_000
        if not as_json and told.get(what) != part:
            told[what] = part
            click.echo(f"{what}: {done}" + (f" of {total}" if total else ""), err=True)

    return report


@command.command("status")
@config_option
@setting_options
@as_json_option
def status(file: Path | None, as_json: bool, **given: Any) -> None:
    """Show the nodes, and for each shard its owner and what a takeover would replay.

    Exit code 1 if a shard has no owner.
    """
    config: Config = loaded(file, given).config
    seen = _run(_admin().look_at_cluster(config))
    orphaned = sum(not shard.owner for shard in seen.shards)
    if as_json:
        print_json({
            "nodes": [
                {"name": node.name, "number": node.number, "address": node.address, "fold": node.fold, "url": node.url}
                for node in seen.nodes
            ],
            "shards": [
                {"shard": each.shard, "owner": each.owner, "end": each.end, "checkpoint": each.checkpoint,
                 "behind": each.behind}
                for each in seen.shards
            ],
            "orphaned": orphaned,
        })  # fmt: skip
    else:
        _print(seen.nodes, seen.shards)
    if orphaned:
        raise Failure(Exit.OTHER, f"{orphaned} of {len(seen.shards)} shards have no owner.")


@command.command("certs")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("name")
@click.option("--host", "hosts", multiple=True, required=True, metavar="HOST", help="Where other nodes reach it.")
@as_json_option
def certs(folder: Path, name: str, hosts: tuple[str, ...], as_json: bool) -> None:
    """Make the certificate of the node NAME in FOLDER, and an authority for the cluster if there is none.

    Copy ca.pem, NAME.pem and NAME.key to the node, and name them as cluster.node_ca_file, cluster.node_cert_file and
    cluster.node_key_file. Keep ca.key: it makes the certificates of other nodes.
    """
    files = make_certificates(folder, name, list(hosts))
    if as_json:
        print_json(dict(zip(("ca", "cert", "key"), map(str, files), strict=True)))
    else:
        console().print("\n".join(map(str, files)), markup=False)


def _print(nodes: list[Any], shards: list[Any]) -> None:
    page = console()
    table = Table("node", "for clients", "for nodes", "fold", "shards")
    for node in sorted(nodes, key=lambda each: each.name):
        owned = sum(each.owner == node.name for each in shards)
        table.add_row(node.name, node.url, node.address, str(node.fold), str(owned))
    page.print(table)
    table = Table("shard", "owner", "log ends at", "checkpoint", "batches behind it")
    for each in shards:
        table.add_row(str(each.shard), each.owner or "none", str(each.end), str(each.checkpoint), str(each.behind))
    page.print(table)


def _admin(module: str = "admin") -> Any:
    try:
        # Its drivers are an extra.
        return import_module(f"nightmail.server.cluster.{module}")
    except ImportError as error:
        raise Failure(
            Exit.OTHER, f"A cluster needs the extra nightmail[cluster]: {error.name} is missing.",
            "Install it with: pip install 'nightmail[cluster]'.",
        ) from None  # fmt: skip


def _run(asked: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(asked)
    except EngineError as error:
        raise Failure(Exit.OTHER, f"{error}.") from None
