"""`nightmail profile`: what protects a profile's encryption key, its settings, and how to change both.

Touches: the profile; a change writes one small file, never the database.
"""

from __future__ import annotations

import click

from nightmail.cli.output import as_json_option, console, print_json
from nightmail.cli.profiles import chosen, profile_option
from nightmail.cli.unlocking import ask_new, from_file, secret_for
from nightmail.client import KeyFile, Keyring
from nightmail.client.profile import keybox, settings
from nightmail.client.profile.profile import Profile
from nightmail.client.profile.protection import Secret

PROTECTIONS = {
    "passphrase": "a passphrase: a copy of the folder is useless without it",
    "keyring": "the system's keyring: a copy of the folder cannot be opened",
    "key_file": "a key file: anyone with the folder and that file can open it",
}


@click.group("profile", short_help="Show or change a profile's settings, and how its encryption key is protected.")
def command() -> None:
    """Show or change a profile's settings, and how its encryption key is protected.

    A random key encrypts the database of a profile. A passphrase, the system's keyring or a key file protects that
    key; docs/cli.md says what each protects against.
    """


@command.command()
@profile_option
@as_json_option
def show(profile: str | None, as_json: bool) -> None:
    """Show where the profile is, and what protects its key."""
    path = chosen(profile)
    kind = keybox.kind_of(path)
    if as_json:
        print_json({"profile": str(path), "kept_by": kind})
        return
    page = console()
    page.print(f"profile  {path}", markup=False)
    page.print(f"key      {PROTECTIONS.get(kind, 'missing: the profile cannot be opened')}", markup=False)


@command.command("settings")
@profile_option
@as_json_option
def list_settings(profile: str | None, as_json: bool) -> None:
    """List the numbers that decide how this profile's client behaves. docs/configuration.md explains each."""
    path = chosen(profile)
    limits = settings.limits_of(path)
    for each in settings.all_settings().values():
        _show_setting(each, getattr(limits, each.name), as_json=as_json)


@command.command("set")
@click.argument("name")
@click.argument("value", required=False, default="")
@profile_option
@as_json_option
def put_setting(name: str, value: str, profile: str | None, as_json: bool) -> None:
    """Change the setting NAME of this profile to VALUE; without VALUE, to its default.

    It counts from the next start of a client on.
    """
    path = chosen(profile)
    limits = settings.put(path, name, value)
    _show_setting(settings.all_settings()[name], getattr(limits, name), as_json=as_json)


def _show_setting(setting: settings.ProfileSetting, value: float, *, as_json: bool) -> None:
    name, default, low, high = setting
    if as_json:
        print_json({"name": name, "value": value, "default": default, "low": low, "high": high})
        return
    differs = "" if value == default else f"; default {default:,}"
    console().print(f"{name:22} {value:>16,}  {setting.allowed}{differs}", markup=False)


@command.command()
@click.argument("by", type=click.Choice(["passphrase", "keyring", "key-file"]))
@click.option("--file", type=click.Path(dir_okay=False), help="The key file. By default, a file in the profile folder.")
@click.option(
    "--new-passphrase-file", type=click.Path(exists=True, dir_okay=False), help="File containing the new passphrase."
)
@profile_option
@as_json_option
def keep(by: str, file: str | None, new_passphrase_file: str | None, profile: str | None, as_json: bool) -> None:
    """Protect the profile with a passphrase, the keyring or a key-file; also changes the passphrase.

    The database itself is not encrypted again. Anyone who has an old copy of the file `key`, and the secret that
    opened it, can still open the database.
    """
    path = chosen(profile)
    opened = Profile(path, secret_for(path))
    try:
        opened.keep_by(_wanted(by, file, new_passphrase_file))
    finally:
        opened.close()
    kind = keybox.kind_of(path)
    if as_json:
        print_json({"profile": str(path), "kept_by": kind})
    else:
        console().print(f"The key is protected by {PROTECTIONS[kind]}.", markup=False)


def _wanted(by: str, file: str | None, new_passphrase_file: str | None) -> Secret:
    if file and by != "key-file":
        raise click.UsageError("--file is for a key-file.")
    match by:
        case "passphrase" if new_passphrase_file:
            return from_file(new_passphrase_file)
        case "passphrase":
            return ask_new()
        case "keyring":
            return Keyring()
        case _:
            return KeyFile(file or "")
