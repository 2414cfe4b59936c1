"""`nightmail devices`: list, link, rename and remove the devices of an account.

Knows:   linking has two steps, registering the device and listing it; both can be repeated after a crash.
Touches: the profile, and the folder of the new profile.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from nightmail.cli.errors import Exit, Failure, sentence
from nightmail.cli.output import as_json_option, command_line, console, plain, print_json
from nightmail.cli.presence_words import moment_words
from nightmail.cli.profiles import (
    STORE_FILE,
    ca_file_of,
    chosen,
    client_of,
    named,
    profile_option,
    remember_servers,
    server_options,
    servers_of,
    short_name,
)
from nightmail.cli.unlocking import keeping_options, secret_for, secret_to_keep
from nightmail.cli.waiting import run_within, timeout_option
from nightmail.client import Client
from nightmail.client.errors import Misused
from nightmail.client.profile.protection import Secret


@click.group("devices", short_help="List, link, rename and remove the devices of an account.")
def command() -> None:
    """List, link, rename and remove the devices of an account."""


@command.command("list")
@profile_option
@server_options
@timeout_option()
@as_json_option
def list_(profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """List the devices of the account. Senders encrypt messages for the listed ones only."""
    path = chosen(profile)
    seen, own = run_within(_list(client_of(path, servers_of(path, servers), ca_file=ca_file)))
    if as_json:
        print_json({**seen, "this": own})
        return
    table = Table(title=f"{seen['handle']}: devices, list {seen['list_version']}", box=None, header_style="dim")
    for column in ("device", "label", "platform", "listed", "push", "last seen"):
        table.add_column(column)
    for each in seen["devices"]:
        mark = " (this one)" if each["device"] == own else ""
        # Another device chose its label: never treat it as markup.
        listed, push = "yes" if each["listed"] else "no", each.get("push") or "no"  # An older server does not say.
        last_seen = moment_words(each["last_seen"]) if each.get("last_seen") else "not known"
        cells = (each["device"] + mark, each["label"], each["platform"], listed, push, last_seen)
        table.add_row(*(Text(plain(cell)) for cell in cells))
    console().print(table)


@command.command("link")
@click.argument("new_profile", metavar="NEW_PROFILE")
@click.option("--label", default="second device", help="Its name in the list of devices.")
@keeping_options
@profile_option
@server_options
@timeout_option()
@as_json_option
def link(
    new_profile: str, label: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Add another device to the account, on this machine, with its profile in NEW_PROFILE.

    NEW_PROFILE is a path, or the name of a folder beside the other profiles. To add a device on another machine, use
    nightmail link.
    """
    path, new_path = chosen(profile), named(new_profile)
    found = servers_of(path, servers)
    secret = secret_to_keep() if not (new_path / STORE_FILE).exists() else secret_for(new_path)
    device, handle = run_within(_link(client_of(path, found, ca_file=ca_file), new_path, label, secret))
    remember_servers(new_path, found, ca_file_of(path, ca_file))
    if as_json:
        print_json({"handle": handle, "device": f"{device:x}", "profile": str(new_path), "servers": found})
        return
    page = console()
    page.print(f"Device {device:x} belongs to {handle}, profile {new_path}", markup=False)
    page.print(f"Next: {command_line('listen', '--profile', short_name(new_path))}", style="dim", markup=False)


@command.command("rename")
@click.argument("device", metavar="DEVICE")
@click.argument("label")
@profile_option
@server_options
@timeout_option()
@as_json_option
def rename(
    device: str, label: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Rename the device with the id DEVICE to LABEL."""
    number, path = _number(device), chosen(profile)
    run_within(_rename(client_of(path, servers_of(path, servers), ca_file=ca_file), number, label))
    if as_json:
        print_json({"device": f"{number:x}", "label": label})
    else:
        console().print(f"Device {number:x} is renamed to {plain(label)}.", markup=False)


@command.command("remove")
@click.argument("device", metavar="DEVICE")
@profile_option
@server_options
@timeout_option()
@as_json_option
def remove(
    device: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:  # fmt: skip
    """Remove the device with the id DEVICE. It is disconnected, and gets no further messages."""
    number, path = _number(device), chosen(profile)
    run_within(_remove(client_of(path, servers_of(path, servers), ca_file=ca_file), number))
    if as_json:
        print_json({"removed": f"{number:x}"})
    else:
        console().print(f"Device {number:x} is removed.", markup=False)


def _number(device: str) -> int:
    try:
        return int(device, 16)
    except ValueError:
        raise click.UsageError("A device id is a hex number: see `nightmail devices list`.") from None


async def _list(client: Client) -> tuple[dict[str, Any], str]:
    async with client:
        return await client.http.devices(), f"{client.identity.device:x}"


async def _link(client: Client, new_path: Path, label: str, secret: Secret | None) -> tuple[int, str]:
    async with client:
        handle = client.identity.handle
        try:
            return await client.link_here(new_path, label, secret), handle
        except Misused as error:
            raise Failure(Exit.USAGE, sentence(error), "Name another folder for the new device.") from None


async def _rename(client: Client, device: int, label: str) -> None:
    async with client:
        await client.http.relabel(device, label)


async def _remove(client: Client, device: int) -> None:
    async with client:
        await client.revoke(device)
