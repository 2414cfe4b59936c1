"""`nightmail verify`: tries to make a server lose, duplicate or reorder messages, and prints the verdict.

Knows:   how to show a run and its verdict.
Touches: the server named by --server, or a server process that it starts.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence

import click
from msgspec import structs
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from nightmail.cli.child_server import run
from nightmail.cli.errors import Exit
from nightmail.cli.output import command_line, print_json
from nightmail.cli.profiles import ca_file_option, tls_of
from nightmail.testing import running_server
from nightmail.verify.plan import Plan
from nightmail.verify.run import Progress as RunProgress
from nightmail.verify.run import Result, Run


@click.command("verify", short_help="Try to make a server lose, duplicate or reorder messages.")
@click.option(
    "-s",
    "--server",
    "urls",
    metavar="URL",
    multiple=True,
    help="A server to test; repeat it for the nodes of a cluster. By default, one is started, and also killed.",
)
@ca_file_option
@click.option("--minutes", type=click.FloatRange(min=0), default=0.0, show_default=False, help="Duration in minutes.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=False,
    help="Duration in seconds.  [default: 60]",
)
@click.option("--people", type=click.IntRange(2, 50), default=4, help="Number of accounts.")
@click.option("--devices", type=click.IntRange(1, 5), default=2, help="Devices per account.")
@click.option("--rate", type=click.FloatRange(0.1, 40), default=5.0, help="Messages per second and device, on average.")
@click.option("--seed", type=int, help="Seed of the plan: the same seed gives the same plan.  [default: random]")
@click.option("--json", "as_json", is_flag=True, help="Print only the line of JSON.")
def command(
    urls: tuple[str, ...], ca_file: str | None, minutes: float, seconds: float, people: int, devices: int, rate: float,
    seed: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Try to make a server lose, duplicate or reorder messages.

    Real clients write to each other while a proxy cuts, stalls and half-opens their connections, drops
    acknowledgements and answers, duplicates sends and connects as a second copy of a device; clients are also closed
    and opened again. A server that this command started is killed with SIGKILL, too. Then all faults end, and the
    verdict is computed from what the clients saw.

    The last line on standard output is one JSON object. Exit code 0: every promise was kept; 1: one was broken.
    """
    length = minutes * 60 + seconds or 60.0
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    plan = Plan(seed=seed, people=people, devices=devices, seconds=length, rate=rate, kills=not urls)
    page = Console(stderr=True, highlight=False, quiet=as_json)
    page.print(f"seed {seed}: {people} people with {devices} devices each, {length:g} s of faults", style="dim")
    with _Bar(page, plan) as bar:
        result = run(_run(plan, urls, ca_file, bar))
    _say(page, result)
    if result.broken:
        again = ("verify", "--seed", str(seed), "--seconds", f"{length:g}")
        page.print(f"To repeat this plan: {command_line(*again)}", markup=False)
    print_json(summary(plan, result))
    sys.exit(Exit.OTHER if result.broken else Exit.DONE)


async def _run(plan: Plan, urls: Sequence[str], ca_file: str | None, bar: _Bar) -> Result:
    if urls:
        return await Run(plan, urls, tls=tls_of(ca_file), ca_file=ca_file, look=bar.look)()
    async with running_server() as server:
        return await Run(plan, [server.url], server, look=bar.look)()


def summary(plan: Plan, result: Result) -> dict[str, object]:
    """The line of JSON."""
    verdict = structs.asdict(result.verdict)
    notes = verdict.pop("notes")
    del notes
    return {
        "campaign": "verify", "seed": plan.seed, "seconds": plan.seconds, "people": plan.people,
        "devices": plan.devices, **verdict, "redelivered": result.redelivered, "unexplained": result.unexplained,
        "repeated_sends": result.repeated_sends, "faults": sum(result.faults.values()), "kills": result.kills,
    }  # fmt: skip


def _say(page: Console, result: Result) -> None:
    verdict = result.verdict
    table = Table(box=None, show_header=False)
    rows = (("sent", verdict.sent), ("of these, to a group", verdict.to_group), ("delivered", verdict.delivered))
    for name, count in rows:
        table.add_row(name, f"{count:,}")
    for name, count in (
        ("lost", verdict.lost), ("duplicated", verdict.doubled), ("reordered", verdict.reordered),
        ("unexplained redeliveries", result.unexplained), ("never confirmed to the sender", verdict.unticked),
    ):  # fmt: skip
        table.add_row(name, f"[{'bold red' if count else 'green'}]{count:,}")
    page.print(table)
    faults = ", ".join(f"{count} {name}" for name, count in result.faults.items())
    page.print(f"Faults: {faults or 'none'}; the server was killed {result.kills} times.", style="dim")
    page.print(
        f"They caused {result.redelivered} redeliveries and {result.repeated_sends} repeated sends, which is allowed.",
        style="dim",
    )
    for note in result.notes:
        page.print(note, style="red", markup=False)
    page.print("A promise was broken." if result.broken else "Every promise was kept.", style="bold")


class _Bar:
    """The progress bar."""

    def __init__(self, page: Console, plan: Plan) -> None:
        self._bar = Progress(
            TextColumn("{task.description:<10}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[what]}"),
            console=page, transient=True, disable=page.quiet,
        )  # fmt: skip
        self._task = self._bar.add_task("setting up", total=plan.seconds, what="")

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def look(self, far: RunProgress) -> None:
        what = f"{far.sent} sent, {far.missing} on their way, {far.faults} faults, {far.kills} kills"
        self._bar.update(self._task, completed=far.done_s, description=far.stage, what=what)
