"""Modal screens: choose a recipient, set the timer, search, compare the safety number.

Knows:   how to ask for one thing and return the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.console import Group
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Center, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from nightmail.cli.output import clock, digit_groups, plain_body
from nightmail.cli.qr_code import qr_code
from nightmail.client.store.search import Found, text_of

OTHER_ROWS = 14
"""Rows of the safety number's dialog without the QR code, and the margin around it."""


class RecipientScreen(ModalScreen[str]):
    """Asks for the handle or the contact name to start a conversation with."""

    BINDINGS: ClassVar = [Binding("escape", "dismiss('')", "Back")]

    def compose(self) -> ComposeResult:
        with Vertical(classes="box small"):
            yield Static("Write to whom?", classes="title")
            yield Input(placeholder="a handle, or a contact's name", id="whom")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class TimerScreen(ModalScreen[str]):
    """Asks after which time the messages of a conversation disappear."""

    BINDINGS: ClassVar = [Binding("escape", "dismiss('')", "Back")]

    def __init__(self, name: str) -> None:
        super().__init__()
        self._person = name

    def compose(self) -> ComposeResult:
        with Vertical(classes="box small"):
            yield Static(Text(f"Messages with {self._person} disappear after"), classes="title")
            yield Input(placeholder="30s to 7d, for example 5m or 1h; or off", id="after")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class SearchScreen(ModalScreen[tuple[int, str] | None]):
    """Searches while the user types; returns the conversation and the message."""

    BINDINGS: ClassVar = [Binding("escape", "dismiss(None)", "Back"), Binding("down", "walk", show=False)]

    def __init__(self, find: Callable[[str], list[Found]], name: Callable[[int], str]) -> None:
        super().__init__()
        self._find, self._name = find, name
        self._found: list[Found] = []
        self._words = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Input(placeholder="search messages on this device", id="words")
            yield OptionList(id="found", markup=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._words = event.value
        self.search_again()

    def search_again(self) -> None:
        self._found = self._find(self._words)
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
        said = Text(plain_body(text_of(message) or ""))
        for start, end in found.spans:
            said.stylize("bold reverse", start, end)
        return Group(head, said)


class SafetyNumberScreen(ModalScreen[str]):
    """Shows the safety number; returns "verify", "accept" or an empty string."""

    BINDINGS: ClassVar = [
        Binding("escape", "dismiss('')", "Back"),
        Binding("v", "dismiss('verify')", "Verified"),
        Binding("a", "dismiss('accept')", "Accept"),
    ]

    def __init__(self, name: str, number: str, *, verified: bool, held: bool) -> None:
        super().__init__()
        self._title, self._number, self._verified, self._held = name, number, verified, held
        self._code = qr_code(number)

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="box safety"):
            yield Static(Text(f"Safety number with {self._title}"), classes="title")
            yield Static(Text(digit_groups(self._number), justify="center"), id="number")
            with Center():
                yield Static(self._code, id="qr-code")
            yield Static(Text(self._advice(), justify="center"), id="advice")

    def on_resize(self, event: events.Resize) -> None:
        """The advice must be visible without scrolling, so a small window has no room for the QR code."""
        rows = self._code.plain.count("\n") + 1
        self.query_one(Center).display = event.size.height >= rows + OTHER_ROWS

    def _advice(self) -> str:
        if self._verified:
            return "Verified. If it changes, you will be asked.   Esc back"
        if self._held:
            return (
                "It has changed since you verified it. Your messages wait.\n"
                "A accept it   V the numbers match   Esc back"
            )
        return "If the numbers match, nobody is intercepting.\nV they match   Esc back"
