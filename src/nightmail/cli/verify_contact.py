"""`nightmail verify-contact`: the number that two people compare, to know that nobody stands between them.

Touches: the profile, if the person says what came of it.
"""

from __future__ import annotations

import asyncio

import click
from rich.padding import Padding

from nightmail.client import Client

from .people import Names, whom
from .profiles import chosen, client_of, profile_option, server_options, servers_of
from .saying import as_json_option, console, say_json
from .squares import grouped, squares


@click.command("verify-contact", short_help="Compare safety numbers with somebody.")
@click.argument("person", metavar="NAME")
@click.option("--verified", is_flag=True, help="The numbers were compared, and are alike: ask if it ever changes.")
@click.option("--accept", is_flag=True, help="Agree to a number that changed: what waits is sealed for it.")
@profile_option
@server_options
@as_json_option
def command(
    person: str, verified: bool, accept: bool, profile: str | None, servers: tuple[str, ...], ca_file: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Show the safety number with NAME: twelve groups of five digits, and the same as squares for a camera.

    Compare it with what they see, face to face or in a call. If it is alike, nobody stands between: say so with
    --verified. If it ever changes after that, nothing is sent to them before you --accept it.
    """
    if verified and accept:
        raise click.UsageError("Say one of --verified and --accept.")
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    asyncio.run(_verify(client, person, verified, accept, as_json))


async def _verify(client: Client, person: str, verified: bool, accept: bool, as_json: bool) -> None:
    async with client:
        who = whom(client, person)
        number = client.safety_number(who)
        if verified:
            await client.verify(who)
        elif accept:
            await client.accept(who)
        account = client.people.get(who).account
        name, trust = Names(client).of(account), client.trust(who)
    if as_json:
        say_json({
            "account": f"{account:x}", "safety_number": number, "verified": trust.verified, "held": trust.held,
        })  # fmt: skip
        return
    page = console()
    page.print(f"Safety number with {name}", markup=False, style="bold")
    page.print(Padding(grouped(number), (1, 4)))
    page.print(Padding(squares(number), (0, 4)))
    if trust.verified:
        page.print("Verified.", style="green")
    elif trust.held:
        page.print("It changed since you verified it. What you write waits until you --accept it.", style="bold yellow")
    else:
        page.print("Not verified. If they see the same number, say so with --verified.", style="dim")
