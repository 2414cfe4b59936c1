"""`nightmail group`: make groups, and change who is in them and what they do.

Touches: the profile. Every change needs a server that answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from nightmail.cli.contact_names import ContactNames, resolve, resolve_group, resolve_people
from nightmail.cli.durations import Duration, check_timer
from nightmail.cli.group_json import group_json, member_json
from nightmail.cli.group_requests import asked
from nightmail.cli.group_words import RECEIPTS, ROLES, settings_lines, standing_words
from nightmail.cli.output import as_json_option, console, plain, print_json
from nightmail.cli.profiles import chosen, client_of, profile_option, server_options, servers_of
from nightmail.cli.waiting import timeout_option
from nightmail.client import Client, Group
from nightmail.client.errors import Misused
from nightmail.model.group_rows import MemberState
from nightmail.model.roster import MEMBERS_MAX, GroupSettings, Role


class GroupAccess:
    """The profile and the servers that a command was given."""

    def __init__(self, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool) -> None:
        path = chosen(profile)
        found = servers_of(path, servers)
        self.servers, self.as_json = len(found), as_json
        self.client = client_of(path, found, ca_file=ca_file)

    def change(self, ask: Callable[[Client], Awaitable[Group]], done: Callable[[Group], str]) -> None:
        """Ask for a change, and print the group after it."""
        group = asyncio.run(self._asked(ask))
        if self.as_json:
            print_json(group_json(group))
        else:
            console().print(done(group), markup=False)

    async def _asked(self, ask: Callable[[Client], Awaitable[Group]]) -> Group:
        async with self.client as client:
            return await asked(client, self.servers, lambda: ask(client))

    def look(self, look: Callable[[Client], None]) -> None:
        """Read what this device knows. Needs no server."""

        async def opened() -> None:
            async with self.client as client:
                look(client)

        asyncio.run(opened())


def _access(command: Any) -> Any:
    """The options of every command here; they become its first argument."""

    def called(
        *, profile: str | None, servers: tuple[str, ...], ca_file: str | None, as_json: bool, **rest: Any
    ) -> None:  # fmt: skip
        command(GroupAccess(profile, servers, ca_file, as_json), **rest)

    called.__doc__, called.__name__ = command.__doc__, command.__name__
    called.__click_params__ = getattr(command, "__click_params__", [])  # pyright: ignore[reportFunctionMemberAccess]
    return profile_option(server_options(as_json_option(called)))


def _settings(command: Any) -> Any:
    """Options for what a group may be told to do; None stays as it is."""
    roles = click.Choice(list(ROLES))
    for option in (
        click.option("--timer", "timer_ms", metavar="[30s…7d|off]", type=Duration(), help="When messages disappear."),
        click.option("--receipts", type=click.Choice(list(RECEIPTS)), help="What authors learn: who, if any, nothing."),
        click.option("--changers", type=roles, help="Who may add people, and change timer and receipts."),
        click.option("--writers", type=roles, help="Who may write."),
    ):
        command = option(command)
    return command


def _given(writers: str | None, changers: str | None, receipts: str | None, timer_ms: int | None) -> dict[str, Any]:
    """The settings that were typed. Raises Misused."""
    check_timer(timer_ms or 0)
    typed = {
        "writers": ROLES.get(writers or ""), "changers": ROLES.get(changers or ""),
        "receipts": RECEIPTS.get(receipts or ""), "timer_ms": timer_ms,
    }  # fmt: skip
    return {name: value for name, value in typed.items() if value is not None}


@click.group("group", short_help="Make groups, and change who is in them.")
def command() -> None:
    """Groups: everybody in one reads what is written in it. GROUP is its name; or group:NAME, if a person is called
    like it; or group:ID, if several groups are.

    Write to one with `nightmail send`. The server knows who is in a group, but not its name.
    """


@command.command()
@click.argument("name")
@click.argument("members", nargs=-1)
@_settings
@timeout_option()
@_access
def create(
    access: GroupAccess, name: str, members: tuple[str, ...], writers: str | None, changers: str | None,
    receipts: str | None, timer_ms: int | None,
) -> None:  # fmt: skip
    """Make the group NAME with MEMBERS. You are its admin. If one of them is unknown, nothing is made."""
    _check_count(members)
    given = _given(writers, changers, receipts, timer_ms)

    async def ask(client: Client) -> Group:
        return await client.create_group(name, resolve_people(client, members), **given)

    access.change(
        ask, lambda group: f"You and {_others(group)} are in {plain(group.name)}. Its number is group:{group.id:x}."
    )


@command.command()
@click.argument("group")
@click.argument("members", nargs=-1, required=True)
@timeout_option()
@_access
def add(access: GroupAccess, group: str, members: tuple[str, ...]) -> None:
    """Add MEMBERS. They read what is written from then on, and nothing before."""
    _check_count(members)

    async def ask(client: Client) -> Group:
        return await client.add_members(resolve_group(client, group), resolve_people(client, members))

    access.change(ask, lambda group: f"You and {_others(group)} are in {plain(group.name)}.")


@command.command()
@click.argument("group")
@click.argument("members", nargs=-1, required=True)
@timeout_option()
@_access
def remove(access: GroupAccess, group: str, members: tuple[str, ...]) -> None:
    """Remove MEMBERS. They keep what they have, and read nothing that is written from then on."""

    async def ask(client: Client) -> Group:
        return await client.remove_members(resolve_group(client, group), resolve_people(client, members))

    access.change(ask, lambda group: f"You and {_others(group)} are in {plain(group.name)}.")


@command.command()
@click.argument("group")
@click.option("--successor", metavar="NAME", help="Who becomes admin; needed if you are the last one.")
@timeout_option()
@_access
def leave(access: GroupAccess, group: str, successor: str | None) -> None:
    """Leave GROUP. Its messages stay in the history of this profile."""

    async def ask(client: Client) -> Group:
        heir = None if successor is None else resolve(client, successor)
        return await client.leave_group(resolve_group(client, group), heir)

    access.change(ask, lambda group: f"You left {plain(group.name)}.")


@command.command()
@click.argument("group")
@click.argument("name")
@timeout_option()
@_access
def rename(access: GroupAccess, group: str, name: str) -> None:
    """Give GROUP another name, by a message to everybody in it."""

    async def ask(client: Client) -> Group:
        return await client.rename_group(resolve_group(client, group), name)

    access.change(ask, lambda group: f"The group is called {plain(group.name)}.")


@command.command()
@click.argument("group")
@click.argument("member")
@timeout_option()
@_access
def promote(access: GroupAccess, group: str, member: str) -> None:
    """Make MEMBER an admin."""
    access.change(
        _role(group, member, Role.ADMIN), lambda group: f"{plain(member)} is an admin of {plain(group.name)}."
    )


@command.command()
@click.argument("group")
@click.argument("member")
@timeout_option()
@_access
def demote(access: GroupAccess, group: str, member: str) -> None:
    """Make MEMBER an admin no longer. A group keeps at least one admin."""
    access.change(
        _role(group, member, Role.MEMBER), lambda group: f"{plain(member)} is a member of {plain(group.name)}."
    )


@command.command()
@click.argument("group")
@_settings
@timeout_option()
@_access
def settings(
    access: GroupAccess,
    group: str,
    writers: str | None,
    changers: str | None,
    receipts: str | None,
    timer_ms: int | None,
) -> None:
    """Show or change what members may do, what authors learn, and when messages disappear."""
    given = _given(writers, changers, receipts, timer_ms)

    async def ask(client: Client) -> Group:
        return await client.change_group(resolve_group(client, group), **given)

    def look(client: Client) -> None:
        found = resolve_group(client, group)
        if access.as_json:
            print_json(group_json(found))
        else:
            console().print(_settings_words(found.settings), markup=False)

    if given:
        access.change(ask, lambda group: _settings_words(group.settings))
    else:
        access.look(look)


@command.command()
@click.argument("group")
@_access
def members(access: GroupAccess, group: str) -> None:
    """List the members. Needs no server."""

    def look(client: Client) -> None:
        found, names = resolve_group(client, group), ContactNames(client)
        if access.as_json:
            for member in found.members:
                print_json(member_json(member))
            return
        table = Table(box=None, header_style="dim")
        for column in ("name", "handle", "role", ""):
            table.add_column(column)
        for member in found.members:
            state = "" if member.state is MemberState.JOINED else member.state.name.lower()
            name = names.or_you(member.account)
            table.add_row(Text(name), Text(plain(member.handle)), member.role.name.lower(), Text(state, style="yellow"))
        console().print(table if found.members else "This device does not know its members.")

    access.look(look)


@command.command("list")
@_access
def list_(access: GroupAccess) -> None:
    """List your groups, also those that you left. Needs no server."""

    def look(client: Client) -> None:
        groups = client.groups()
        if access.as_json:
            for group in groups:
                print_json(group_json(group))
            return
        table = Table(box=None, header_style="dim")
        for column in ("name", "members", "you are", "number"):
            table.add_column(column)
        for group in groups:
            count = str(len(group.members)) if group.is_joined else ""
            table.add_row(Text(plain(group.name)), count, standing_words(group), f"group:{group.id:x}")
        console().print(table if groups else "No groups yet: nightmail group create NAME MEMBERS.")

    access.look(look)


def _check_count(members: tuple[str, ...]) -> None:
    """Before each of them is looked for. Raises Misused."""
    if len(members) >= MEMBERS_MAX:
        raise Misused(f"a group has at most {MEMBERS_MAX} members, and {len(members)} were named")


def _role(group: str, member: str, role: Role) -> Callable[[Client], Awaitable[Group]]:
    async def ask(client: Client) -> Group:
        return await client.set_group_role(resolve_group(client, group), resolve(client, member), role)

    return ask


def _others(group: Group) -> str:
    count = len(group.members) - 1
    return {0: "nobody else", 1: "1 other"}.get(count, f"{count} others")


def _settings_words(settings: GroupSettings) -> str:
    return "\n".join(settings_lines(settings))
