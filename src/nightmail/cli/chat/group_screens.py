"""Modal screens for groups: make one, and see who is in it.

Knows:   how to ask for a name and members. Both dialogs fit a terminal with 24 rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from nightmail.cli.output import plain


class NewGroupScreen(ModalScreen[tuple[str, str] | None]):
    """Asks for a name and members; returns both as they were typed."""

    BINDINGS: ClassVar = [Binding("escape", "dismiss(None)", "Back")]

    def compose(self) -> ComposeResult:
        with Vertical(classes="box small"):
            yield Static("A new group", classes="title")
            yield Input(placeholder="its name", id="group-name")
            yield Input(placeholder="members: handles or names, separated by commas", id="group-members")
            yield Static(Text("Enter make it   Esc back"), classes="keys")

    def on_input_submitted(self) -> None:
        name, members = (self.query_one(field, Input) for field in ("#group-name", "#group-members"))
        if name.value.strip() and members.value.strip():
            self.dismiss((name.value.strip(), members.value.strip()))
        else:
            (members if name.value.strip() else name).focus()


class MembersScreen(ModalScreen[None]):
    """Shows who is in a group."""

    BINDINGS: ClassVar = [Binding("escape", "dismiss(None)", "Back")]

    def __init__(self, name: str, members: Sequence[tuple[str, str]], settings: Sequence[str]) -> None:
        super().__init__()
        self._title, self._members, self._settings = name, members, settings

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(Text(f"{plain(self._title)}: {len(self._members)} members"), classes="title")
            yield OptionList(*[Option(self._draw(*member)) for member in self._members], id="found", markup=False)
            yield Static(Text("\n".join(self._settings)), classes="keys")

    def _draw(self, name: str, role: str) -> Text:
        line = Text(plain(name))
        line.append(f"  {role}", style="dim")
        return line
