"""`nightmail clock`: the machine's clock and the time that a server goes by. For operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nightmail.cli.json_shapes import time_fields
from nightmail.cli.operator_access import operator_http, operator_options
from nightmail.cli.output import as_json_option, clock, console, print_json
from nightmail.cli.waiting import run_within

STATES = {
    "believed": "The server goes by the machine's clock.",
    "ahead": "The machine's clock is too far ahead to be believed yet. If it is wrong, put it right.",
    "behind": "The machine's clock is far behind the server's time. If it is right, run `nightmail clock set-back`.",
}


@click.group("clock", short_help="Show the server's time, and put it right; for operators.")
def command() -> None:
    """Show the time that a server goes by, and set it back after a wrong clock was believed."""


@command.command("show")
@operator_options
@as_json_option
def show(
    token_file: Path | None, data: str | None, file: Path | None, servers: tuple[str, ...], ca_file: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Show the machine's clock, the time that the server goes by, and what the server thinks of the clock."""
    _print(run_within(operator_http(token_file, data, file, servers, ca_file).clock()), as_json)


@command.command("set-back")
@operator_options
@as_json_option
def set_back(
    token_file: Path | None, data: str | None, file: Path | None, servers: tuple[str, ...], ca_file: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Set the server's time back to the machine's clock, which must be right by now.

    Use it after a wrong clock was believed. What was sent meanwhile expires as if the clock had been right; what has
    expired stays expired, and the times of messages never go back.
    """
    _print(run_within(operator_http(token_file, data, file, servers, ca_file).set_clock_back()), as_json)


def _print(seen: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({"state": seen["state"], **time_fields("clock", seen["clock"]), **time_fields("time", seen["time"])})
        return
    page = console()
    page.print(f"machine's clock: {clock(seen['clock'])}", markup=False)
    page.print(f"server's time:   {clock(seen['time'])}", markup=False)
    page.print(STATES[seen["state"]], markup=False)
