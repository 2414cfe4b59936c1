"""`nightmail link`: a further device, by a code that it shows and that the primary device takes.

Knows:   both ends: a handle begins on the new device, a code goes to the primary one.
Touches: the profile that it makes or asks.
Never:   lets the server see the code: it holds a secret that goes from screen to screen.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys

import click
from rich.padding import Padding

from nightmail.client import Client
from nightmail.client.errors import Misused
from nightmail.client.events import Moved
from nightmail.client.own_devices import link_request
from nightmail.client.own_devices.link_request import LinkRequest
from nightmail.model.handles import spelled

from .failing import Exit, Failure, sentence
from .profiles import (
    STORE_FILE,
    chosen,
    client_of,
    folder_for,
    named,
    profile_option,
    remember_servers,
    server_options,
    servers_of,
    short_name,
)
from .saying import as_json_option, command_line, console, plain, say_json
from .squares import squares
from .unlocking import can_ask, keeping_options, secret_for, secret_to_keep


@click.command("link", short_help="Make this a further device of an account, or take one in.")
@click.argument("what", metavar="HANDLE|CODE|-")
@click.option("--label", default="second device", help="On the new device: what it is called in the list.")
@click.option("--move", is_flag=True, help="On the new device: the whole account moves here (nightmail migrate).")
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
    """Make this machine a further device of the account HANDLE: shows a code, and waits.

    On the account's primary device, give that CODE (or - to read it from standard input): it shows what asks, and
    takes the device in. Show the code to nobody else: who has it could take your place while the device is linked.
    """
    is_code = what == "-" or what.startswith(link_request.PREFIX)
    if is_code:
        code = sys.stdin.read() if what == "-" else what
        path = chosen(profile)
        client = client_of(path, servers_of(path, servers), ca_file=ca_file)
        _take_in(client, LinkRequest.parse(code), yes, timeout, as_json)
        return
    what = spelled(what)
    path = named(profile) if profile else folder_for(what)
    is_new = not (path / STORE_FILE).exists()
    secret = secret_to_keep() if is_new else secret_for(path)
    found = servers_of(path, servers)
    try:
        request = link_request.begin(path, what, label, secret=secret)
    except Misused as error:
        raise Failure(Exit.USAGE, sentence(error), "Name another folder (--profile).") from None
    remember_servers(path, found)
    _show(request, move, as_json)
    client = client_of(path, found, ca_file=ca_file, secret=secret)
    try:
        device = asyncio.run(_wait(client, move, timeout))
    except TimeoutError:
        again = command_line("link", what, "--profile", short_name(path))
        raise Failure(Exit.QUEUED, "Nobody took the device in.", f"The same code is shown again by: {again}") from None
    if as_json:
        say_json({"type": "linked", "handle": what, "device": f"{device:x}", "profile": str(path), "servers": found})
        return
    page = console()
    page.print(f"This is one of {plain(what)}'s devices now: {device:x}, profile {path}", markup=False)
    page.print(f"Next: {command_line('chat', '--profile', short_name(path))}", style="dim", markup=False)


def fingerprint(request: LinkRequest) -> str:
    """Both screens show it: so one sees that it is this device, and no other."""
    digest = hashlib.sha256(request.identity).hexdigest()
    return " ".join(digest[at : at + 4] for at in range(0, 16, 4))


# --- the new device ---------------------------------------------------------------------------


def _show(request: LinkRequest, move: bool, as_json: bool) -> None:
    if as_json:
        say_json({"type": "code", "code": request.code, "fingerprint": fingerprint(request)})
        return
    page = console()
    page.print("On the account's primary device:", style="bold")
    # Never cut or broken: it is there to be copied whole, however narrow the terminal is.
    page.print(f"\n  nightmail {'migrate' if move else 'link'} '{request.code}'\n", markup=False, soft_wrap=True)
    page.print(Padding(squares(request.code), (0, 2)))
    page.print(f"Its fingerprint there must be {fingerprint(request)}. Waiting …", markup=False)


async def _wait(client: Client, move: bool, seconds: float) -> int:
    """Until the primary device has vouched for this one, and has told it whose it is; if it moves, all of it."""
    moved = asyncio.Event()
    client.on(Moved)(lambda _: moved.set())
    async with asyncio.timeout(seconds), client:
        await client.ready()
        if move:
            await moved.wait()
        return client.identity.device


# --- the primary device -----------------------------------------------------------------------


def _take_in(client: Client, request: LinkRequest, yes: bool, seconds: float, as_json: bool) -> None:
    if not yes:
        confirm(request, f"Take it in as a device of {plain(request.handle)}? It will read everything from now on.")
    try:
        device = asyncio.run(_link(client, request, seconds))
    except TimeoutError:
        raise Failure(
            Exit.QUEUED, "The device is linked, and was not told whose it is yet: it must be online.",
            "That goes on with the next command.",
        ) from None  # fmt: skip
    if as_json:
        say_json({"handle": request.handle, "device": f"{device:x}", "label": request.label})
    else:
        console().print(f"Device {device:x} ({plain(request.label)}) is one of yours now.", markup=False)


def confirm(request: LinkRequest, question: str) -> None:
    """Show what asks, and have it agreed to."""
    for name, value in (
        ("label", request.label), ("platform", request.platform.name.lower()), ("fingerprint", fingerprint(request)),
    ):  # fmt: skip
        click.echo(f"{name:12} {plain(value)}", err=True)
    if not can_ask():
        raise Failure(Exit.USAGE, "Nobody can be asked.", "Say --yes if this is the device.")
    click.confirm(question, abort=True, err=True)


async def _link(client: Client, request: LinkRequest, seconds: float) -> int:
    async with client, asyncio.timeout(seconds):
        return await client.link(request)
