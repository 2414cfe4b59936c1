"""Modal screens for messages for later: say when one is delivered, see all of them, cancel one.

Knows:   how to ask for a time, and how a row of the list is drawn. Both dialogs fit a terminal with 24 rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.console import Group
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from nightmail.cli.output import plain, plain_body

from .schedules import ScheduledSummary


class LaterScreen(ModalScreen[str]):
    """Asks when a message is delivered; returns what was typed."""

    BINDINGS: ClassVar = [Binding("escape", "dismiss('')", "Back")]

    def __init__(self, name: str) -> None:
        super().__init__()
        self._person = name

    def compose(self) -> ComposeResult:
        with Vertical(classes="box small"):
            yield Static(Text(f"Deliver to {plain(self._person)} later"), classes="title")
            yield Input(placeholder="in 30s to 14d; or at 2026-03-01T12:00:00Z", id="when")
            yield Static(Text("Enter schedule   Ctrl+L see all   Esc back"), classes="keys")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class ScheduledScreen(ModalScreen[None]):
    """Shows what is scheduled in all conversations, and what became of it."""

    BINDINGS: ClassVar = [
        Binding("escape", "dismiss(None)", "Back"),
        Binding("c,delete", "cancel_message", "Cancel"),
    ]

    def __init__(self, rows: Callable[[], list[ScheduledSummary]], cancel: Callable[[str], object]) -> None:
        super().__init__()
        self._read, self._cancel = rows, cancel
        self.rows: list[ScheduledSummary] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static("Scheduled messages", classes="title")
            yield OptionList(id="found", markup=False)
            yield Static(id="scheduled-keys", classes="keys")

    def on_mount(self) -> None:
        self.show_again()

    def show_again(self) -> None:
        """Draw what has changed, and keep the place: the marked message stays marked."""
        found, marked = self.query_one("#found", OptionList), self._marked
        rows = self._read()
        if rows == self.rows and rows:
            return
        self.rows = rows
        found.set_options([Option(_draw(row), id=row.id) for row in rows])
        ids = [row.id for row in rows]
        found.highlighted = ids.index(marked.id) if marked and marked.id in ids else 0 if rows else None
        words = "C cancel it   Esc back" if rows else "Nothing is scheduled.   Esc back"
        self.query_one("#scheduled-keys", Static).update(Text(words))

    def action_cancel_message(self) -> None:
        if (marked := self._marked) is not None:
            self._cancel(marked.id)

    @property
    def _marked(self) -> ScheduledSummary | None:
        at = self.query_one("#found", OptionList).highlighted
        return self.rows[at] if at is not None and at < len(self.rows) else None


def _draw(row: ScheduledSummary) -> Group:
    head = Text(plain(row.name), style="bold" if row.is_open else "")
    head.append(f"  {row.at}  {plain(row.state)}", style="dim")
    if not row.text:
        return Group(head)
    said = Text(plain_body(row.text).replace("\n", " "), no_wrap=True, overflow="ellipsis")
    return Group(head, said)
