"""`nightmail link`: links another device by a code that the new device shows and the primary device reads.

Knows:   both sides: with a handle it runs on the new device, with a code on the primary device.
Touches: the new profile, or the profile of the primary device.
Never:   sends the code to the server: it holds a secret that a person carries from screen to screen.
"""

from __future__ import annotations

import asyncio
import sys

import click
from rich.padding import Padding

from nightmail.cli.errors import Exit, Failure, sentence
from nightmail.cli.link_confirmation import confirm, fingerprint
from nightmail.cli.output import as_json_option, command_line, console, plain, print_json
from nightmail.cli.profiles import (
    STORE_FILE,
    chosen,
    client_of,
    folder_of,
    named,
    profile_option,
    remember_servers,
    server_options,
    servers_of,
    short_name,
)
from nightmail.cli.qr_code import qr_code
from nightmail.cli.unlocking import keeping_options, secret_for, secret_to_keep
from nightmail.client import Client
from nightmail.client.errors import Misused
from nightmail.client.events import Moved
from nightmail.client.own_devices import link_request
from nightmail.client.own_devices.link_request import LinkRequest


@click.command("link", short_help="Add another device to an account.")
@click.argument("what", metavar="HANDLE|CODE|-")
@click.option("--label", default="second device", help="On the new device: its name in the list of devices.")
@click.option(
    "--move",
    is_flag=True,
    help="On the new device: move the whole account here; the old device runs nightmail migrate.",
)
@click.option("--yes", is_flag=True, help="On the primary device: do not ask for confirmation.")
@click.option("--timeout", type=click.FloatRange(min=1), default=600.0, metavar="SECONDS", help="How long to wait.")
@keeping_options
@profile_option
@server_options
@as_json_option
def command(
    what: str, label: str, move: bool, yes: bool, timeout: float, profile: str | None, servers: tuple[str, ...],
    ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Add another device to an account. On the new device, give its HANDLE: shows a code, and waits.

    Then run nightmail link CODE on the account's primary device (- reads the code from standard input). It shows
    which device asks, and asks you to confirm. Show the code to nobody else: anyone who has it can impersonate you
    while the device is being linked.
    """
    is_code = what == "-" or what.startswith(link_request.PREFIX)
    if is_code:
        code = sys.stdin.read() if what == "-" else what
        path = chosen(profile)
        client = client_of(path, servers_of(path, servers), ca_file=ca_file)
        _approve(client, LinkRequest.parse(code), yes, timeout, as_json)
        return
    path = named(profile) if profile else folder_of(what)
    is_new = not (path / STORE_FILE).exists()
    secret = secret_to_keep() if is_new else secret_for(path)
    found = servers_of(path, servers)
    try:
        request = link_request.begin(path, what, label, secret=secret)
    except Misused as error:
        raise Failure(Exit.USAGE, sentence(error), "Name another folder (--profile).") from None
    remember_servers(path, found, ca_file)
    _show(request, move, as_json)
    client = client_of(path, found, ca_file=ca_file, secret=secret)
    try:
        device = asyncio.run(_wait(client, move, timeout))
    except TimeoutError:
        again = command_line("link", what, "--profile", short_name(path))
        raise Failure(
            Exit.PENDING,
            "The primary device did not approve this device in time.",
            f"To show the same code again: {again}",
        ) from None
    if as_json:
        print_json({"type": "linked", "handle": what, "device": f"{device:x}", "profile": str(path), "servers": found})
        return
    page = console()
    page.print(f"This machine is device {device:x} of {plain(what)}, profile {path}", markup=False)
    page.print(f"Next: {command_line('chat', '--profile', short_name(path))}", style="dim", markup=False)


# --- the new device ---------------------------------------------------------------------------


def _show(request: LinkRequest, move: bool, as_json: bool) -> None:
    if as_json:
        print_json({"type": "code", "code": request.code, "fingerprint": fingerprint(request)})
        return
    page = console()
    page.print("On the account's primary device:", style="bold")
    # Printed on one line even in a narrow terminal, so that it can be copied whole.
    page.print(f"\n  nightmail {'migrate' if move else 'link'} '{request.code}'\n", markup=False, soft_wrap=True)
    page.print(Padding(qr_code(request.code), (0, 2)))
    page.print(f"The primary device must show the fingerprint {fingerprint(request)}. Waiting …", markup=False)


async def _wait(client: Client, move: bool, seconds: float) -> int:
    """Until the primary device has listed this one and sent it the account; with `move`, the history, too."""
    moved = asyncio.Event()
    client.on(Moved)(lambda _: moved.set())
    async with asyncio.timeout(seconds), client:
        await client.ready()
        if move:
            await moved.wait()
        return client.identity.device


# --- the primary device -----------------------------------------------------------------------


def _approve(client: Client, request: LinkRequest, yes: bool, seconds: float, as_json: bool) -> None:
    if not yes:
        confirm(request, f"Link it to {plain(request.handle)}? It will receive every message from then on.")
    try:
        device = asyncio.run(_link(client, request, seconds))
    except TimeoutError:
        raise Failure(
            Exit.PENDING, "The device is linked, but has not received the account yet: it must be online.",
            "The next command with this profile continues.",
        ) from None  # fmt: skip
    if as_json:
        print_json({"handle": request.handle, "device": f"{device:x}", "label": request.label})
    else:
        console().print(f"Device {device:x} ({plain(request.label)}) is linked to your account.", markup=False)


async def _link(client: Client, request: LinkRequest, seconds: float) -> int:
    async with client, asyncio.timeout(seconds):
        return await client.link(request)
