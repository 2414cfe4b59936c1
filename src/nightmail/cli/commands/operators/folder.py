"""`nightmail folder`: check, back up and restore the data folder of a server.

Knows:   where the data folder is, by the settings.
Touches: nothing in the folder that is read; the one that is written must not exist.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, TaskID

from nightmail.cli.errors import Exit, Failure, sentence
from nightmail.cli.output import as_json_option, print_json
from nightmail.cli.server_settings import config_option, loaded
from nightmail.server.folder import Checked, EngineError, back_up, check_whole, exit_code, restore


@click.group("folder", short_help="Check, back up and restore the data folder of a server.")
def command() -> None:
    """Check, back up and restore the data folder of a server on this machine, whether it is running or not."""


def data_option(wrapped: Any) -> Any:
    return click.option("-d", "--data", metavar="FOLDER", help="The data folder; by default the settings name it.")(
        wrapped
    )


@command.command()
@data_option
@config_option
@as_json_option
def check(data: str | None, file: Path | None, as_json: bool) -> None:
    """Read the whole data folder and compare everything with its checksums.

    Exit code 0 if it is whole, 4 if it is damaged; the sentence names what is damaged.
    """
    folder = _folder(data, file)
    with _Shown(as_json) as shown:
        checked = _explained(as_json, folder, lambda: check_whole(folder, shown.progress))
    _say(as_json, folder, checked, f"{folder} is whole.")


@command.command()
@click.argument("dest", type=click.Path(path_type=Path))
@data_option
@config_option
@as_json_option
def backup(dest: Path, data: str | None, file: Path | None, as_json: bool) -> None:
    """Copy the data folder to the new folder DEST, also while the server is running, and verify the copy.

    DEST has everything that was acknowledged before the backup began, but not the bytes of files that people sent:
    copy the folder media afterwards. It holds secrets: keep it private.
    """
    folder = _folder(data, file)
    with _Shown(as_json) as shown:
        checked = _explained(as_json, folder, lambda: back_up(folder, dest, shown.progress))
    _say(as_json, dest, checked, f"{dest} is a backup of {folder}.")


@command.command("restore")
@click.argument("backup", type=click.Path(path_type=Path))
@data_option
@config_option
@as_json_option
def restore_command(backup: Path, data: str | None, file: Path | None, as_json: bool) -> None:
    """Verify BACKUP and copy it to the data folder, which must not exist yet."""
    folder = _folder(data, file)
    with _Shown(as_json) as shown:
        checked = _explained(as_json, folder, lambda: restore(backup, folder, shown.progress))
    _say(as_json, folder, checked, f"{folder} is restored; start the server: nightmail serve --data {folder}.")


def _folder(data: str | None, file: Path | None) -> Path:
    return Path(loaded(file, {"data__folder": data} if data else {}).config.data.folder)


def _explained(as_json: bool, folder: Path, do: Any) -> Checked:
    try:
        return do()
    except EngineError as error:
        if as_json:
            print_json({"folder": str(folder), "verdict": "refused", "why": str(error)})
        code = Exit(exit_code(error))
        raise Failure(code, sentence(error)) from None


def _say(as_json: bool, folder: Path, checked: Checked, said: str) -> None:
    if as_json:
        counted = checked._asdict()
        print_json({"folder": str(folder), "verdict": "whole", "why": None, **counted})
        return
    where = f"Checkpoint {checked.pointer}, log up to {checked.last}"
    click.echo(f"{said} {where}{', and a server is running on it' if checked.served else ''}.")


class _Shown:
    """Progress on standard error, in a terminal."""

    def __init__(self, as_json: bool) -> None:
        self._bars = Progress(console=Console(stderr=True), transient=True, disable=as_json or not sys.stderr.isatty())
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> _Shown:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def progress(self, what: str, done: int, of: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=None)
        self._bars.update(self._tasks[what], completed=done, total=of or None)
