"""`nightmail verify-contact`: the safety number that two people compare, to exclude a man in the middle.

Touches: the profile, when the user verifies or accepts a number.
"""

from __future__ import annotations

import asyncio

import click
from rich.padding import Padding

from nightmail.cli import unlocking
from nightmail.cli.contact_names import ContactNames, resolve
from nightmail.cli.output import as_json_option, console, digit_groups, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.qr_code import qr_code
from nightmail.client import Client
from nightmail.client.client import Trust

DIGITS = 60


def _digits(_: click.Context, __: click.Parameter, text: str | None) -> str:
    digits = "".join((text or "").split())
    if text is not None and not (len(digits) == DIGITS and digits.isascii() and digits.isdigit()):
        raise click.BadParameter(f"Give the {DIGITS} digits that you compared.")
    return digits


@click.command("verify-contact", short_help="Compare safety numbers with a contact.")
@click.argument("person", metavar="NAME")
@click.option(
    "--verified",
    metavar="DIGITS",
    callback=_digits,
    help="Mark the contact as verified: the numbers match, and are these 60 digits.",
)
@click.option(
    "--accept",
    metavar="DIGITS",
    callback=_digits,
    help="Accept a changed number, given as its 60 digits: waiting messages are sent.",
)
@profile_option
@server_options
@as_json_option
def command(
    person: str, verified: str, accept: str, profile: str | None, servers: tuple[str, ...], ca_file: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Show the safety number with NAME: twelve groups of five digits, and a QR code.

    Compare it with the number that NAME sees, face to face or in a call. If they match, nobody is intercepting your
    messages: confirm it at the prompt, or with --verified and the digits. If the number changes later, messages to
    NAME wait until you --accept the new one. If the digits that you give are not the current number, nothing changes,
    and the exit code is 17.
    """
    if verified and accept:
        raise click.UsageError("Use one of --verified and --accept.")
    path = chosen(profile)
    client = client_of(path, servers_of(path, servers), ca_file=ca_file)
    asyncio.run(_verify(client, person, verified, accept, as_json))


async def _verify(client: Client, person: str, verified: str, accept: str, as_json: bool) -> None:
    async with client:
        who = resolve(client, person)
        if verified:
            await client.verify(who, verified)
        elif accept:
            await client.accept(who, accept)
        number, trust = client.safety_number(who), client.trust(who)
        account = client.people.get(who).account
        if as_json:
            print_json({
                "account": f"{account:x}", "safety_number": number, "verified": trust.verified, "held": trust.held,
            })  # fmt: skip
            return
        _show(ContactNames(client).of(account), number)
        if not trust.verified and not accept and unlocking.can_ask():
            await _ask(client, who, number, trust)
            trust = client.trust(who)
    _conclude(trust)


async def _ask(client: Client, who: str | int, number: str, trust: Trust) -> None:
    """The answer applies to the number that is shown. Nothing changes until the person has answered."""
    if click.confirm("Do the numbers match?", default=False):
        await client.verify(who, number)
    elif trust.held and click.confirm("It has changed since you verified it. Accept the new number?", default=False):
        await client.accept(who, number)


def _show(name: str, number: str) -> None:
    page = console()
    page.print(f"Safety number with {name}", markup=False, style="bold")
    page.print(Padding(digit_groups(number), (1, 4)))
    page.print(Padding(qr_code(number), (0, 4)))


def _conclude(trust: Trust) -> None:
    page = console()
    if trust.verified:
        page.print("Verified.", style="green")
    elif trust.held:
        page.print(
            "It has changed since you verified it. Your messages wait until you --accept it.", style="bold yellow"
        )
    else:
        page.print(
            "Not verified. If the numbers match, nobody is intercepting: use --verified and the digits.", style="dim"
        )
