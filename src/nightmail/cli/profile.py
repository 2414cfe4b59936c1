"""`nightmail profile`: what keeps a profile's key, and how to change that.

Touches: the profile; a change writes one small file, never the database.
"""

from __future__ import annotations

import click

from nightmail.client import KeyFile, Keyring
from nightmail.client.profile import keybox
from nightmail.client.profile.profile import Profile
from nightmail.client.profile.protection import Secret

from .profiles import chosen, profile_option
from .saying import as_json_option, console, say_json
from .unlocking import ask_new, from_file, secret_for

WORDS = {
    "passphrase": "a passphrase: who copies the folder has to guess it",
    "keyring": "the system's keyring: who copies the folder cannot open it",
    "key_file": "a key file: who has the folder and that file can open it",
}


@click.group("profile", short_help="Show and change what keeps a profile sealed.")
def command() -> None:
    """Show and change what keeps a profile sealed.

    The database of a profile is encrypted under a random key. That key is kept by a passphrase, by the system's
    keyring, or by a key file; docs/cli.md says what each protects against.
    """


@command.command()
@profile_option
@as_json_option
def show(profile: str | None, as_json: bool) -> None:
    """Say where the profile is, and what keeps its key."""
    path = chosen(profile)
    kind = keybox.kind_of(path)
    if as_json:
        say_json({"profile": str(path), "kept_by": kind})
        return
    page = console()
    page.print(f"profile  {path}", markup=False)
    page.print(f"kept by  {WORDS.get(kind, 'nothing: it cannot be opened')}", markup=False)


@command.command()
@click.argument("by", type=click.Choice(["passphrase", "keyring", "key-file"]))
@click.option("--file", type=click.Path(dir_okay=False), help="The key file. Otherwise one in the profile folder.")
@click.option(
    "--new-passphrase-file", type=click.Path(exists=True, dir_okay=False), help="Where the new passphrase stands."
)
@profile_option
@as_json_option
def keep(by: str, file: str | None, new_passphrase_file: str | None, profile: str | None, as_json: bool) -> None:
    """Keep the profile's key BY a passphrase, the keyring or a key-file from now on; also for a new passphrase.

    The database is not written anew. Whoever has an old copy of the folder, and what opened it then, can still
    open that copy.
    """
    path = chosen(profile)
    opened = Profile(path, secret_for(path))
    try:
        opened.keep_by(_wanted(by, file, new_passphrase_file))
    finally:
        opened.close()
    kind = keybox.kind_of(path)
    if as_json:
        say_json({"profile": str(path), "kept_by": kind})
    else:
        console().print(f"The profile is kept by {WORDS[kind]}.", markup=False)


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
