"""Draws `nightmail demo` as an animated SVG, for the README.

    python -m pictures.demo docs/demo.svg

Touches: a server process in a temporary folder, and the file that it writes.
Never:   invents a frame: every frame is the screen that the demo drew.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style

from nightmail.cli.child_server import run
from nightmail.cli.commands.demo import BEAT_S
from nightmail.cli.demo.screen import WIDTH, DemoScreen
from nightmail.cli.demo.story import play
from nightmail.cli.demo.view import View

from .animated_svg import AnimatedSvg

HEIGHT = 22
TITLE = "Four devices, a server that is killed, and a group: every message arrives once."


class RecordingView(View):
    """Adds every frame to the SVG."""

    def __init__(self, screen: DemoScreen, svg: AnimatedSvg) -> None:
        super().__init__(screen)
        self._svg = svg

    def draw(self) -> None:
        self._svg.add(asyncio.get_running_loop().time(), rows(self.screen.draw()))


def rows(picture: RenderableType) -> list[list[Segment]]:
    """The screen as rows of styled text, always of the same size."""
    console = Console(width=WIDTH, height=HEIGHT, color_system="truecolor", force_terminal=True, legacy_windows=False)
    lines = console.render_lines(picture, console.options.update(width=WIDTH), pad=True)
    blank = [Segment(" " * WIDTH, Style())]
    return (lines + [blank] * HEIGHT)[:HEIGHT]


def record(beat_s: float) -> str:
    """Play the demo, and return it as SVG. Raises AssertionError if a promise was broken."""
    svg = AnimatedSvg()
    outcome = run(play(lambda screen: RecordingView(screen, svg), beat_s))
    assert outcome.kept, "the devices do not show the same messages"
    return svg.svg(TITLE)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(record(BEAT_S))
