"""The screen of `nightmail demo`: three devices, the server, and a caption.

Knows:   how to draw a conversation in a narrow column.
Touches: the history of each client, read-only.
Never:   shows a message or a tick that is not in the client's profile.
"""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nightmail.cli.group_words import short_seen_words
from nightmail.client import Client
from nightmail.client.addressees import GROUP
from nightmail.client.group_events import GroupReceipt
from nightmail.client.messages import Message, Tick
from nightmail.testing import RegisteredDevice, RunningServer

WIDTH = 99
"""The screen uses no more columns than this."""
DEVICE_LINES = 14
COLOURS = {"ada": "bright_cyan", "bob": "bright_magenta", "cleo": "bright_yellow"}
TICKS = {
    Tick.PENDING: ("◷", "yellow"),
    Tick.SENT: ("✓", "bright_black"),
    Tick.DELIVERED: ("✓✓", "bright_black"),
    Tick.READ: ("✓✓", "bright_blue"),
    Tick.FAILED: ("✗", "red"),
}


class DemoDevice:
    """One device. Without a client it is offline, and its column keeps the messages that it showed last."""

    def __init__(self, name: str, device: RegisteredDevice, peer: str) -> None:
        self.name, self.device = name, device
        self.peer = peer
        """Whose conversation it shows: a handle, or "group:" and a name."""
        self.client: Client | None = None
        self.receipts: dict[str, GroupReceipt] = {}
        """Own message in a group → how many members have it, as the client was told."""
        self._shown: list[Message] = []

    def take(self, receipt: GroupReceipt) -> None:
        self.receipts[receipt.message_id] = receipt

    @property
    def messages(self) -> list[Message]:
        if self.client is not None:
            self._shown = self.client.history(self.peer)
        return self._shown

    def draw(self, width: int) -> Panel:
        state = Text("● online", "green") if self.client and self.client.online else Text("○ connecting", "yellow")
        if self.client is None:
            state = Text("○ offline", "red")
        flat = [line for message in self.messages for line in self._bubble(message, width - 4)][-DEVICE_LINES + 2 :]
        title = Text.assemble((self.name, f"bold {COLOURS[self.device.handle]}"), " ", state)
        conversation = Text(self.peer.removeprefix(GROUP), "bright_black")
        body = Text("\n").join(flat)
        style = "dim" if self.client is None else ""
        return Panel(
            Padding(body, (0, 0)), title=title, subtitle=conversation, width=width, height=DEVICE_LINES, style=style
        )

    def _bubble(self, message: Message, width: int) -> list[Text]:
        """Own messages on the right with their ticks, the others on the left; in a group below their author."""
        words = Text(message.text, COLOURS[self.device.handle] if message.own else "white")
        lines = list(words.wrap(Console(width=width), width - 6))
        if message.own:
            tick, style = TICKS[message.state]
            lines[-1].append(f" {tick}", style)
            if message.id in self.receipts:
                lines.append(Text(short_seen_words(self.receipts[message.id]), style))
        elif message.group is not None:
            lines.insert(0, Text(message.handle, f"bold {COLOURS[message.handle]}"))
        for line in lines:
            line.rstrip()
            if message.own:
                line.pad_left(max(0, width - line.cell_len))
        return lines


class DemoScreen:
    """The devices side by side, the server below them, then the caption."""

    def __init__(self, devices: list[DemoDevice], server: RunningServer) -> None:
        self.devices, self._server = devices, server
        self.state = Text("serving", "green")
        self.caption = ""
        self.kills = 0
        self.width = WIDTH
        """Columns of the terminal."""

    def draw(self) -> RenderableType:
        width = min(WIDTH, self.width) // len(self.devices)
        screens = Table.grid(padding=0)
        screens.add_row(*(device.draw(width) for device in self.devices))
        pid = f"process {self._server.pid}" if self._server.pid else "no process"
        server = Text.assemble((f"{pid}  ", "bold"), self.state, f"   log and rows in {self._server.folder}")
        server.truncate(width * len(self.devices) - 4, overflow="ellipsis")
        return Group(
            Text("nightmail demo", "bold"), Text(), screens,
            Panel(server, title="the server", title_align="left", width=width * len(self.devices)),
            Text(), Text(f"  {self.caption}", "bold"),
        )  # fmt: skip
