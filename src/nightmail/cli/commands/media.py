"""`nightmail media`: the files of messages: shown, and saved.

Touches: the profile; for saving, the server and the folder that was named.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from nightmail.cli.contact_names import ContactNames, resolve_any
from nightmail.cli.file_words import STATE_WORDS, file_json, progress_shown, size_words
from nightmail.cli.json_shapes import message_json
from nightmail.cli.output import as_json_option, clock, console, plain, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.waiting import TRANSFER_S, run_within, timeout_option
from nightmail.client import Client
from nightmail.client.media_client import SharedFile


@click.group("media", short_help="List the files of messages, and save them.")
def command() -> None:
    """List the files of messages, and save them. To send one: nightmail send --file."""


@command.command("list")
@click.argument("person", metavar="[NAME]", required=False)
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, help="Show this many of the newest files.")
@profile_option
@server_options
@as_json_option
def list_files(
    person: str | None, limit: int, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Show the newest files, of all conversations or of the one with NAME, oldest first. Works offline."""
    path = chosen(profile)
    asyncio.run(_list(client_of(path, servers_of(path, servers), ca_file=ca_file), person, limit, as_json))


async def _list(client: Client, person: str | None, limit: int, as_json: bool) -> None:
    async with client:
        files = client.files(resolve_any(client, person) if person else None)[-limit:]
        if as_json:
            for file in files:
                print_json({**message_json(file.message, client.identity.account), **file_json(file)})
            return
        if not files:
            console().print("There are no files.")
            return
        console().print(_table(client, files))


def _table(client: Client, files: list[SharedFile]) -> Table:
    names, table = ContactNames(client), Table(box=None, header_style="dim")
    for column in ("id", "when", "with", "file", "size", "where"):
        # An id is copied into the next command.
        table.add_column(column, overflow="fold" if column == "id" else "ellipsis")
    for file in files:
        when = clock(file.message.at) if file.message.at else ""
        where = f"{STATE_WORDS[file.state]}: {plain(file.path)}" if file.path else STATE_WORDS[file.state]
        whom = ("→ " if file.message.own else "") + names.of(file.message.peer)
        table.add_row(
            file.message.id, when, Text(whom), Text(plain(file.pointer.name)), size_words(file.pointer.size),
            Text(where),
        )  # fmt: skip
    return table


@command.command("save")
@click.argument("message_id", metavar="ID")
@click.argument("path", type=click.Path(path_type=Path), required=False, default=Path())
@click.option("--overwrite", is_flag=True, help="Replace a file that is at PATH.")
@timeout_option(TRANSFER_S)
@profile_option
@server_options
@as_json_option
def save(
    message_id: str, path: Path, overwrite: bool, profile: str | None, servers: tuple[str, ...], ca_file: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Save the file of the message ID at PATH: a folder, where it gets its own name or a free one like it, or the path
    of a file. Without PATH, in this folder.

    It is fetched if it is not here, and goes on where an earlier attempt stopped. It has its name only when all of it
    has verified.
    """
    profile_path = chosen(profile)
    client = client_of(profile_path, servers_of(profile_path, servers), ca_file=ca_file)
    saved = run_within(_save(client, message_id, path, overwrite, as_json))
    if as_json:
        print_json({"type": "saved", "message_id": message_id, "path": str(saved)})
    else:
        console().print(f"Saved {plain(str(saved))}", markup=False)


async def _save(client: Client, message_id: str, path: Path, overwrite: bool, as_json: bool) -> Path:
    async with client:
        with progress_shown(client, as_json=as_json):
            return await client.save_file(message_id, path, overwrite=overwrite)
