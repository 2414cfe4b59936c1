"""The picture that `nightmail demo` shows: three devices, a server, and what happens.

Knows:   how a conversation looks on a small screen.
Touches: the history of each client, to read it.
Never:   shows anything that a client has not got: what stands here is what its profile holds.
"""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from nightmail.client import Client
from nightmail.client.messages import Message, Tick
from nightmail.testing import Device, RunningServer

WIDTH, HEIGHT = 99, 22
SCREEN_LINES = 14
TICKS = {
    Tick.PENDING: ("◷", "yellow"),
    Tick.SENT: ("✓", "bright_black"),
    Tick.DELIVERED: ("✓✓", "bright_black"),
    Tick.READ: ("✓✓", "bright_blue"),
    Tick.FAILED: ("✗", "red"),
}


class Seat:
    """One device on the stage. Without a client it is switched off, and its screen shows what it last showed."""

    def __init__(self, name: str, device: Device, peer: str, colour: str) -> None:
        self.name, self.device, self.peer, self.colour = name, device, peer, colour
        self.client: Client | None = None
        self._shown: list[Message] = []

    @property
    def messages(self) -> list[Message]:
        if self.client is not None:
            self._shown = self.client.history(self.peer)
        return self._shown

    def draw(self, width: int) -> Panel:
        state = Text("● online", "green") if self.client and self.client.online else Text("○ connecting", "yellow")
        if self.client is None:
            state = Text("○ offline", "red")
        lines = [_bubble(message, width - 4, self.colour) for message in self.messages]
        flat = [line for bubble in lines for line in bubble][-SCREEN_LINES + 2 :]
        title = Text.assemble((self.name, f"bold {self.colour}"), "  ", state)
        body = Text("\n").join(flat)
        style = "dim" if self.client is None else ""
        return Panel(Padding(body, (0, 0)), title=title, width=width, height=SCREEN_LINES, style=style)


def _bubble(message: Message, width: int, colour: str) -> list[Text]:
    """Own messages on the right with their ticks, those of others on the left."""
    words = Text(message.text, colour if message.own else "white")
    wrapped = words.wrap(Console(width=width), width - 6)
    lines = list(wrapped)
    if message.own:
        tick, style = TICKS[message.state]
        lines[-1].append(f" {tick}", style)
    for line in lines:
        line.rstrip()
        if message.own:
            line.pad_left(max(0, width - line.cell_len))
    return lines


class Stage:
    """Everything at once."""

    def __init__(self, seats: list[Seat], server: RunningServer) -> None:
        self._seats, self._server = seats, server
        self.state = Text("serving", "green")
        self.caption = ""
        self.kills = 0
        self.width = WIDTH
        """Columns there are."""

    def draw(self) -> RenderableType:
        width = min(WIDTH, self.width) // len(self._seats)
        screens = Table.grid(padding=0)
        screens.add_row(*(seat.draw(width) for seat in self._seats))
        pid = f"process {self._server.pid}" if self._server.pid else "no process"
        server = Text.assemble((f"{pid}  ", "bold"), self.state, f"   log and rows in {self._server.folder}")
        server.truncate(width * len(self._seats) - 4, overflow="ellipsis")
        return Group(
            Text("nightmail demo", "bold"), Text(), screens,
            Panel(server, title="the server", title_align="left", width=width * len(self._seats)),
            Text(), Text(f"  {self.caption}", "bold"),
        )  # fmt: skip


def rows(renderable: RenderableType) -> list[list[Segment]]:
    """The picture as rows of styled text, always of the same size."""
    console = Console(width=WIDTH, height=HEIGHT, color_system="truecolor", force_terminal=True, legacy_windows=False)
    lines = console.render_lines(renderable, console.options.update(width=WIDTH), pad=True)
    blank = [Segment(" " * WIDTH, Style())]
    return (lines + [blank] * HEIGHT)[:HEIGHT]
