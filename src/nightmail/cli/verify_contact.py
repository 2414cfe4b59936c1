"""`nightmail verify-contact`: the number that two people compare, to know that nobody stands between them.

Touches: the profile, if the person says what came of it.
"""

from __future__ import annotations

import asyncio

import click
from rich.padding import Padding

from nightmail.client import Client
from nightmail.client.client import Trust

from . import unlocking
from .people import Names, whom
from .profiles import chosen, client_of, profile_option, server_options, servers_of
from .saying import as_json_option, console, say_json
from .squares import grouped, squares

DIGITS = 60


def _digits(_: click.Context, __: click.Parameter, text: str | None) -> str:
    digits = "".join((text or "").split())
    if text is not None and not (len(digits) == DIGITS and digits.isascii() and digits.isdigit()):
        raise click.BadParameter(f"It takes the {DIGITS} digits that were compared.")
    return digits


@click.command("verify-contact", short_help="Compare safety numbers with somebody.")
@click.argument("person", metavar="NAME")
@click.option(
    "--verified",
    metavar="DIGITS",
    callback=_digits,
    help="These 60 digits were compared, and are alike: ask if it ever changes.",
)
@click.option(
    "--accept",
    metavar="DIGITS",
    callback=_digits,
    help="Agree to a number that changed, and is this now: what waits is sealed for it.",
)
@profile_option
@server_options
@as_json_option
def command(
    person: str, verified: str, accept: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Show the safety number with NAME: twelve groups of five digits, and the same as squares for a camera.

    Compare it with what they see, face to face or in a call. If it is alike, nobody stands between: say so when you
    are asked, or with --verified and the digits that were compared. If it ever changes after that, nothing is sent to
    them before you --accept it. Nothing is agreed to if the number is another one by then.
    """
    if verified and accept:
        raise click.UsageError("Say one of --verified and --accept.")
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    asyncio.run(_verify(client, person, verified, accept, as_json))


async def _verify(client: Client, person: str, verified: str, accept: str, as_json: bool) -> None:
    async with client:
        who = whom(client, person)
        if verified:
            await client.verify(who, verified)
        elif accept:
            await client.accept(who, accept)
        number, trust = client.safety_number(who), client.trust(who)
        account = client.people.get(who).account
        if as_json:
            say_json({
                "account": f"{account:x}", "safety_number": number, "verified": trust.verified, "held": trust.held,
            })  # fmt: skip
            return
        _show(Names(client).of(account), number)
        if not trust.verified and not accept and unlocking.can_ask():
            await _ask(client, who, number, trust)
            trust = client.trust(who)
    _conclude(trust)


async def _ask(client: Client, who: str | int, number: str, trust: Trust) -> None:
    """What the person says is about the number that they see. Nothing else happens here until they have said it."""
    if click.confirm("Do they see the same number?", default=False):
        await client.verify(who, number)
    elif trust.held and click.confirm("It changed since you verified it. Accept it all the same?", default=False):
        await client.accept(who, number)


def _show(name: str, number: str) -> None:
    page = console()
    page.print(f"Safety number with {name}", markup=False, style="bold")
    page.print(Padding(grouped(number), (1, 4)))
    page.print(Padding(squares(number), (0, 4)))


def _conclude(trust: Trust) -> None:
    page = console()
    if trust.verified:
        page.print("Verified.", style="green")
    elif trust.held:
        page.print("It changed since you verified it. What you write waits until you --accept it.", style="bold yellow")
    else:
        page.print("Not verified. If they see the same number, say so with --verified and the digits.", style="dim")
