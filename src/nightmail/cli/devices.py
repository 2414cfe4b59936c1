"""`nightmail devices`: list, link, rename and remove the devices of an account.

Knows:   linking is two steps, the device and the list that names it; both may be repeated after a crash.
Touches: the profile that asks, and the new profile folder.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from nightmail.client import Client
from nightmail.client.errors import Misused
from nightmail.client.profile.protection import Secret

from .failing import Exit, Failure, sentence
from .profiles import (
    STORE_FILE,
    chosen,
    client_of,
    named,
    profile_option,
    remember_servers,
    server_options,
    servers_of,
    short_name,
)
from .saying import as_json_option, command_line, console, plain, say_json
from .unlocking import keeping_options, secret_for, secret_to_keep


@click.group("devices", short_help="List, link, rename and remove the devices of an account.")
def command() -> None:
    """List, link, rename and remove the devices of an account."""


@command.command("list")
@profile_option
@server_options
@as_json_option
def list_(profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """List the devices of the account. Messages are sealed for those that are listed."""
    path = chosen(profile)
    seen, own = asyncio.run(_list(client_of(path, servers_of(path, servers), ca_file=ca_file)))
    if as_json:
        say_json({**seen, "this": own})
        return
    table = Table(title=f"{seen['handle']}: devices, list {seen['list_version']}", box=None, header_style="dim")
    for column in ("device", "label", "platform", "listed"):
        table.add_column(column)
    for each in seen["devices"]:
        mark = " (this one)" if each["device"] == own else ""
        # A label is whatever another device chose: never markup.
        cells = (each["device"] + mark, each["label"], each["platform"], "yes" if each["listed"] else "no")
        table.add_row(*(Text(plain(cell)) for cell in cells))
    console().print(table)


@command.command("link")
@click.argument("new_profile", metavar="NEW_PROFILE")
@click.option("--label", default="second device", help="What the device is called in the list of devices.")
@keeping_options
@profile_option
@server_options
@as_json_option
def link(
    new_profile: str, label: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Make a further device of the account, and its profile in the folder NEW_PROFILE.

    NEW_PROFILE is a path, or a name for a folder beside the other profiles: a further device on this machine. On
    another machine: nightmail link.
    """
    path, new_path = chosen(profile), named(new_profile)
    found = servers_of(path, servers)
    secret = secret_to_keep() if not (new_path / STORE_FILE).exists() else secret_for(new_path)
    device, handle = asyncio.run(_link(client_of(path, found, ca_file=ca_file), new_path, label, secret))
    remember_servers(new_path, found)
    if as_json:
        say_json({"handle": handle, "device": f"{device:x}", "profile": str(new_path), "servers": found})
        return
    page = console()
    page.print(f"Device {device:x} is one of {handle}'s now, profile {new_path}", markup=False)
    page.print(f"Next: {command_line('listen', '--profile', short_name(new_path))}", style="dim", markup=False)


@command.command("rename")
@click.argument("device", metavar="DEVICE")
@click.argument("label")
@profile_option
@server_options
@as_json_option
def rename(
    device: str, label: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Call the device with the id DEVICE by LABEL in the list of devices."""
    number, path = _number(device), chosen(profile)
    asyncio.run(_rename(client_of(path, servers_of(path, servers), ca_file=ca_file), number, label))
    if as_json:
        say_json({"device": f"{number:x}", "label": label})
    else:
        console().print(f"Device {number:x} is called {plain(label)}.", markup=False)


@command.command("remove")
@click.argument("device", metavar="DEVICE")
@profile_option
@server_options
@as_json_option
def remove(
    device: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:  # fmt: skip
    """Remove the device with the id DEVICE: it is cut off at once, and nothing more is sealed for it."""
    number, path = _number(device), chosen(profile)
    asyncio.run(_remove(client_of(path, servers_of(path, servers), ca_file=ca_file), number))
    if as_json:
        say_json({"removed": f"{number:x}"})
    else:
        console().print(f"Device {number:x} is removed.", markup=False)


def _number(device: str) -> int:
    try:
        return int(device, 16)
    except ValueError:
        raise click.UsageError("A device's id is hex: see `nightmail devices list`.") from None


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
