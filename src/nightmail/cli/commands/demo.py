"""`nightmail demo`: shows the demo in this terminal, or as lines if standard output is not a terminal.

Touches: standard output; a server and clients through `nightmail.cli.demo`.
"""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.live import Live

from nightmail.cli.child_server import run
from nightmail.cli.demo.screen import DemoScreen
from nightmail.cli.demo.story import play
from nightmail.cli.demo.view import View
from nightmail.cli.errors import Exit, Failure
from nightmail.cli.output import console, print_json

BEAT_S = 1.4
"""The time it takes to read a caption."""


@click.command("demo", short_help="Watch four devices and a server that is killed.")
@click.option("--beat", type=click.FloatRange(min=0), default=BEAT_S, metavar="SECONDS", help="Pause after a caption.")
@click.option("--json", "as_json", is_flag=True, help="Print only the outcome, as one JSON object.")
def command(beat: float, as_json: bool) -> None:
    """Watch Ada's phone, Bob's phone, Bob's laptop, and a server that is killed while they write; then a group with
    Cleo. It takes about 25 seconds.

    The server is a process of its own, and the devices are ordinary clients.
    """
    try:
        outcome = run(play(lambda screen: View(screen) if as_json else view_for(console(), screen), beat))
    except TimeoutError:
        raise Failure(Exit.OTHER, "The demo did not finish: a message that was sent did not arrive.") from None
    if as_json:
        print_json(outcome._asdict())
    sys.exit(Exit.DONE if outcome.kept else Exit.OTHER)


def view_for(page: Console, screen: DemoScreen) -> View:
    screen.width = page.width
    return TerminalView(screen, page) if page.is_terminal else LineView(screen, page)


class TerminalView(View):
    """Redraws the screen in place."""

    def __init__(self, screen: DemoScreen, page: Console) -> None:
        super().__init__(screen)
        self._live = Live(console=page, auto_refresh=False, vertical_overflow="crop")

    async def __aenter__(self) -> None:
        self._live.start()
        await super().__aenter__()

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        self._live.stop()

    def draw(self) -> None:
        self._live.update(self.screen.draw(), refresh=True)


class LineView(View):
    """Prints each caption as a line, and the screen once, at the end."""

    def __init__(self, screen: DemoScreen, page: Console) -> None:
        super().__init__(screen)
        self._page = page

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        self._page.print(self.screen.draw())

    def set_caption(self, caption: str) -> None:
        super().set_caption(caption)
        self._page.print(caption, markup=False)
