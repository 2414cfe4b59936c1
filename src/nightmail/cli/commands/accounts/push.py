"""`nightmail push`: how a device is woken while it is not connected, and whether a server's push providers answer."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nightmail.cli.errors import Exit, Failure
from nightmail.cli.operator_access import operator_http, operator_options
from nightmail.cli.output import as_json_option, console, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.waiting import run_within, timeout_option
from nightmail.client import Client

PLATFORMS = ("ios", "android", "web", "unifiedpush")


@click.group("push", short_help="Say how a device is woken, and test a server's push providers.")
def command() -> None:
    """Say how this device is woken while it is not connected; and, for operators, test the push providers."""


@command.command("set")
@click.argument("platform", type=click.Choice(PLATFORMS))
@click.argument("token")
@profile_option
@server_options
@timeout_option()
@as_json_option
def set_(
    platform: str, token: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool
) -> None:
    """Have this device woken by TOKEN, as PLATFORM's service gave it; - reads it from standard input.

    For unifiedpush TOKEN is an address: it gets a POST when something waits.
    """
    path = chosen(profile)
    token = sys.stdin.read().strip() if token == "-" else token  # noqa: S105 (a word of the command line)
    run_within(_set(client_of(path, servers_of(path, servers), ca_file=ca_file), platform, token))
    if as_json:
        print_json({"platform": platform})
    else:
        console().print(f"This device is woken by {platform}.", markup=False)


@command.command("remove")
@profile_option
@server_options
@timeout_option()
@as_json_option
def remove(profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
    """Do not have this device woken any more."""
    path = chosen(profile)
    run_within(_remove(client_of(path, servers_of(path, servers), ca_file=ca_file)))
    if as_json:
        print_json({"platform": None})
    else:
        console().print("This device is not woken any more.", markup=False)


@command.command("test")
@operator_options
@as_json_option
def test(
    token_file: Path | None, data: str | None, file: Path | None, servers: tuple[str, ...], ca_file: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Ask each push provider that the server has set up whether it takes the server's credentials. For operators."""
    found = run_within(operator_http(token_file, data, file, servers, ca_file).test_push())
    if as_json:
        print_json({"providers": found})
    else:
        page = console()
        for platform, word in found.items():
            page.print(f"{platform:12} {word}", markup=False)
        if not found:
            page.print("No push provider is set up: see [push] in docs/configuration.md.", markup=False)
    if any(word != "ok" for word in found.values()):
        raise Failure(Exit.OTHER, "A push provider does not take this server's pushes.", "See its word above.")


async def _set(client: Client, platform: str, token: str) -> None:
    async with client:
        await client.http.set_push(platform, token)


async def _remove(client: Client) -> None:
    async with client:
        await client.http.remove_push()
