"""`nightmail register`: a profile folder, and an account with this as its first device.

Touches: the profile folder. It is removed again if the server says no, and kept if nobody answered:
the token in it was chosen, and asking again gives the same device.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import click

from nightmail.client.errors import Misused, Refused
from nightmail.client.protection import Secret

from .failing import Exit, Failure, sentence
from .profiles import STORE_FILE, client_of, folder_for, named, remember_servers, server_options, servers_of, short_name
from .saying import as_json_option, command_line, console, say_json
from .unlocking import keeping_options, passphrase_option, secret_for, secret_to_keep


@click.command("register", short_help="Make an account and its first device.")
@click.argument("handle")
@click.option("-p", "--profile", metavar="PATH", help="Where to keep it. Otherwise ~/.local/share/nightmail/HANDLE.")
@click.option("--label", default="terminal", help="What the device is called in the list of devices.")
@keeping_options
@passphrase_option
@server_options
@as_json_option
def command(
    handle: str, profile: str | None, label: str, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Make an account called HANDLE, with this machine as its first device.

    The profile folder holds the device's token, its outbox and its history, sealed, and remembers the servers.
    Doing it again is safe: the same profile stays the same device.
    """
    path = named(profile) if profile else folder_for(handle)
    is_new = not (path / STORE_FILE).exists()
    secret = secret_to_keep() if is_new else secret_for(path)
    asyncio.run(_register(path, handle, label, servers_of(path, servers), ca_file, as_json, is_new, secret))


async def _register(
    path: Path, handle: str, label: str, servers: list[str], ca_file: str | None, as_json: bool, is_new: bool,
    secret: Secret | None,
) -> None:  # fmt: skip
    client = client_of(path, servers, handle=handle, label=label, ca_file=ca_file, secret=secret)
    try:
        async with client:
            identity = client.identity
    except Misused as error:
        raise Failure(Exit.USAGE, sentence(error), "Name another folder (--profile).") from None
    except Refused:
        if is_new:
            shutil.rmtree(path, ignore_errors=True)
        raise
    remember_servers(path, servers)
    device = f"{identity.device:x}"
    if as_json:
        say_json(
            {"handle": handle, "account": f"{identity.account:x}", "device": device, "profile": str(path),
             "servers": servers}
        )  # fmt: skip
        return
    page = console()
    page.print(f"{handle} is registered at {servers[0]}: device {device}, profile {path}", markup=False)
    name = short_name(path)
    page.print(f"Next: {command_line('listen', '--profile', name)}", style="dim", markup=False)
    page.print(f"      {command_line('send', '--profile', name, 'SOMEBODY', 'Hello')}", style="dim", markup=False)
