"""`nightmail deadletters`: what could not be delivered. For operators.

Never: prints content, unless it is asked to; sealed content can be read by nobody here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
from rich.table import Table
from rich.text import Text

from nightmail.cli.errors import Exit, Failure
from nightmail.cli.json_shapes import time_fields
from nightmail.cli.operator_access import operator_http, operator_options
from nightmail.cli.output import as_json_option, clock, console, plain, print_json
from nightmail.cli.unlocking import can_ask
from nightmail.cli.waiting import run_within
from nightmail.client.link.http import Http

TIMES = ("first_attempt", "last_attempt", "dlq_timestamp", "settled_at")


@click.group("deadletters", short_help="Show, replay and discard what could not be delivered; for operators.")
def command() -> None:
    """Dead letters: messages that could not be applied, and calls to webhooks that failed finally.

    They are kept for 30 days. A message whose letter waits is still *sent* for its author.
    """


@command.command("list")
@click.argument("error", metavar="[ERROR]", required=False)
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, help="At most so many.")
@operator_options
@as_json_option
def list_letters(
    error: str | None, limit: int, token_file: Path | None, data: str | None, file: Path | None,
    servers: tuple[str, ...], ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """List dead letters grouped by error; or those of one ERROR, newest first."""
    http = operator_http(token_file, data, file, servers, ca_file)
    table = Table(box=None, header_style="dim")
    if error is None:
        classes = run_within(http.letter_classes())["classes"]
        if as_json:
            for each in classes:
                print_json(each)
        elif not classes:
            console().print("There are no dead letters.")
        else:
            table.add_column("error")
            table.add_column("letters", justify="right")
            for each in classes:
                table.add_row(Text(plain(each["error"])), str(each["count"]))
            console().print(table)
        return
    letters = run_within(_of(http, error, limit))
    if as_json:
        for each in letters:
            print_json(_fields(each))
        return
    for column in ("id", "since", "status", "message", "retries"):
        table.add_column(column)
    for each in letters:
        message = each["original_message"]["msg_id"] or "no message"
        table.add_row(
            each["id"], clock(each["dlq_timestamp"]), each["status"], Text(plain(message)), str(each["retry_count"])
        )  # fmt: skip
    console().print(table)


async def _of(http: Http, error: str, limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    page = ""
    while len(found) < limit:
        listed = await http.letters(error, page)
        found += listed["letters"]
        page = listed.get("next_page", "")
        if not page:
            break
    return found[:limit]


@command.command("show")
@click.argument("letter", metavar="ID")
@operator_options
@as_json_option
def show(
    letter: str, token_file: Path | None, data: str | None, file: Path | None, servers: tuple[str, ...],
    ca_file: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Show one dead letter with all its fields. With --json, its content, too: sealed, except that of a webhook."""
    _print(run_within(operator_http(token_file, data, file, servers, ca_file).letter(letter)), as_json)


def _settling(how: Literal["replay", "discard"], text: str) -> None:
    """The same command for both ends of a letter."""

    @command.command(how, help=text)
    @click.argument("letter", metavar="[ID]", required=False)
    @click.option("--error", help="Those of this error.")
    @click.option("--since", metavar="TIME", help="Those since this time: RFC 3339 with a zone.")
    @click.option("--before", metavar="TIME", help="Those before this time.")
    @click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
    @operator_options
    @as_json_option
    def settle(
        letter: str | None, error: str | None, since: str | None, before: str | None, yes: bool,
        token_file: Path | None, data: str | None, file: Path | None, servers: tuple[str, ...], ca_file: str | None,
        as_json: bool,
    ) -> None:  # fmt: skip
        chosen = {"error": error, "since": since, "before": before}
        wanted = {name: value for name, value in chosen.items() if value is not None}
        if bool(letter) == bool(wanted):
            raise click.UsageError("Name one by its ID, or several by --error, --since or --before.")
        http = operator_http(token_file, data, file, servers, ca_file)
        if letter:
            _print(run_within(http.settle_letter(letter, how)), as_json)
            return
        if not yes:
            if not can_ask():
                raise Failure(
                    Exit.USAGE, "A confirmation is needed, and standard input is not a terminal.", "Use --yes."
                )
            click.confirm(f"{how.capitalize()} all of these?", abort=True, err=True)
        settled = run_within(http.settle_letters(wanted, how))
        if as_json:
            print_json({"settled": settled})
        else:
            console().print(f"{settled} dead letters: {how}ed.")

    del settle


_settling("replay", "Try to deliver again: one dead letter by its ID, or those of an error or of a time.")
_settling("discard", "Give up: one dead letter by its ID, or those of an error or of a time. Authors hear *failed*.")


def _fields(letter: dict[str, Any]) -> dict[str, Any]:
    times: dict[str, object] = {}
    for name in TIMES:
        times |= time_fields(name, letter.get(name, 0))
    original = letter["original_message"]
    shown = {name: value for name, value in original.items() if not name.startswith("timestamp")}
    kept = {name: value for name, value in letter.items() if not name.startswith(TIMES) and name != "original_message"}
    return {**kept, "original_message": {**shown, **time_fields("timestamp", original["timestamp"])}, **times}


def _print(letter: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(_fields(letter))
        return
    original = letter["original_message"]
    page = console()
    for name, value in (
        ("id", letter["id"]), ("status", letter["status"]), ("error", letter["error"]),
        ("message", original["msg_id"] or "no message"), ("sender", original["sender"] or "none"),
        ("recipient", original["recipient"] or "none"), ("retries", str(letter["retry_count"])),
        ("first attempt", clock(letter["first_attempt"])), ("last attempt", clock(letter["last_attempt"])),
        ("dead since", clock(letter["dlq_timestamp"])), ("replayable", "yes" if letter["replayable"] else "no"),
    ):  # fmt: skip
        page.print(f"{name:14} {plain(value)}", markup=False)
