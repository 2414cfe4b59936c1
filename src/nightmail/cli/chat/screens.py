"""What opens above the conversation: whom to write to, what to find, whether nobody stands between.

Knows:   how to ask one thing, and gives the answer back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.console import Group
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Center, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from nightmail.cli.saying import clock, plain
from nightmail.cli.squares import grouped, squares
from nightmail.client.store.search import Found, text_of


class AskWhom(ModalScreen[str]):
    """A new conversation: the handle of somebody, or what they are called here."""

    BINDINGS: ClassVar = [Binding("escape", "dismiss('')", "Back")]

    def compose(self) -> ComposeResult:
        with Vertical(classes="box small"):
            yield Static("Write to whom?", classes="title")
            yield Input(placeholder="a handle, or what you call them", id="whom")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class Search(ModalScreen[tuple[int, str] | None]):
    """Finds while one types; gives the conversation and the message."""

    BINDINGS: ClassVar = [Binding("escape", "dismiss(None)", "Back"), Binding("down", "walk", show=False)]

    def __init__(self, find: Callable[[str], list[Found]], name: Callable[[int], str]) -> None:
        super().__init__()
        self._find, self._name = find, name
        self._found: list[Found] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Input(placeholder="words to find, on this device", id="words")
            yield OptionList(id="found", markup=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._found = self._find(event.value)
        self.query_one("#found", OptionList).set_options([Option(self._draw(each)) for each in self._found])

    def on_input_submitted(self) -> None:
        if self._found:
            self._give(0)

    def action_walk(self) -> None:
        self.query_one("#found").focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self._give(event.option_index)

    def _give(self, at: int) -> None:
        message = self._found[at].message
        self.dismiss((message.peer, message.id))

    def _draw(self, found: Found) -> Group:
        message = found.message
        head = Text(self._name(message.peer), style="bold")
        head.append(f"  {'you, ' if message.own else ''}{clock(message.at) if message.at else ''}", style="dim")
        said = Text(plain(text_of(message) or ""))
        for start, end in found.spans:
            said.stylize("bold reverse", start, end)
        return Group(head, said)


class Safety(ModalScreen[str]):
    """The number that two people compare; gives "verify", "accept" or nothing."""

    BINDINGS: ClassVar = [
        Binding("escape", "dismiss('')", "Back"),
        Binding("v", "dismiss('verify')", "They are alike"),
        Binding("a", "dismiss('accept')", "Accept"),
    ]

    def __init__(self, name: str, number: str, *, verified: bool, held: bool) -> None:
        super().__init__()
        self._title, self._number, self._verified, self._held = name, number, verified, held

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="box safety"):
            yield Static(Text(f"Safety number with {self._title}"), classes="title")
            yield Static(Text(grouped(self._number), justify="center"), id="number")
            with Center():
                yield Static(squares(self._number), id="squares")
            yield Static(Text(self._advice(), justify="center"), id="advice")

    def _advice(self) -> str:
        if self._verified:
            return "Verified. If it ever changes, you will be asked.  Esc back"
        if self._held:
            return "It changed since you verified it. What you write waits.  A accept it   V compared again, alike"
        return "Do they see the same?  V yes, they are alike   Esc back"
